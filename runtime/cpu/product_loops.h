/* Matrix products in f32 by loops of our own. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The product C [m, n] = A B, or C += A B. Steps are in elements. Rows of C are contiguous. */
typedef struct LoopProduct {
  int64_t m, n, k;
  const float *a, *b;
  int64_t a_row, a_depth, b_depth, b_column; /* steps along m and k in A, along k and n in B */
  float *c;
  int64_t c_row;
  bool add;
} LoopProduct;

/* Each element of C is one sum, in the order of k. So the bits depend neither on m and n nor on the
 * processor. */
void product_loops_run(const LoopProduct *p);
