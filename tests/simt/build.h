/* Builds a job's CUDA and CPU kernels as libraries with hooks on memory accesses. */
#pragma once
#include "ampc_rt.h"
#include "compiler/command/command.h"
#include "runner/jit/jit.h"

typedef struct SimtEntry { /* an element of simt_kernels[] in the CUDA text */
  const char *name;
  void (*thread)(void *const *args);
  ampc_cpu_kernel *enter; /* called by the runtime: simt_enter with *context */
  void **context;
} SimtEntry;

typedef struct CpuEntry { /* an element of the table that emit_kernels writes */
  const char *name;
  ampc_cpu_kernel *function;
} CpuEntry;

typedef struct SimtKernel { /* a kernel of the CUDA text, in its order */
  const char *name;
  uint32_t group, n_args;
  const bool *number; /* per argument: true if it is not a pointer */
} SimtKernel;

typedef struct SimtLibraries {
  void *cuda, *cpu;          /* from dlopen */
  const SimtKernel *kernels; /* owned by the compile's arena */
  uint32_t n;
  const SimtEntry *entries;
  const CpuEntry *twins;
  int *no_signs;      /* 1: sums of the CPU text add absolute values */
  char *shared, *own; /* shared: shared memory of the CUDA text; own: variables of the CPU text */
  size_t shared_size, own_size;
} SimtLibraries;

/* Makes both texts of `c`, compiled for target cpu. `edit` changes the CUDA text, or is NULL. Of
 * `out` it sets only the list of kernels. */
ampc_status simt_texts(Compile *c, TextEdit *edit, void *data, SimtLibraries *out, Text *cuda,
                       Text *cpu);
ampc_status simt_build(Compile *c, TextEdit *edit, void *data, SimtLibraries *out);
void simt_unload(SimtLibraries *l);

/* Switch the target: kernel/ and the commands treat the job as one for it. simt_as_cuda: sm_80. */
void simt_use_target(Compile *c, const char *target);
void simt_as_cuda(Compile *c);
void simt_as_cpu(Compile *c);
