/* Kernels for a GPU: text to cubins, by NVRTC. The JIT's CUDA half; see jit.h. */
#pragma once
#include "jit.h"

typedef struct CudaImages CudaImages;

/* Sets c->program->images. Kernels go to NVRTC a few at a time, on all cores; what was compiled
 * before comes from the cache. */
ampc_status jit_cuda_load(Compile *c, TextEdit *edit, void *data, CudaImages **out);
void jit_cuda_unload(CudaImages *images); /* NULL is fine; after the runtime has been freed */
