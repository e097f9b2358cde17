/* What cuBLASLt needs to know for one kind of product; made once, see product.c. */
#pragma once
#include "cuda_device.h"

typedef struct ProductPlan {
  ampc_gemm desc;
  uint32_t alignment[4]; /* bytes, of a, b, c, bias */
  LtMatmul matmul;
  LtLayout a, b, c; /* in cuBLASLt's column-major view: its first operand is b */
  LtAlgorithm algorithm;
  size_t workspace;
} ProductPlan;

/* The plan of g for operands at such addresses, from d->products or made now. */
ampc_status product_find(CudaDevice *d, const ampc_gemm *g, const void *a, const void *b,
                         const void *bias, const void *c, const ProductPlan **out);
LtHandle product_library(const CudaDevice *d);
/* Says what failed, with the sizes and types of the product. */
ampc_status product_failed(const CudaDevice *d, const ampc_gemm *g, LtStatus status,
                           const char *what);
