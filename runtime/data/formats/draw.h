/* Random numbers of a sample: a sequence that depends only on seed, source, epoch and sample. So
 * any thread computes the same numbers, and a resumed run computes the same numbers as a run that
 * was not interrupted. */
#pragma once
#include "runtime/base/philox.h"

typedef struct Draw {
  uint64_t seed, low, high;
  uint32_t next;
} Draw;

enum { DRAW_STREAM = 0x64726177 }; /* separates these numbers from other uses of the seed */

static inline Draw draw_begin(uint64_t seed, uint64_t stream, int64_t epoch, int64_t sample)
{
  return (Draw){.seed = seed,
                .low = (uint64_t)sample << 12, /* 2^12 numbers for each of 2^52 samples */
                .high = (uint64_t)DRAW_STREAM << 32 ^ stream ^ (uint64_t)epoch};
}

static inline double draw_unit(Draw *d) /* in [0, 1) */
{
  Philox p = philox(d->seed, d->low | (d->next++ & 0xfff), d->high);
  return philox_unit(&p, 0);
}

static inline double draw_between(Draw *d, double low, double high)
{
  return low + (high - low) * draw_unit(d);
}

/* Returns a random integer in [0, bound); bound is at least 1. The probability of a value differs
 * from 1 / bound by less than bound / 2^53. */
static inline int64_t draw_below(Draw *d, int64_t bound)
{
  int64_t n = (int64_t)(draw_unit(d) * (double)bound);
  return n < bound ? n : bound - 1;
}
