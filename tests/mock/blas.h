/* A product as cuBLASLt has it: column-major, D[m, n] = alpha op(A) op(B) + beta C, then a bias of
 * one value a row. What the checks of blas.c hand to the maths of blas_maths.c. */
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
  uint64_t a_at, b_at, c_at, d_at, bias_at, workspace_at; /* of the device */
  size_t workspace;
  int64_t m, n, k;
  double alpha, beta;
  bool transpose_a, transpose_b, tf32, bias, relu, keeps_nan;
  bool wide; /* AMPC_F32 stands for doubles, summed in doubles */
  ampc_dtype bias_type;
} Product;

/* From the first byte to the last of all matrices of a batch. */
size_t matrix_bytes(const Product *p, const Matrix *m);
CuResult product_run(const void *product);
