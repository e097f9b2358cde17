/* NVIDIA's toolkit libraries: where they are and which version fits the driver. The compiler loads
 * NVRTC, and the runtime loads cuBLASLt. Both use this search, so a process gets both in one
 * version. Nothing is linked: a library is loaded when it is first needed.
 *
 * The search order: the folder of --cuda-path; the loader's folders (LD_LIBRARY_PATH); CUDA_PATH
 * and CUDA_HOME; the wheels of VIRTUAL_ENV and of the python3 on PATH; /usr/local/cuda*. */
#pragma once
#include "runtime/plan/types.h"
#include <stdbool.h>
#include <stddef.h>

/* A function of a library, and its place in a table of pointers. */
typedef struct ampc_symbol {
  const char *name;
  size_t offset; /* offset of the pointer in the table */
} ampc_symbol;

/* Writes the pointers of `symbols` to `table`. Returns NULL, or the name of the first function that
 * the library lacks. `library` is a handle from dlopen. */
const char *ampc_bind(void *library, const ampc_symbol *symbols, size_t n, void *table);

/* Sets the CUDA version that the driver supports (12040 for 12.4). Toolkit libraries that are
 * opened from now on have at most its major version. Any thread may call it. */
void ampc_toolkit_limit(int version);

/* Sets the folder that is searched first: a toolkit, a virtual environment, or a folder of Python
 * packages or of libraries. `folder` must stay valid until the process ends. Call it from one
 * thread, before any library is opened. */
void ampc_toolkit_path(const char *folder);

typedef struct ampc_library {
  const char *stem; /* STEM.so.N */
  const ampc_symbol *symbols;
  size_t n_symbols;
  int newest, oldest;  /* the range of N. ampc_toolkit_open ignores this range and `install` */
  const char *install; /* what to install, for messages: "its package" */
} ampc_library;

/* Opens the newest version of a library of NVIDIA's toolkit that the driver supports, and writes
 * the pointers of l->symbols to `table`. Returns the major version (the N of STEM.so.N), or 0 with
 * the reason in `why`. The library stays open until the process ends. */
int ampc_toolkit_open(const ampc_library *l, void *table, char why[AMPC_WHY_ROOM]);
/* Opens the newest version of a library with its own version numbers: l->oldest to l->newest. */
int ampc_library_open(const ampc_library *l, void *table, char why[AMPC_WHY_ROOM]);
