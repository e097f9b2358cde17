/* Folders of pictures. Names are compared byte by byte, so their order is the same everywhere. */
#include "folder.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include "args.h"

/* A name in a linked list, valid until the folder is freed. */
typedef struct Piece {
  struct Piece *next;
  char text[];
} Piece;

typedef struct Names {
  const char **at;
  int64_t n, room;
} Names;

static ampc_status out_of_memory(const char *path)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
}

static bool add_name(Folder *f, Names *to, const char *name, size_t size)
{
  if (to->n == to->room) {
    int64_t room = to->room ? 2 * to->room : 256;
    const char **more = realloc(to->at, (size_t)room * sizeof *more);
    if (!more) return false;
    to->at = more;
    to->room = room;
  }
  Piece *piece = malloc(sizeof *piece + size + 1);
  if (!piece) return false;
  memcpy(piece->text, name, size);
  piece->text[size] = 0;
  piece->next = f->memory;
  f->memory = piece;
  to->at[to->n++] = piece->text;
  return true;
}

static int by_name(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_picture(const char *name)
{
  const char *dot = strrchr(name, '.');
  return name[0] != '.' && dot &&
         (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
          strcasecmp(dot, ".png") == 0);
}

/* Whether an entry is a folder, or a link to one. */
static bool is_folder(DIR *within, const struct dirent *e)
{
  struct stat info;
  if (e->d_type == DT_DIR) return true;
  if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) return false;
  return fstatat(dirfd(within), e->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

/* Lists the folders of `path`, or its pictures, sorted. */
static ampc_status list(Folder *f, const char *path, bool folders, Names *out)
{
  DIR *d = opendir(path);
  if (!d) return ampc_fail(AMPC_BAD_FILE, "cannot open the folder %s: %s", path, strerror(errno));
  bool good = true;
  errno = 0; /* only errno says whether readdir failed */
  for (struct dirent *e; good && (e = readdir(d)); errno = 0) {
    bool wanted = folders ? e->d_name[0] != '.' && is_folder(d, e) : is_picture(e->d_name);
    if (wanted) good = add_name(f, out, e->d_name, strlen(e->d_name));
  }
  int error = errno;
  closedir(d);
  if (!good) return out_of_memory(path);
  if (error)
    return ampc_fail(AMPC_BAD_FILE, "cannot read the folder %s: %s", path, strerror(error));
  if (out->n) qsort(out->at, (size_t)out->n, sizeof *out->at, by_name);
  return AMPC_OK;
}

static ampc_status find_classes(Folder *f, const char *path, const char *args, Names *out)
{
  int n;
  const char *at = args_next(args, "class", NULL, &n);
  if (!at) {
    ampc_status status = list(f, path, true, out);
    if (status || out->n) return status;
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has no folders: it must have one folder of pictures for each class", path);
  }
  for (; at; at = args_next(args, "class", at, &n))
    if (!add_name(f, out, at, (size_t)n)) return out_of_memory(path);
  return AMPC_OK;
}

/* Appends the pictures of class c. */
static ampc_status add_class(Folder *f, const char *path, int32_t c, int64_t *room)
{
  char *within;
  Names names = {0};
  if (asprintf(&within, "%s/%s", path, f->class[c]) < 0) return out_of_memory(path);
  ampc_status status = list(f, within, false, &names);
  if (!status && !names.n)
    status = ampc_fail(AMPC_BAD_FILE,
                       "class %s is empty: %s has no file that ends in .jpg, .jpeg or "
                       ".png",
                       f->class[c], within);
  if (!status && f->n + names.n > *room) {
    *room = 2 * (f->n + names.n);
    FolderFile *more = realloc(f->files, (size_t)*room * sizeof *more);
    if (more) f->files = more;
    if (!more) status = out_of_memory(path);
  }
  for (int64_t i = 0; !status && i < names.n; i++)
    f->files[f->n++] = (FolderFile){names.at[i], c, (int32_t)i};
  f->size[c] = names.n;
  free(names.at);
  free(within);
  return status;
}

/* ---- the order ---- */

typedef struct Place {
  FolderFile file;
  int64_t size; /* number of files in the class of `file` */
} Place;

/* For qsort. File i of a class of n files gets position (2 i + 1) / (2 n), so that the files of
 * each class are spread evenly over the whole order. */
static int by_place(const void *a, const void *b)
{
  const Place *x = a, *y = b;
  int64_t p = (2 * (int64_t)x->file.rank + 1) * y->size,
          q = (2 * (int64_t)y->file.rank + 1) * x->size;
  if (p != q) return p < q ? -1 : 1;
  return x->file.class < y->file.class ? -1 : 1;
}

static ampc_status put_in_order(Folder *f, const char *path)
{
  Place *places = malloc((size_t)f->n * sizeof *places);
  if (!places) return out_of_memory(path);
  for (int64_t i = 0; i < f->n; i++) places[i] = (Place){f->files[i], f->size[f->files[i].class]};
  qsort(places, (size_t)f->n, sizeof *places, by_place);
  for (int64_t i = 0; i < f->n; i++) f->files[i] = places[i].file;
  free(places);
  return AMPC_OK;
}

static ampc_status note_members(Folder *f, const char *path)
{
  f->members = calloc((size_t)f->classes, sizeof *f->members);
  if (!f->members) return out_of_memory(path);
  for (int64_t c = 0; c < f->classes; c++) {
    f->members[c] = malloc((size_t)f->size[c] * sizeof **f->members);
    if (!f->members[c]) return out_of_memory(path);
  }
  for (int64_t i = 0; i < f->n; i++) f->members[f->files[i].class][f->files[i].rank] = i;
  return AMPC_OK;
}

/* Makes a Folder with a single picture and one class, ".": the folder that contains the picture. */
static ampc_status list_one(Folder *f, const char *path)
{
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t root = slash ? (size_t)(slash - path) : 0;
  Names names = {0}, classes = {0};
  f->files = calloc(1, sizeof *f->files);
  f->size = calloc(1, sizeof *f->size);
  bool good = f->files && f->size && add_name(f, &names, name, strlen(name)) &&
              add_name(f, &names, slash ? root ? path : "/" : ".", slash && root ? root : 1) &&
              add_name(f, &classes, ".", 1);
  f->class = classes.at;
  if (good) {
    f->classes = f->n = f->size[0] = 1;
    f->files[0] = (FolderFile){names.at[0], 0, 0};
    f->root = names.at[1];
  }
  free(names.at);
  return good ? note_members(f, path) : out_of_memory(path);
}

/* Whether `path` is a single picture, not a folder. If the job names classes, `path` has to be a
 * folder, so this returns false. */
static bool is_one(const char *path, const char *args)
{
  int n;
  struct stat info;
  const char *slash = strrchr(path, '/');
  return is_picture(slash ? slash + 1 : path) && !args_next(args, "class", NULL, &n) &&
         stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

ampc_status folder_list(const char *path, const char *args, Folder *out)
{
  *out = (Folder){.root = path};
  if (is_one(path, args)) return list_one(out, path);
  Names classes = {0};
  int64_t room = 0;
  ampc_status status = find_classes(out, path, args, &classes);
  out->class = classes.at;
  out->classes = classes.n;
  if (!status && classes.n > INT32_MAX)
    status = ampc_fail(AMPC_BAD_FILE, "%s has more than 2^31 classes", path);
  out->size = calloc((size_t)classes.n + 1, sizeof *out->size);
  if (!status && !out->size) status = out_of_memory(path);
  for (int32_t c = 0; !status && c < classes.n; c++) status = add_class(out, path, c, &room);
  if (!status) status = put_in_order(out, path);
  if (!status) status = note_members(out, path);
  return status;
}

void folder_free(Folder *f)
{
  for (int64_t c = 0; f->members && c < f->classes; c++) free(f->members[c]);
  for (Piece *p = f->memory, *next; p; p = next) {
    next = p->next;
    free(p);
  }
  free(f->members);
  free(f->files);
  free(f->class);
  free(f->size);
  *f = (Folder){0};
}
