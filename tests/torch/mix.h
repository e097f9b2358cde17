/* splitmix64: numbers in [0, 1), multiples of 2^-24. make_fixtures.py has the same function.
 * seed_of returns the seed of a parameter, as in make_models.py. */
#pragma once
#include <stdint.h>

static inline double mix(uint64_t seed, uint64_t i)
{
  uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u + seed * 0xD1342543DE82EF95u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return (double)(z >> 40) * 0x1p-24;
}

static inline uint64_t seed_of(const char *name) /* FNV-1a, 32 bits */
{
  uint32_t h = 2166136261u;
  for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
  return h;
}
