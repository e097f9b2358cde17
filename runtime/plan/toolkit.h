/* NVIDIA's toolkit libraries: where they lie and which version fits the driver. The compiler loads
 * NVRTC and the runtime cuBLASLt; both look here, so that one process takes both of one version.
 * Nothing is linked: a library is loaded when it is first asked for.
 *
 * Looked through in this order: the folder of --cuda-path; where the loader looks
 * (LD_LIBRARY_PATH); CUDA_PATH and CUDA_HOME; the wheels of VIRTUAL_ENV and of the python3 on PATH;
 * /usr/local/cuda*. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { AMPC_WHY_ROOM = 800 }; /* bytes of a reason: what is wrong and what to do, in one line */

/* A version of cuDNN, 91501 for 9.15.1, on a GPU, 90 for sm_90; 0: unknown. */
typedef struct ampc_cudnn {
  int version, capability;
} ampc_cudnn;

/* A function of a library, and where a table of pointers keeps it. */
typedef struct ampc_symbol {
  const char *name;
  size_t offset; /* of the pointer in the table */
} ampc_symbol;

/* Fills in `table`; NULL, or the name of the first function that the library lacks. `library` is
 * what dlopen gave. */
const char *ampc_bind(void *library, const ampc_symbol *symbols, size_t n, void *table);

/* The driver supports CUDA `version` (12040 for 12.4): toolkit libraries that are opened from now
 * on are of its major version or older. Safe from any thread. */
void ampc_toolkit_limit(int version);

/* Libraries are looked for in this folder first: a toolkit, a virtual environment, a folder of
 * Python packages, or of libraries. The text must outlive them. Before anything is opened; from one
 * thread. */
void ampc_toolkit_path(const char *folder);

typedef struct ampc_library {
  const char *stem; /* STEM.so.N */
  const ampc_symbol *symbols;
  size_t n_symbols;
  int newest, oldest;  /* N; of ampc_library_open, as is what brings it, in words: */
  const char *install; /* "its package" */
} ampc_library;

/* Opens the newest library of NVIDIA's toolkit that fits and fills in `table`. Gives N, or 0 with
 * the reason in `why`. The library stays open until the process ends. */
int ampc_toolkit_open(const ampc_library *l, void *table, char why[AMPC_WHY_ROOM]);
/* The same for a library with versions of its own. */
int ampc_library_open(const ampc_library *l, void *table, char why[AMPC_WHY_ROOM]);
