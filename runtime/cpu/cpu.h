/* Shared by the files of the CPU device. */
#pragma once
#include "runtime/device.h"
#include "pool.h"

typedef struct GemmCache GemmCache; /* primitives of a program's products, made once */
/* Returns NULL if memory runs out. `pool` must outlive the cache. `own`: without oneDNN. */
GemmCache *gemm_cache_create(Pool *pool, bool real64, bool own);
void gemm_cache_free(GemmCache *cache);
bool gemm_cache_is_own(const GemmCache *cache);
int64_t gemm_cache_bytes(const GemmCache *cache); /* bytes of the library's scratch space */
/* Makes the primitives of the product, so that gemm_cache_bytes counts their scratch space. */
ampc_status cpu_gemm_prepare(GemmCache *cache, const ampc_gemm *g);
/* Whether products have these types: all floats; with real64 only f32, which means double. */
bool cpu_takes(const ampc_dtype *types, int n, bool real64);
/* Computes a product (ampc_gemm); operands are plain memory. */
ampc_status cpu_gemm(GemmCache *cache, const ampc_gemm *g, const GemmOperands *at);

typedef struct ConvCache ConvCache; /* objects of a program's convolutions, made once */
/* Returns NULL if memory runs out. `pool` and `products` must outlive the cache. If the products
 * are own, so are the convolutions. */
ConvCache *conv_cache_create(Pool *pool, GemmCache *products, bool real64);
void conv_cache_free(ConvCache *cache);
int64_t conv_cache_bytes(const ConvCache *cache); /* bytes of scratch outside the workspaces */
/* Computes a convolution (ampc_conv), prepared first if needed; operands are plain memory. */
ampc_status cpu_conv(ConvCache *cache, const ampc_conv *d, const ConvOperands *at);
ampc_status cpu_conv_prepare(ConvCache *cache, const ampc_conv *d);
/* Sets *out to the name of the code that computes the convolution on this machine: the library's
 * name, "loops" or "product". The name is valid as long as the cache. */
ampc_status cpu_conv_implementation(ConvCache *cache, const ampc_conv *d, const char **out);

/* Add and move what members exchange: DeviceOps. */
ampc_status cpu_add(Pool *pool, ampc_dtype type, void *to, const void *from, int64_t apart,
                    uint32_t n, int64_t count);
ampc_status cpu_round(Device *d, void *to, const void *from, int64_t count);
ampc_status cpu_swap(Device *d, const void *out, void *in, int64_t bytes);
ampc_status cpu_gather(Device *d, void *all, int64_t bytes, bool more);
