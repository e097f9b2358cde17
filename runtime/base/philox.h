/* Philox 4x32-10: four random words from a 128-bit counter and a 64-bit key (Salmon et al., 2011).
 * Any number of a sequence is computed from its counter, without the numbers before it. */
#pragma once
#include <stdint.h>

typedef struct Philox {
  uint32_t word[4];
} Philox;

static inline Philox philox(uint64_t key, uint64_t low, uint64_t high)
{
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  Philox c = {{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
  for (int round = 0; round < 10; round++) {
    uint64_t p = (uint64_t)0xD2511F53u * c.word[0], q = (uint64_t)0xCD9E8D57u * c.word[2];
    c = (Philox){{(uint32_t)(q >> 32) ^ c.word[1] ^ k0, (uint32_t)q,
                  (uint32_t)(p >> 32) ^ c.word[3] ^ k1, (uint32_t)p}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/* Returns half a block as a double in [0, 1) with 53 random bits. `half` is 0 or 1. */
static inline double philox_unit(const Philox *p, unsigned half)
{
  uint64_t bits = (uint64_t)p->word[2 * half] << 32 | p->word[2 * half + 1];
  return (double)(bits >> 11) * 0x1p-53;
}

/* Return element i of the sequence (key, stream), uniform in [0, 1) or standard normal. */
double philox_uniform(uint64_t key, uint64_t stream, uint64_t i);
double philox_normal(uint64_t key, uint64_t stream, uint64_t i);
