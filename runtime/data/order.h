/* Orders of samples: in an epoch, and in which `part` selects them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Fills order[n] with a permutation that depends on seed, block and epoch alone. */
void order_shuffle(int64_t *order, int64_t n, uint64_t seed, uint32_t block, int64_t epoch);

/* Fills order[n] with a permutation that depends on the seed alone. With label[n], the classes are
 * spread evenly: of each class, the first m samples have m / n of its samples, with an error below
 * 1. Returns false if memory runs out. */
bool order_part(int64_t *order, int64_t n, uint64_t seed, const int64_t *label);
