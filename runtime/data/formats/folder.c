/* Folders of pictures. Names are compared byte by byte, so their order is the same everywhere. The
 * pictures of a class are those that torchvision's ImageFolder lists, in the same order, except for
 * hidden files and folders: names that begin with a dot are left out. */
#include "folder.h"
#include <ctype.h>
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

bool folder_is_picture(const char *name)
{
  static const char *const ends[] = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"};
  const char *dot = strrchr(name, '.');
  bool is = false;
  for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
    is |= strcasecmp(dot, ends[i]) == 0;
  return is && name[0] != '.';
}

/* Counts a file that is not read. */
static void count_other(Folder *f, const char *name)
{
  const char *dot = strrchr(name, '.');
  char end[sizeof f->others[0].end] = "";
  int i = 0;
  if (dot && strlen(dot) < sizeof end)
    for (int k = 0; dot[k]; k++) end[k] = (char)tolower((unsigned char)dot[k]);
  while (i < FOLDER_ENDS - 1 && f->others[i].n && strcmp(f->others[i].end, end) != 0) i++;
  if (!f->others[i].n++) stpcpy(f->others[i].end, i == FOLDER_ENDS - 1 ? "*" : end);
}

/* Whether an entry is a folder, or a link to one. */
static bool is_folder(DIR *within, const struct dirent *e)
{
  struct stat info;
  if (e->d_type == DT_DIR) return true;
  if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) return false;
  return fstatat(dirfd(within), e->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

/* The folders from that of a class to the current one: a link to one of them would never end. */
typedef struct Within {
  const struct Within *outer;
  dev_t device;
  ino_t number;
} Within;

static ampc_status enter(int folder, const char *path, Within *w)
{
  struct stat info;
  if (fstat(folder, &info) != 0)
    return ampc_fail(AMPC_BAD_FILE, "cannot open the folder %s: %s", path, strerror(errno));
  w->device = info.st_dev;
  w->number = info.st_ino;
  for (const Within *o = w->outer; o; o = o->outer)
    if (o->device == w->device && o->number == w->number)
      return ampc_fail(AMPC_BAD_FILE, "%s is a link to a folder that contains it: remove the link",
                       path);
  return AMPC_OK;
}

/* What to do with an entry of a folder; `e->d_name` is not hidden. */
typedef ampc_status Take(Folder *f, const char *path, DIR *d, const struct dirent *e, void *to);

static ampc_status each_entry(Folder *f, const char *path, DIR *d, Take *take, void *to)
{
  ampc_status status = AMPC_OK;
  errno = 0; /* only errno says whether readdir failed */
  for (struct dirent *e; !status && (e = readdir(d)); errno = 0)
    if (e->d_name[0] != '.') status = take(f, path, d, e, to);
  if (status || !errno) return status;
  return ampc_fail(AMPC_BAD_FILE, "cannot read the folder %s: %s", path, strerror(errno));
}

static ampc_status open_folder(const char *path, DIR **out)
{
  *out = opendir(path);
  if (*out) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "cannot open the folder %s: %s", path, strerror(errno));
}

/* The search for the pictures of a class. */
typedef struct Search {
  Names *found;
  const char *below; /* of the current folder, from the folder of the class: "", "more/" */
  const Within *within;
} Search;

static ampc_status search(Folder *f, const char *path, const Search *s);

static ampc_status search_entry(Folder *f, const char *path, DIR *d, const struct dirent *e,
                                void *context)
{
  const Search *s = context;
  char *name = NULL, *inner = NULL;
  ampc_status status = AMPC_OK;
  bool folder = is_folder(d, e);
  if (!folder && !folder_is_picture(e->d_name)) {
    count_other(f, e->d_name);
    return AMPC_OK;
  }
  bool fits = asprintf(&name, "%s%s%s", s->below, e->d_name, folder ? "/" : "") >= 0;
  if (fits && folder) {
    fits = asprintf(&inner, "%s/%s", path, e->d_name) >= 0;
    if (fits) status = search(f, inner, &(Search){s->found, name, s->within});
    if (fits) free(inner);
  } else if (fits) {
    fits = add_name(f, s->found, name, strlen(name));
  }
  if (fits) free(name);
  return fits ? status : out_of_memory(path);
}

/* Finds the pictures in a folder and in those within it. */
static ampc_status search(Folder *f, const char *path, const Search *s)
{
  DIR *d;
  Within here = {.outer = s->within};
  ampc_status status = open_folder(path, &d);
  if (status) return status;
  status = enter(dirfd(d), path, &here);
  if (!status) status = each_entry(f, path, d, search_entry, &(Search){s->found, s->below, &here});
  closedir(d);
  return status;
}

/* For qsort: by folder, then by name, as ImageFolder orders them. */
static int by_folder(const void *a, const void *b)
{
  const char *x = *(const char *const *)a, *y = *(const char *const *)b;
  const char *in_x = strrchr(x, '/'), *in_y = strrchr(y, '/');
  size_t m = in_x ? (size_t)(in_x - x) : 0, n = in_y ? (size_t)(in_y - y) : 0;
  int order = memcmp(x, y, m < n ? m : n);
  if (order || m != n) return order ? order : m < n ? -1 : 1;
  return strcmp(x + m, y + n);
}

static ampc_status take_class(Folder *f, const char *path, DIR *d, const struct dirent *e, void *to)
{
  if (is_folder(d, e))
    return add_name(f, to, e->d_name, strlen(e->d_name)) ? AMPC_OK : out_of_memory(path);
  count_other(f, e->d_name);
  return AMPC_OK;
}

static ampc_status find_classes(Folder *f, const char *path, const char *args, Names *out)
{
  int n;
  const char *at = args_next(args, "class", NULL, &n);
  if (!at) {
    DIR *d;
    ampc_status status = open_folder(path, &d);
    if (status) return status;
    status = each_entry(f, path, d, take_class, out);
    closedir(d);
    if (out->n) qsort(out->at, (size_t)out->n, sizeof *out->at, by_name);
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
  ampc_status status = search(f, within, &(Search){&names, "", NULL});
  if (!status && !names.n)
    status =
        ampc_fail(AMPC_BAD_FILE, "class %s is empty: %s has no picture: names end in " FOLDER_READS,
                  f->class[c], within);
  if (names.n) qsort(names.at, (size_t)names.n, sizeof *names.at, by_folder);
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
  return folder_is_picture(slash ? slash + 1 : path) && !args_next(args, "class", NULL, &n) &&
         stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* For qsort: by ending. */
static int by_end(const void *a, const void *b)
{
  return strcmp(((const FolderOther *)a)->end, ((const FolderOther *)b)->end);
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
  int kinds = 0;
  while (kinds < FOLDER_ENDS - 1 && out->others[kinds].n) kinds++;
  qsort(out->others, (size_t)kinds, sizeof *out->others, by_end);
  if (!status) status = put_in_order(out, path);
  if (!status) status = note_members(out, path);
  return status;
}

int64_t folder_others(const Folder *f, char *to, size_t size)
{
  int64_t all = 0;
  size_t used = 0;
  *to = 0;
  for (int i = 0; i < FOLDER_ENDS && f->others[i].n; i++) {
    const char *end = f->others[i].end;
    const char *shown = *end == '*' ? "others" : *end ? end : "without an ending";
    all += f->others[i].n;
    used += (size_t)snprintf(to + used, size - used, "%s%lld %s", i ? ", " : "",
                             (long long)f->others[i].n, shown);
    if (used >= size) used = size - 1;
  }
  return all;
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
