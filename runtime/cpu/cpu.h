/* What the files of the CPU device share. */
#pragma once
#include "runtime/device.h"
#include "pool.h"

typedef struct GemmCache GemmCache; /* what is made once for the products of a program */
GemmCache *gemm_cache_create(Pool *pool, bool real64); /* NULL without memory; `pool` outlives it */
void gemm_cache_free(GemmCache *cache);
int64_t gemm_cache_bytes(const GemmCache *cache); /* of the library's scratch space */
/* Makes what the product needs, so that gemm_cache_bytes knows of it. */
ampc_status cpu_gemm_prepare(GemmCache *cache, const ampc_gemm *g);
/* Whether products are of these types: of floats, with real64 of f32 alone, which are doubles. */
bool cpu_takes(const ampc_dtype *types, int n, bool real64);
/* See ampc_gemm; operands are plain memory. */
ampc_status cpu_gemm(GemmCache *cache, const ampc_gemm *g, const GemmOperands *at);

typedef struct ConvCache ConvCache; /* what is made once for each convolution of a program */
/* NULL without memory; the others outlive it. */
ConvCache *conv_cache_create(Pool *pool, GemmCache *products, bool real64);
void conv_cache_free(ConvCache *cache);
int64_t conv_cache_bytes(const ConvCache *cache); /* of scratch space outside the workspaces */
/* See ampc_conv; operands are plain memory. Prepares what was not prepared. */
ampc_status cpu_conv(ConvCache *cache, const ampc_conv *d, const ConvOperands *at);
ampc_status cpu_conv_prepare(ConvCache *cache, const ampc_conv *d);
/* What computes it on this machine: the library's name for its code, "loops" or "product". The name
 * lives as long as the cache. */
ampc_status cpu_conv_implementation(ConvCache *cache, const ampc_conv *d, const char **out);
