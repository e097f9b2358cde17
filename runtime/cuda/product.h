/* cuBLASLt's objects for one kind of product, made once: see product.c. */
#pragma once
#include "cuda_device.h"

enum { MOST_ALGORITHMS = 8 };

typedef struct ProductKey { /* no padding: keys are compared as bytes */
  int64_t words[19];
  uint32_t alignment[4]; /* bytes, of a, b, c, bias */
} ProductKey;

typedef struct ProductPlan {
  ampc_gemm desc;
  ProductKey key;
  LtMatmul matmul;
  LtLayout a, b, c; /* in cuBLASLt's column-major view: its first operand is b */
  LtHeuristic algorithm[MOST_ALGORITHMS]; /* in the order of the heuristic */
  int n_algorithms;                       /* 0: cuBLASLt cannot compute this product */
  int chosen;     /* index of the first algorithm that ran, or of the next one to try */
  bool keeps_nan; /* products with relu: a test has shown that `chosen` keeps NaN */
} ProductPlan;

/* Finds in d->products the plan of product g for operands with the alignment of `at`, or makes one.
 * If cuBLASLt cannot compute the product, the plan has no algorithm. */
ampc_status product_find(CudaDevice *d, const ampc_gemm *g, const GemmOperands *at,
                         ProductPlan **out);
/* Writes "product of f16 [5, 4] and f16 [4, 6] to f16 with bias". Returns `out`. */
enum { PRODUCT_TEXT = 200 };
char *product_text(const ampc_gemm *g, char out[PRODUCT_TEXT]);
/* Whether `status` says that cuBLASLt has no algorithm for the product or that the algorithm does
 * not run. The heuristic returns INVALID_VALUE for some products of one row or one column, and
 * before CUDA 12.1 also if k is very large. */
bool product_is_refused(LtStatus status);
/* Computes g by our own kernel (own_product.c); the first call in a process prints a note. */
ampc_status own_product(CudaDevice *d, const ampc_gemm *g, const GemmOperands *at);
/* Sets an error that contains `what` and the sizes and types of the product. */
ampc_status product_failed(const CudaDevice *d, const ampc_gemm *g, LtStatus status,
                           const char *what);
