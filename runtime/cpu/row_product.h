/* Products of a few rows: what a net computes for single samples, or for a token of each text. */
#pragma once
#include "pool.h"
#include "runtime/cpu/cpu.h"

/* True for a product of one row, or of up to 16 with a matrix in bf16, if that matrix does not stay
 * in the caches. */
bool row_product_takes(const ampc_gemm *g);
/* C = A B, or C + A B, with a bias. Each column is one sum in a fixed order. */
void row_product_run(Pool *pool, const ampc_gemm *g, const GemmOperands *at);
