/* dlopen and dlsym; see toolkit.h. */
#include "common/toolkit.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "common/toolkit_places.h"

/* CUDA 12 has all functions that are called, and its drivers run what its libraries generate. */
enum { NEWEST = 13, OLDEST = 12 };

static atomic_int driver; /* the CUDA version that the driver supports; 0: no driver is loaded */

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

static void not_here(const ampc_library *l, char *why)
{
  char places[AMPC_WHY_ROOM / 2], or_older[24] = "";
  toolkit_tell_places(places, sizeof places);
  if (l->oldest < l->newest) snprintf(or_older, sizeof or_older, " or .%d", l->oldest);
  snprintf(why, AMPC_WHY_ROOM,
           "%s.so.%d%s is not on this machine: install %s, or give its folder with --cuda-path "
           "DIR; searched in %s",
           l->stem, l->newest, or_older, l->install, places);
}

/* Opens the newest version that exists, and sets *out_version to it. */
static void *open_newest(const ampc_library *l, void *open(const char *file), int *out_version)
{
  char file[64];
  void *library = NULL;
  for (int version = l->newest; version >= l->oldest && !library; version--) {
    snprintf(file, sizeof file, "%s.so.%d", l->stem, version);
    library = open(file);
    *out_version = version;
  }
  return library;
}

/* Opens a library. Any version in the folder of --cuda-path is preferred to others. */
int ampc_library_open(const ampc_library *l, void *table, char why[AMPC_WHY_ROOM])
{
  int version = 0;
  void *library = open_newest(l, toolkit_open_given, &version);
  if (!library) library = open_newest(l, toolkit_open_found, &version);
  if (!library) {
    not_here(l, why);
    return 0;
  }
  const char *lacks = ampc_bind(library, l->symbols, l->n_symbols, table);
  if (!lacks) return version;
  snprintf(why, AMPC_WHY_ROOM, "%s.so.%d has no function %s: it is damaged or too old", l->stem,
           version, lacks);
  dlclose(library);
  return 0;
}

/* Opens a library for the driver's CUDA: newer ones generate code that the driver cannot run. */
int ampc_toolkit_open(const ampc_library *l, void *table, char why[AMPC_WHY_ROOM])
{
  int supported = atomic_load(&driver);
  bool limited = supported && supported / 1000 < NEWEST;
  char install[120] = "the CUDA toolkit or its Python wheel";
  ampc_library fitting = *l;
  if (limited)
    snprintf(install, sizeof install,
             "that version of the CUDA toolkit, or a newer driver than this one for CUDA %d.%d",
             supported / 1000, supported % 1000 / 10);
  fitting.newest = limited ? supported / 1000 : NEWEST;
  fitting.oldest = OLDEST;
  fitting.install = install;
  return ampc_library_open(&fitting, table, why);
}
