/* A temporary folder for the files of a test. */
#pragma once
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"

static char temp_folder[] = "/tmp/ampc-test-XXXXXX";

static inline void temp_open(void)
{
  MUST(mkdtemp(temp_folder));
}

/* Returns the path of a file in the folder. The text stays valid for the next three calls. */
static inline const char *temp_path(const char *name)
{
  static char paths[4][512];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", temp_folder, name);
  return path;
}

static inline void temp_write(const char *path, const void *bytes, size_t size)
{
  FILE *f = fopen(path, "wb");
  MUST(f);
  MUST(fwrite(bytes, 1, size, f) == size);
  MUST(fclose(f) == 0);
}

/* Reads the whole file into memory. The caller frees it. */
static inline char *temp_read(const char *path, size_t *size)
{
  struct stat info;
  MUST(stat(path, &info) == 0);
  *size = (size_t)info.st_size;
  char *bytes = malloc(*size + 1);
  FILE *f = fopen(path, "rb");
  MUST(bytes && f && fread(bytes, 1, *size, f) == *size);
  fclose(f);
  return bytes;
}

/* Returns the number of files in the folder. */
static inline int temp_count(void)
{
  DIR *d = opendir(temp_folder);
  MUST(d);
  int n = 0;
  for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
  closedir(d);
  return n;
}

static inline void temp_close(void)
{
  DIR *d = opendir(temp_folder);
  MUST(d);
  for (struct dirent *e; (e = readdir(d));)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlink(temp_path(e->d_name));
  closedir(d);
  rmdir(temp_folder);
}
