/* Fisher-Yates. Its random numbers are computed from positions, so any epoch can come first. */
#include "order.h"
#include "runtime/base/philox.h"

enum { ORDER_STREAM = 0x6f726472 }; /* keeps these numbers apart from other uses of the seed */

/* Returns number i of the sequence, in [0, bound). The bias is below bound / 2^64. */
static int64_t below(uint64_t seed, uint64_t stream, int64_t i, int64_t bound)
{
  Philox p = philox(seed, (uint64_t)i, stream);
  uint64_t bits = (uint64_t)p.word[0] << 32 | p.word[1];
  return (int64_t)(((unsigned __int128)bits * (uint64_t)bound) >> 64);
}

/* Shuffles with a stream of epoch and block, so that no two of them have the same order. */
void order_shuffle(int64_t *order, int64_t n, uint64_t seed, uint32_t block, int64_t epoch)
{
  uint64_t stream = (uint64_t)ORDER_STREAM << 32 ^ (uint64_t)epoch ^ (uint64_t)block << 56;
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = below(seed, stream, i, i + 1), swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
}
