/* Rounding and encoding of every type, computed from the definition of the formats. The conversions
 * of the runtime and the kernels are under test, so they are not used here. */
#include "number.h"
#include <math.h>
#include <string.h>

/* Returns the exponent of the smallest normal number. */
static int min_exponent(DType d)
{
  return 2 - (1 << (ampc_type_of(d)->exponent - 1));
}

static double greatest(DType d)
{
  int fraction = ampc_type_of(d)->mantissa;
  return ldexp(2 - ldexp(1, -fraction), 1 - min_exponent(d));
}

static int exponent_of(DType d, double x)
{
  int exponent = isfinite(x) && x != 0 ? ilogb(x) : min_exponent(d);
  return exponent < min_exponent(d) ? min_exponent(d) : exponent;
}

/* Returns the distance between neighbours at |x|; for subnormal numbers, at the smallest normal. */
double number_ulp(DType d, double x)
{
  return ldexp(1.0, exponent_of(d, x) - ampc_type_of(d)->mantissa);
}

/* Rounds toward zero and saturates at the limits of the type; NaN becomes 0. */
static double round_integer(DType d, double x)
{
  static const double low[] = {
      [AMPC_I32] = -0x1p31, [AMPC_I64] = -0x1p63, [AMPC_U8] = 0, [AMPC_BOOL] = 0};
  static const double high[] = {
      [AMPC_I32] = 0x1p31 - 1, [AMPC_I64] = 0x1p63, [AMPC_U8] = 255, [AMPC_BOOL] = 1};
  if (isnan(x)) return 0;
  x = trunc(x);
  return x < low[d] ? low[d] : x > high[d] ? high[d] : x;
}

/* Rounds to the nearest value of the type. A value above the largest number by less than half an
 * ulp rounds to that number, any larger one to infinity. Dividing by a power of two and multiplying
 * by it are exact; nearbyint rounds ties to even. */
double number_round(DType d, double x)
{
  if (!dtype_is_float(d)) return round_integer(d, x);
  if (!isfinite(x) || x == 0) return x;
  double ulp = number_ulp(d, x);
  double r = nearbyint(x / ulp) * ulp;
  return fabs(r) > greatest(d) ? copysign(INFINITY, x) : r;
}

double number_round_bits(double x, int digits)
{
  if (!isfinite(x) || x == 0) return x;
  double unit = ldexp(1.0, ilogb(x) - digits + 1);
  return nearbyint(x / unit) * unit;
}

bool number_same(double a, double b)
{
  return a == b || (isnan(a) && isnan(b));
}

double number_worse(double a, double b)
{
  return a > b || isnan(a) ? a : b;
}

/* Returns the bits of a narrow float: sign, exponent, fraction. x is already a value of the type.
 * Subnormal numbers need no case of their own: the units of the fraction carry over into the
 * exponent. */
static uint32_t encode(DType d, double x)
{
  const ampc_type *t = ampc_type_of(d);
  int fraction = t->mantissa, exponent_bits = t->exponent;
  unsigned top = ((1u << exponent_bits) - 1) << fraction;
  unsigned sign = signbit(x) ? 1u << (exponent_bits + fraction) : 0;
  x = fabs(x);
  if (isnan(x)) return sign | top | 1u << (fraction - 1);
  if (isinf(x)) return sign | top;
  double units = x / number_ulp(d, x); /* an integer, as x is a value of the type */
  unsigned biased = (unsigned)(exponent_of(d, x) - min_exponent(d)) << fraction;
  return sign | (biased + (unsigned)units);
}

/* Decodes a float. An exponent of all ones means infinity or NaN, all zeros a subnormal number. */
static double decode(DType d, uint32_t bits)
{
  int fraction = ampc_type_of(d)->mantissa, top = (1 << ampc_type_of(d)->exponent) - 1;
  int exponent = (int)(bits >> fraction) & top, low = (int)bits & ((1 << fraction) - 1);
  double x;
  if (exponent == top) {
    x = low ? NAN : INFINITY;
  } else if (exponent == 0) {
    x = ldexp(low, min_exponent(d) - fraction);
  } else {
    x = ldexp(low + (1 << fraction), min_exponent(d) + exponent - 1 - fraction);
  }
  return bits >> fraction > (uint32_t)top ? -x : x;
}

/* Converts to i64. 2^63 becomes the largest i64, which a double cannot represent. */
static int64_t to_i64(double x)
{
  return x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}

void number_encode(DType d, bool real64, const double *from, int64_t n, void *to)
{
  const int64_t size = ampc_dtype_size(d);
  uint32_t bits;
  for (int64_t i = 0; i < n; i++) {
    switch (d) {
    case AMPC_F32:
      if (real64)
        ((double *)to)[i] = from[i];
      else
        ((float *)to)[i] = (float)from[i];
      break;
    case AMPC_I32:
      ((int32_t *)to)[i] = (int32_t)from[i];
      break;
    case AMPC_I64:
      ((int64_t *)to)[i] = to_i64(from[i]);
      break;
    case AMPC_U8:
    case AMPC_BOOL:
      ((uint8_t *)to)[i] = (uint8_t)from[i];
      break;
    default:
      bits = encode(d, from[i]);
      memcpy((char *)to + i * size, &bits, (size_t)size);
      break;
    }
  }
}

void number_decode(DType d, bool real64, const void *from, int64_t n, double *to)
{
  const int64_t size = ampc_dtype_size(d);
  uint32_t bits = 0;
  for (int64_t i = 0; i < n; i++) {
    switch (d) {
    case AMPC_F32:
      to[i] = real64 ? ((const double *)from)[i] : ((const float *)from)[i];
      break;
    case AMPC_I32:
      to[i] = ((const int32_t *)from)[i];
      break;
    case AMPC_I64:
      to[i] = (double)((const int64_t *)from)[i];
      break;
    case AMPC_U8:
    case AMPC_BOOL:
      to[i] = ((const uint8_t *)from)[i];
      break;
    default:
      memcpy(&bits, (const char *)from + i * size, (size_t)size);
      to[i] = decode(d, bits);
      break;
    }
  }
}

/* Returns the type that a letter of the tables names: Note [rows]. */
DType number_type(char letter)
{
  switch (letter) {
  case 'f':
    return AMPC_F32;
  case 'h':
    return AMPC_F16;
  case 'b':
    return AMPC_BF16;
  case 'i':
    return AMPC_I32;
  case 'l':
    return AMPC_I64;
  case 'u':
    return AMPC_U8;
  default:
    return AMPC_BOOL;
  }
}

/* Returns a number of SplitMix64: the same ones on every machine. Any seed is valid. */
uint64_t number_random(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double number_uniform(uint64_t *state)
{
  return ldexp((double)(number_random(state) >> 11), -53);
}
