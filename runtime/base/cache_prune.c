/* Removes files from the cache; see cache_prune.h. Other processes may add, use and remove files at
 * the same time. A missing file is not an error: a process that needs it rebuilds it. */
#include "cache_prune.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cache.h"

enum {
  UNFINISHED = 3600, /* seconds after which an unfinished file counts as abandoned */
  UNREAD =
      30 * 24 * 3600 /* seconds after which ids of texts are removed; their size does not count */
};

/* A file of the cache. `used` is the time of its last access. */
typedef struct File {
  char name[64];
  int64_t bytes;
  struct timespec used;
} File;

typedef struct Files {
  File *at;
  size_t n, room;
  int64_t bytes;
} Files;

/* Whether the cache itself wrote the file. Other files, such as a user's, are never removed. */
static bool is_entry(const char *name)
{
  static const char *const kinds[] = {"so", "cubin", "txt", "cudnn"};
  const char *dot = strrchr(name, '.');
  bool known = false;
  for (size_t i = 0; dot && i < sizeof kinds / sizeof *kinds; i++)
    known |= strcmp(dot + 1, kinds[i]) == 0;
  return known && strlen(name) < sizeof((File *)0)->name;
}

static bool has_ids(const char *name)
{
  const char *dot = strrchr(name, '.');
  return dot && strcmp(dot, ".ids") == 0;
}

static bool add_file(Files *f, const char *name, const struct stat *info)
{
  if (f->n == f->room) {
    size_t room = f->room ? 2 * f->room : 64;
    File *at = realloc(f->at, room * sizeof *at);
    if (!at) return false;
    f->at = at;
    f->room = room;
  }
  File *file = &f->at[f->n++];
  *file = (File){.bytes = info->st_size, .used = info->st_atim};
  strcpy(file->name, name);
  f->bytes += info->st_size;
  return true;
}

/* Lists the entries of the folder except `kept`. Removes abandoned unfinished files at once. */
static void look(DIR *folder, const char *kept, Files *out)
{
  int fd = dirfd(folder);
  time_t now = time(NULL);
  for (struct dirent *d; (d = readdir(folder));) {
    struct stat info;
    if (fstatat(fd, d->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    if (strncmp(d->d_name, "new.", 4) == 0 && now - info.st_mtime > UNFINISHED)
      unlinkat(fd, d->d_name, 0);
    else if (has_ids(d->d_name) && now - info.st_atime > UNREAD)
      unlinkat(fd, d->d_name, 0);
    else if (strcmp(d->d_name, kept) == 0 && is_entry(kept))
      out->bytes += info.st_size;
    else if (is_entry(d->d_name) && !add_file(out, d->d_name, &info))
      return;
  }
}

/* Compares for qsort: least recently used first, then by name, so that the order is defined. */
static int by_use(const void *a, const void *b)
{
  const File *x = a, *y = b;
  if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
  if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* Removes the least recently used entries, but not `kept`, until all entries together with `kept`
 * have at most `bytes` bytes. */
void cache_prune_to(const char *kept, int64_t bytes)
{
  const char *slash = strrchr(kept, '/');
  char *path = slash ? strndup(kept, (size_t)(slash - kept)) : NULL;
  DIR *folder = path ? opendir(path) : NULL;
  free(path);
  if (!folder) return;
  Files files = {0};
  look(folder, slash + 1, &files);
  if (files.n) qsort(files.at, files.n, sizeof *files.at, by_use);
  for (size_t i = 0; i < files.n && files.bytes > bytes; i++)
    if (unlinkat(dirfd(folder), files.at[i].name, 0) == 0) files.bytes -= files.at[i].bytes;
  closedir(folder);
  free(files.at);
}

void cache_prune(const char *kept)
{
  cache_prune_to(kept, CACHE_BYTES);
}
