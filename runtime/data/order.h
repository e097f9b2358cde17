/* Orders of samples: in an epoch, and in which `part` selects them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Fills order[n] with a permutation that depends on seed, block and epoch alone. */
void order_shuffle(int64_t *order, int64_t n, uint64_t seed, uint32_t block, int64_t epoch);

/* Samples by class, from which epochs draw that have all classes equally often. */
typedef struct Balance {
  int64_t *sample; /* [samples] by class; those of class c begin at start[c] */
  int64_t *drawn;  /* [samples] the same in the order of an epoch */
  int64_t *start;  /* [classes + 1] */
  int64_t *turn;   /* [classes] the order of the classes in a round */
  int64_t samples, classes;
} Balance;
/* Groups n samples by their labels, without those whose label is *ignored; NULL: none is. Returns
 * false if memory runs out. The caller calls balance_close, also after a failure. */
bool balance_open(Balance *b, const int64_t *label, int64_t n, const int64_t *ignored);
void balance_close(Balance *b);
/* Fills order[n] for an epoch: rounds, in each of which every class has one sample, in a
 * random order of classes. The samples of a class come in a random order, from the beginning again
 * when all were taken. Depends on seed, block and epoch alone. */
void order_balance(const Balance *b, int64_t *order, int64_t n, uint64_t seed, uint32_t block,
                   int64_t epoch);

/* Fills order[n] with a permutation that depends on the seed alone. With label[n], the classes are
 * spread evenly: of each class, the first m samples have m / n of its samples, with an error below
 * 1. Returns false if memory runs out. */
bool order_part(int64_t *order, int64_t n, uint64_t seed, const int64_t *label);
