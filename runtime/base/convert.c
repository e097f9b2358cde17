/* Conversions of arrays. The loops have no branches, so that compilers vectorise them. For f16,
 * most processors have an instruction, used if present. Both ways give the same bits. */
#include <string.h>
#include "convert.h"
#include "common/machine.h"
#include "runtime/plan/types.h"

static inline uint32_t bits_of(float f)
{
  uint32_t x;
  memcpy(&x, &f, sizeof x);
  return x;
}

static inline float float_of(uint32_t x)
{
  float f;
  memcpy(&f, &x, sizeof f);
  return f;
}

/* Note [subnormal f16]: the ulp of 0.5 is 2^-24, the smallest f16. Adding 0.5 rounds a value below
 * 2^-14 to the f16 grid, in the hardware's rounding mode, and leaves the result in the low bits. */
static inline uint16_t f16_of(float f)
{
  uint32_t x = bits_of(f), a = x & 0x7fffffffu;
  uint32_t normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1)) >> 13;
  uint32_t small = bits_of(float_of(a) + 0.5f) - 0x3f000000u;
  uint32_t h = a < 0x38800000u ? small : normal;
  h = a >= 0x477ff000u ? 0x7c00u : h; /* from 65520 on */
  h = a > 0x7f800000u ? 0x7e00u | ((a >> 13) & 0x3ffu) : h;
  return (uint16_t)(h | ((x >> 16) & 0x8000u));
}

/* Widens: changes the exponent's bias from 15 to 127. A subtraction normalises subnormals. Infinity
 * and NaN get the largest exponent, and a NaN becomes quiet. */
static inline float f32_of_f16(uint16_t h)
{
  uint32_t a = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
  uint32_t small = bits_of(float_of(a + 0x38800000u) - 0x1p-14f); /* 2^-14 + a, minus 2^-14 */
  uint32_t x = a < 0x00800000u ? small : a + 0x38000000u;
  x = a >= 0x0f800000u ? a + 0x70000000u : x;
  x = a > 0x0f800000u ? x | 0x00400000u : x;
  return float_of(x | sign);
}

/* Rounds to bf16, the upper half of f32. Adding half an ulp, less one, plus the last bit that stays
 * rounds to even. A NaN must not round up to infinity. */
static inline uint16_t bf16_of(float f)
{
  uint32_t x = bits_of(f);
  uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1)) >> 16;
  return (uint16_t)((x & 0x7fffffffu) > 0x7f800000u ? (x >> 16) | 0x40u : rounded);
}

static inline float f32_of_bf16(uint16_t b)
{
  return float_of((uint32_t)b << 16);
}

static inline float tf32_of(float f)
{
  uint32_t x = bits_of(f);
  uint32_t rounded = (x + 0xfffu + ((x >> 13) & 1)) & ~0x1fffu;
  return float_of((x & 0x7fffffffu) > 0x7f800000u ? x : rounded);
}

static void f16_widen(const void *from, float *to, int64_t n)
{
  const uint16_t *h = from;
  for (int64_t i = machine_widen(h, to, n); i < n; i++) to[i] = f32_of_f16(h[i]);
}

static void f16_narrow(const float *from, void *to, int64_t n)
{
  uint16_t *h = to;
  for (int64_t i = machine_narrow(from, h, n); i < n; i++) h[i] = f16_of(from[i]);
}

static void bf16_widen(const void *from, float *to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) to[i] = f32_of_bf16(((const uint16_t *)from)[i]);
}

static void bf16_narrow(const float *from, void *to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) ((uint16_t *)to)[i] = bf16_of(from[i]);
}

#define CONVERSIONS(KIND, name, ...) [AMPC_##KIND] = {name##_widen, name##_narrow},
static const struct {
  void (*widen)(const void *from, float *to, int64_t n);
  void (*narrow)(const float *from, void *to, int64_t n);
} conversions[AMPC_DTYPE_COUNT] = {AMPC_NARROW_FLOATS(CONVERSIONS)};

void convert_widen(ampc_dtype from_type, const void *from, float *to, int64_t n)
{
  if (ampc_is_narrow(from_type))
    conversions[from_type].widen(from, to, n);
  else
    memcpy(to, from, (size_t)n * sizeof *to);
}

void convert_narrow(ampc_dtype to_type, const float *from, void *to, int64_t n)
{
  if (ampc_is_narrow(to_type))
    conversions[to_type].narrow(from, to, n);
  else
    memcpy(to, from, (size_t)n * sizeof *from);
}

void convert_tf32(const float *from, float *to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) to[i] = tf32_of(from[i]);
}

void number_store(ampc_dtype t, bool real64, void *base, int64_t i, double value)
{
  switch (t) {
  case AMPC_F32:
    if (real64) {
      ((double *)base)[i] = value;
    } else {
      ((float *)base)[i] = (float)value;
    }
    break;
  case AMPC_I32:
    ((int32_t *)base)[i] = (int32_t)value;
    break;
  case AMPC_I64:
    ((int64_t *)base)[i] = (int64_t)value;
    break;
  case AMPC_U8:
    ((uint8_t *)base)[i] = (uint8_t)(int64_t)value;
    break;
  case AMPC_BOOL:
    ((uint8_t *)base)[i] = value != 0;
    break;
  default:
    convert_narrow(t, &(float){(float)value}, (char *)base + i * ampc_dtype_size(t), 1);
    break;
  }
}

double number_load(ampc_dtype t, bool real64, const void *base, int64_t i)
{
  float wide;
  switch (t) {
  case AMPC_F32:
    return real64 ? ((const double *)base)[i] : (double)((const float *)base)[i];
  case AMPC_I32:
    return ((const int32_t *)base)[i];
  case AMPC_I64:
    return (double)((const int64_t *)base)[i];
  case AMPC_U8:
  case AMPC_BOOL:
    return ((const uint8_t *)base)[i];
  default:
    convert_widen(t, (const char *)base + i * ampc_dtype_size(t), &wide, 1);
    return (double)wide;
  }
}
