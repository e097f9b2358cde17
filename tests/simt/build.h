/* The two texts of a job's kernels, CUDA and CPU, as libraries whose memory accesses are watched.
 */
#pragma once
#include "ampc_rt.h"
#include "compiler/command/command.h"
#include "runner/jit/jit.h"

typedef struct SimtEntry { /* a kernel of the CUDA text, as simt_kernels[] there */
  const char *name;
  void (*thread)(void *const *args);
  ampc_cpu_kernel *enter; /* what the runtime calls: simt_enter with *context */
  void **context;
} SimtEntry;

typedef struct CpuEntry { /* as emit_kernels writes them */
  const char *name;
  ampc_cpu_kernel *function;
} CpuEntry;

typedef struct SimtKernel { /* of the CUDA text, in its order */
  const char *name;
  uint32_t group, n_args;
  const bool *number; /* of its arguments: it is no pointer */
} SimtKernel;

typedef struct SimtLibraries {
  void *cuda, *cpu;          /* of dlopen */
  const SimtKernel *kernels; /* of the compile's arena */
  uint32_t n;
  const SimtEntry *entries;
  const CpuEntry *twins;
  int *no_signs;      /* 1: sums of the CPU text add up their terms without signs */
  char *shared, *own; /* shared memory of the CUDA text; the CPU text's own variables */
  size_t shared_size, own_size;
} SimtLibraries;

/* `c` has been compiled for target cpu. `edit` (NULL: none) changes the CUDA text. */
ampc_status simt_build(Compile *c, TextEdit *edit, void *data, SimtLibraries *out);
void simt_unload(SimtLibraries *l);

/* The same for one CUDA text that no job has, behind the prelude. */
ampc_status simt_build_text(const Text *cuda, Arena *arena, void **library);
void simt_find_shared(void *library, char **out, size_t *out_size);

/* Between these two the same compiled job is one of target sm_80, as far as emit/ and the geometry
 * of launches are concerned. */
void simt_as_cuda(Compile *c);
void simt_as_cpu(Compile *c);
