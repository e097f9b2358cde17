/* See toolkit_places.h. No program is run to find a folder; a missing folder costs one lookup. */
#include "common/toolkit_places.h"
#include <dlfcn.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/toolkit.h"

static const char *given; /* --cuda-path */

void ampc_toolkit_path(const char *folder)
{
  given = folder;
}

/* ---- one folder ---- */

#define WHEELS "/lib*/python3*/*-packages/nvidia/*/lib" /* wheels of a Python installation */

/* Patterns of the folders with libraries in a given folder, which may be a toolkit, a Python
 * installation with wheels, its folder of packages, or a folder of libraries. dlopen refuses
 * targets for other processors. Of two for Arm, lib64 is a link to the machine's own: aarch64-linux
 * on a Jetson with CUDA 12, otherwise sbsa-linux. So it comes first. */
static const char *const insides[] = {"",       "/lib64",        "/lib", "/targets/*/lib",
                                      "/*/lib", "/nvidia/*/lib", WHEELS, NULL};
static const char *const pythons[] = {WHEELS, "/lib", NULL}; /* the second is for conda */

/* For qsort, with numbers compared as numbers: cuda-12.10 comes after cuda-12.8. */
static int compare_versions(const void *a, const void *b)
{
  return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* Opens the newest library that matches the pattern. */
static void *open_matching(const char *pattern)
{
  glob_t found;
  void *library = NULL;
  if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) return NULL;
  qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, compare_versions);
  for (size_t i = found.gl_pathc; i > 0 && !library; i--)
    library = dlopen(found.gl_pathv[i - 1], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
  return library;
}

/* Opens a library in `folder`, which is a path: glob's special characters in it are escaped. */
static void *open_inside(const char *folder, const char *const *in, const char *file)
{
  char pattern[TOOLKIT_PATTERN], *to = pattern;
  const char *const end = pattern + sizeof pattern / 2;
  for (; *folder && to < end; folder++) {
    if (strchr("*?[\\", *folder)) *to++ = '\\';
    *to++ = *folder;
  }
  void *library = NULL;
  size_t room = (size_t)(pattern + sizeof pattern - to);
  for (; !*folder && *in && !library; in++)
    if ((size_t)snprintf(to, room, "%s/%s", *in, file) < room) library = open_matching(pattern);
  return library;
}

/* ---- Python ---- */

/* Writes "/home/me/venv" if the first python3 on PATH is "/home/me/venv/bin/python3". */
static bool python_folder(char out[TOOLKIT_PATTERN])
{
  const char *path = getenv("PATH");
  for (size_t n; path && *path; path += n + (path[n] == ':')) {
    n = strcspn(path, ":");
    if (n == 0 || n > TOOLKIT_PATTERN / 2) continue;
    snprintf(out, TOOLKIT_PATTERN, "%.*s/python3", (int)n, path);
    if (access(out, X_OK) != 0) continue;
    snprintf(out, TOOLKIT_PATTERN, "%.*s", (int)n, path);
    char *bin = strrchr(out, '/');
    if (!bin || bin == out) return false;
    *bin = 0;
    return true;
  }
  return false;
}

/* ---- all places ---- */

typedef struct Place {
  const char *name;   /* text before the folder in messages; NULL: only the folder */
  const char *folder; /* NULL: this place does not exist */
  const char *const *insides;
} Place;

enum { MOST_PLACES = 8 };

/* Lists the folders to search. `python` and `home` are buffers for names of folders. */
static int list_places(Place out[MOST_PLACES], char python[TOOLKIT_PATTERN],
                       char home[TOOLKIT_PATTERN])
{
  const char *at_home = getenv("HOME");
  bool has_python = python_folder(python);
  bool of_system = has_python && strcmp(python, "/usr") == 0;
  snprintf(home, TOOLKIT_PATTERN, "%s/.local", at_home ? at_home : "");
  int n = 0;
  out[n++] = (Place){"CUDA_PATH", getenv("CUDA_PATH"), insides};
  out[n++] = (Place){"CUDA_HOME", getenv("CUDA_HOME"), insides};
  out[n++] = (Place){"VIRTUAL_ENV", getenv("VIRTUAL_ENV"), pythons};
  out[n++] = (Place){"the python3 in", has_python ? python : NULL, pythons};
  out[n++] = (Place){NULL, of_system ? "/usr/local" : NULL, pythons}; /* Debian's pip */
  out[n++] = (Place){NULL, has_python && at_home ? home : NULL, pythons};
  for (int i = 0; i < n; i++)
    if (out[i].folder && !out[i].folder[0]) out[i].folder = NULL;
  return n;
}

void *toolkit_open_given(const char *file)
{
  return given ? open_inside(given, insides, file) : NULL;
}

void *toolkit_open_found(const char *file)
{
  char python[TOOLKIT_PATTERN], home[TOOLKIT_PATTERN], pattern[TOOLKIT_PATTERN];
  Place places[MOST_PLACES];
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  int n = list_places(places, python, home);
  for (int i = 0; i < n && !library; i++)
    if (places[i].folder) library = open_inside(places[i].folder, places[i].insides, file);
  snprintf(pattern, sizeof pattern, "/usr/local/cuda*/lib64/%s", file);
  return library ? library : open_matching(pattern);
}

/* ---- messages ---- */

__attribute__((format(printf, 3, 4))) static void add(char *out, size_t size, const char *fmt, ...)
{
  size_t used = strlen(out);
  va_list args;
  va_start(args, fmt);
  vsnprintf(out + used, size - used, fmt, args);
  va_end(args);
}

void toolkit_tell_places(char *out, size_t size)
{
  char python[TOOLKIT_PATTERN], home[TOOLKIT_PATTERN];
  Place places[MOST_PLACES];
  int n = list_places(places, python, home);
  out[0] = 0;
  if (given) add(out, size, "--cuda-path %s, ", given);
  add(out, size, "the loader (LD_LIBRARY_PATH)");
  for (int i = 0; i < n; i++)
    if (places[i].folder)
      add(out, size, ", %s%s%s", places[i].name ? places[i].name : "", places[i].name ? " " : "",
          places[i].folder);
  add(out, size, ", /usr/local/cuda*");
}
