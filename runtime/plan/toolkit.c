/* dlopen and dlsym; see toolkit.h. */
#include "toolkit.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "toolkit_places.h"

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

static void not_here(const char *stem, int newest, int oldest, const char *install, char *why)
{
  char places[AMPC_WHY_ROOM / 2], or_older[24] = "";
  toolkit_tell_places(places, sizeof places);
  if (oldest < newest) snprintf(or_older, sizeof or_older, " or .%d", oldest);
  snprintf(why, AMPC_WHY_ROOM,
           "%s.so.%d%s is not on this machine: install %s, or say where it is with --cuda-path "
           "DIR; looked for in %s",
           stem, newest, or_older, install, places);
}

static void *open_version(const char *stem, int version, void *open(const char *file))
{
  char file[64];
  snprintf(file, sizeof file, "%s.so.%d", stem, version);
  return open(file);
}

/* In the folder that was given any version counts more than a newer one elsewhere. */
int ampc_library_open(const char *stem, int newest, int oldest, const ampc_symbol *symbols,
                      size_t n, void *table, const char *install, char why[AMPC_WHY_ROOM])
{
  void *library = NULL;
  int version = newest + 1;
  while (!library && version > oldest) library = open_version(stem, --version, toolkit_open_given);
  if (!library) version = newest + 1;
  while (!library && version > oldest) library = open_version(stem, --version, toolkit_open_found);
  if (!library) {
    not_here(stem, newest, oldest, install, why);
    return 0;
  }
  const char *lacks = ampc_bind(library, symbols, n, table);
  if (!lacks) return version;
  snprintf(why, AMPC_WHY_ROOM, "%s.so.%d has no function %s: it is damaged or too old", stem,
           version, lacks);
  dlclose(library);
  return 0;
}

/* A library for a newer CUDA than the driver's makes what the driver cannot run. */
int ampc_toolkit_open(const char *stem, const ampc_symbol *symbols, size_t n, void *table,
                      char why[AMPC_WHY_ROOM])
{
  int supported = atomic_load(&driver);
  bool limited = supported && supported / 1000 < NEWEST;
  char install[120] = "the CUDA toolkit or its Python wheel";
  if (limited)
    snprintf(install, sizeof install,
             "that version of the CUDA toolkit, or a newer driver than this one for CUDA %d.%d",
             supported / 1000, supported % 1000 / 10);
  return ampc_library_open(stem, limited ? supported / 1000 : NEWEST, OLDEST, symbols, n, table,
                           install, why);
}
