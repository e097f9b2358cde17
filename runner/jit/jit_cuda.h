/* The CUDA half of the JIT (jit.h): NVRTC compiles the text of kernels to cubins. */
#pragma once
#include "jit.h"

typedef struct CudaImages CudaImages;

/* Sets c->program->images. All cores compile, a few kernels per call of NVRTC. Units that were
 * compiled before are read from the cache. */
ampc_status jit_cuda_load(Compile *c, TextEdit *edit, void *data, CudaImages **out);
void jit_cuda_unload(CudaImages *images); /* after the runtime has been freed; NULL is allowed */
