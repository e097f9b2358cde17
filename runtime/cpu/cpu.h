/* What the files of the CPU device share. */
#pragma once
#include "device.h"
#include "pool.h"

/* See ampc_gemm; operands are plain memory. */
ampc_status cpu_gemm(Pool *pool, bool real64, const ampc_gemm *g, const void *a, const void *b,
                     const void *bias, void *c, void *workspace);

typedef struct ConvCache ConvCache; /* what is made once for each convolution of a program */
ConvCache *conv_cache_create(Pool *pool, bool real64); /* NULL without memory; `pool` outlives it */
void conv_cache_free(ConvCache *cache);
int64_t conv_cache_bytes(const ConvCache *cache); /* of the library's scratch space */
/* See ampc_conv; operands are plain memory. Prepares what was not prepared. */
ampc_status cpu_conv(ConvCache *cache, const ampc_conv *d, void *x, void *w, const void *bias,
                     void *y, void *workspace);
ampc_status cpu_conv_prepare(ConvCache *cache, const ampc_conv *d);
