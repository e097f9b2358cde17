/* The order of samples in an epoch. */
#pragma once
#include <stdint.h>

/* Fills order[n] with a permutation that depends on seed, block and epoch alone. */
void order_shuffle(int64_t *order, int64_t n, uint64_t seed, uint32_t block, int64_t epoch);
