/* Products of one row: what a net computes for a single sample or token. */
#pragma once
#include "pool.h"
#include "runtime/cpu/cpu.h"

/* True for a product of one row and a matrix that does not stay in the caches. */
bool row_product_takes(const ampc_gemm *g);
/* C = A B, or C + A B, with a bias. Each column is one sum in a fixed order. */
void row_product_run(Pool *pool, const ampc_gemm *g, const GemmOperands *at);
