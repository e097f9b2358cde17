/* What cuBLASLt needs to know for one kind of product; made once, see product.c. */
#pragma once
#include "cuda_device.h"

enum { MOST_ALGORITHMS = 8 };

typedef struct ProductPlan {
  ampc_gemm desc;
  uint32_t alignment[4]; /* bytes, of a, b, c, bias */
  LtMatmul matmul;
  LtLayout a, b, c; /* in cuBLASLt's column-major view: its first operand is b */
  LtHeuristic algorithm[MOST_ALGORITHMS]; /* as the heuristic ranks them */
  int n_algorithms;                       /* 0: the library has none for this product */
  int chosen;                             /* the first one that ran, or is still to be tried */
  bool keeps_nan;                         /* of a relu: `chosen` was seen to */
} ProductPlan;

/* The plan of g for operands at such addresses, from d->products or made now. It may have no
 * algorithm. */
ampc_status product_find(CudaDevice *d, const ampc_gemm *g, const void *a, const void *b,
                         const void *bias, const void *c, ProductPlan **out);
/* Says what failed, with the sizes and types of the product. */
ampc_status product_failed(const CudaDevice *d, const ampc_gemm *g, LtStatus status,
                           const char *what);
