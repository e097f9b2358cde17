/* dlopen and dlsym; see toolkit.h. */
#include "toolkit.h"
#include <dlfcn.h>
#include <glob.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* CUDA 12 has all that is called, and its drivers run what its libraries make. */
enum { NEWEST = 13, OLDEST = 12 };

static atomic_int driver; /* the CUDA version that it supports; 0: none has been loaded */

const char *ampc_bind(void *library, const ampc_symbol *symbols, size_t n, void *table)
{
  for (size_t i = 0; i < n; i++) {
    void *found = dlsym(library, symbols[i].name);
    if (!found) return symbols[i].name;
    memcpy((char *)table + symbols[i].offset, &found, sizeof found);
  }
  return NULL;
}

void ampc_toolkit_limit(int version)
{
  atomic_store(&driver, version);
}

/* By its name, wherever the loader looks; else where toolkits are installed. */
static void *open_version(const char *stem, int version)
{
  char name[64], pattern[128];
  snprintf(name, sizeof name, "%s.so.%d", stem, version);
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  glob_t found;
  snprintf(pattern, sizeof pattern, "/usr/local/cuda*/lib64/%s", name);
  if (glob(pattern, 0, NULL, &found) != 0) return NULL;
  for (size_t i = found.gl_pathc; i > 0 && !library; i--)
    library = dlopen(found.gl_pathv[i - 1], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
  return library;
}

static void not_here(const char *stem, int supported, int newest, char *why)
{
  if (newest < NEWEST)
    snprintf(why, AMPC_WHY_ROOM,
             "%s.so.%d is not on this machine (the driver supports CUDA %d.%d): install that "
             "version of the CUDA toolkit or a newer driver",
             stem, newest, supported / 1000, supported % 1000 / 10);
  else
    snprintf(why, AMPC_WHY_ROOM,
             "%s.so.%d or .%d is not on this machine: install the CUDA toolkit (12 or 13), or put "
             "the folder of the library into LD_LIBRARY_PATH",
             stem, NEWEST, OLDEST);
}

/* A library for a newer CUDA than the driver's makes what the driver cannot run. */
int ampc_toolkit_open(const char *stem, const ampc_symbol *symbols, size_t n, void *table,
                      char why[AMPC_WHY_ROOM])
{
  int supported = atomic_load(&driver);
  int newest = supported ? supported / 1000 : NEWEST;
  if (newest > NEWEST) newest = NEWEST;
  for (int version = newest; version >= OLDEST; version--) {
    void *library = open_version(stem, version);
    if (!library) continue;
    const char *lacks = ampc_bind(library, symbols, n, table);
    if (!lacks) return version;
    snprintf(why, AMPC_WHY_ROOM, "%s.so.%d has no function %s: it is damaged or too old", stem,
             version, lacks);
    dlclose(library);
    return 0;
  }
  not_here(stem, supported, newest, why);
  return 0;
}
