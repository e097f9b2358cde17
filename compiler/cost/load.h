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

/* Known of cuDNN 9 (tests/cudnn): it has attention from sm_80 on. */
bool attention_by_library(Compile *c, uint32_t group, ampc_attention *out);
/* The products that are asked for: forward two, backward five. */
ProductLoad attention_load(const ampc_attention *a, double bytes);
typedef struct AttentionCost {
  ProductLoad load; /* the arithmetic that is done */
  Cost cost;        /* roof_us: at the rate of other products */
  int nodes;        /* of a graph */
} AttentionCost;
AttentionCost attention_cost(const Gpu *g, const ampc_attention *a, double bytes);
