/* Commands of vendors' libraries as products, and what speaks against tensor cores. */
#pragma once
#include "compiler/command/command.h"
#include "gpu.h"

/* `bytes`: of one launch, operands and result once. */
ProductLoad gemm_load(const Compile *c, const ampc_gemm *d, double bytes);
/* As a product: a row for each pixel of y, or of w. */
ProductLoad conv_load(const Compile *c, const ampc_conv *d, double bytes);
double load_flops(const ProductLoad *p);

enum { TENSOR_ALIGNMENT = 16 }; /* bytes at multiples of which rows have to begin */
bool rows_aligned(const Compile *c, ampc_dtype type, int64_t elements);
/* Why the product is not for tensor cores, or not at their full rate; NULL: it is. */
const char *tensor_against(const Gpu *g, const ProductLoad *p);

/* Known of cuDNN 9 (tests/cudnn): with sums in f32, gradients of weights in 16 bits want whole
 * vectors of channels and one group. Why our own kernels compute it; NULL: cuDNN does. */
const char *conv_against(const Compile *c, const ampc_conv *d);

/* A kernel that multiplies in tiles (T_tiles), which a library may do instead. */
typedef struct TileLoad {
  ProductLoad load; /* the products that are asked for, as one */
  double again;     /* how many times as much our kernel multiplies */
  double draws;     /* random numbers */
  bool library;     /* it does it, not our kernel */
  const char *by;   /* which library, or why our kernel */
  int nodes;        /* of a graph */
} TileLoad;
bool tile_load(Compile *c, uint32_t group, double bytes, TileLoad *out); /* false: it is none */
/* By the library; roof_us is at the rate of other products. */
Cost tile_cost(const Gpu *g, const TileLoad *t);
