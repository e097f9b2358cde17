/* A product in cuBLASLt's terms: column-major, D[m, n] = alpha op(A) op(B) + beta C, then a bias
 * with one value per row. blas.c checks it and passes it to blas_maths.c. */
#pragma once
#include "ampc_plan.h"
#include "mock.h"

typedef struct Matrix {
  ampc_dtype type;
  int64_t rows, columns, ld, stride; /* stride: elements between the matrices of a batch */
  int32_t batch;
} Matrix;

typedef struct Product {
  Matrix a, b, c, d;                                      /* as they are stored */
  uint64_t a_at, b_at, c_at, d_at, bias_at, workspace_at; /* addresses on the device */
  size_t workspace;
  int64_t m, n, k;
  double alpha, beta;
  bool transpose_a, transpose_b, tf32, bias, relu, keeps_nan;
  bool wide; /* AMPC_F32 means doubles, which are summed in double */
  ampc_dtype bias_type;
} Product;

/* Returns the bytes from the first element to the last one, over all matrices of a batch. */
size_t matrix_bytes(const Product *p, const Matrix *m);
CuResult product_run(const void *product);
