/* Commands of vendor libraries as matrix products, and reasons why tensor cores do not run them. */
#pragma once
#include "compiler/command/command.h"
#include "gpu.h"

/* Returns the product that a gemm is. `bytes`: operands and result of one launch, each once. */
ProductLoad gemm_load(const Compile *c, const ampc_gemm *d, double bytes);
/* Returns the product that a convolution is. Its rows are the pixels of y, or for the gradient of w
 * the output channels. */
ProductLoad conv_load(const Compile *c, const ampc_conv *d, double bytes);
double load_flops(const ProductLoad *p);

bool rows_aligned(const Compile *c, ampc_dtype type, int64_t elements);
/* Returns why tensor cores do not compute the product at full rate, or at all; NULL if they do. */
const char *tensor_against(const Gpu *g, const ProductLoad *p);

/* Returns why ampc's own kernels compute a convolution; NULL if cuDNN computes it. Observed with
 * cuDNN 9 (tests/cudnn): with f32 sums, 16-bit gradients of weights need whole vectors of channels
 * and one group. */
const char *conv_against(const Compile *c, const ampc_conv *d);

/* A kernel that multiplies in tiles (T_tiles), or the library that replaces it. */
typedef struct TileLoad {
  ProductLoad load; /* the products that attention needs, as a single product */
  double again;     /* multiplications of ampc's own kernel, relative to `load` */
  double draws;     /* number of random numbers that dropout draws */
  bool library;     /* true: the library computes the attention */
  bool tensor;      /* if it does not: ampc's kernel uses tensor cores */
  const char *by;   /* which library computes it, or why ampc's own kernel does */
  int nodes;        /* number of nodes in a CUDA graph */
} TileLoad;
/* True if the command is not launched: Command.deferred, and the library computes the attention.
 */
bool load_is_spared(Compile *c, uint32_t group);
bool tile_load(Compile *c, uint32_t group, double bytes, TileLoad *out); /* false: no such kernel */
/* Returns the cost if the library computes it. `us` uses the rate that attention reaches, `roof_us`
 * the rate of other products. */
Cost tile_cost(const Gpu *g, const TileLoad *t);
