/* Arithmetic on sizes, in 64 bits. */
#pragma once
#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

static inline int64_t ceil_div(int64_t a, int64_t b)
{
  return (a + b - 1) / b;
}
