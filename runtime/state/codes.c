/* Moments in 8 bits, as the host reads and writes them. Kernels have the same functions, in
 * templates/update.cuh.
 *
 * Note [codes]: Dettmers et al., "8-bit Optimizers via Block-wise Quantization", 2022. A block is
 * AMPC_CODE_BLOCK neighbours in memory. It has a scale, its number of largest magnitude, with the
 * sign of that number. A moment is the scale times the value of its code, which is at most 1. The
 * values are those of the paper's dynamic map: 0, 1, and in each of seven decades
 * [10^(e-8), 10^(e-7)], e = 1 to 7, the centres of 2^e equal intervals; of 2^(e-1) intervals and
 * their negatives if the moment may be negative. So the largest number is always exact, also if it
 * is negative; the paper's scale has no sign, and its map has no -1.
 *
 * Code 0 has the value 0. Codes from 1 on have rising values, 255 is 1; with signs 128 is 1, and
 * 256 - k is the negative of k < 128. With c = k + 3/2, or 2 k + 1 with signs, the value is
 * 10^(e-8) (9 m - 8), where c = 2^e m and 1 <= m < 2.
 *
 * A moment that is never negative is 0 only if the number is 0, not if it rounds to 0: Adam divides
 * the first moment by the root of the second, and with 0 it would divide by eps alone.
 *
 * Values times scale are rounded to f32, and packing these numbers gives the same codes and the
 * same scale: the number of largest magnitude is the scale itself, and each other number is far
 * nearer to its own value than to the next. Scales below 2^-100 become 0, so that no product is
 * subnormal. If a number of a block is not finite, the scale is NaN, and so are all its numbers. */
#include "codes.h"
#include "ampc_values.h"
#include <math.h>
#include <string.h>

/* Returns the value of a code that is not negative. */
static float value_of(int k, bool any_sign)
{
  int e;
  float m = 2 * frexpf(any_sign ? 2.0f * (float)k + 1 : (float)k + 1.5f, &e), power = 1;
  for (int i = 2; i < e; i++) power *= 10; /* exact */
  return k ? fminf((9 * m - 8) * power * 1e-7f, 1) : 0;
}

void codes_values(bool any_sign, float value[256])
{
  for (int k = 0; k < 256; k++)
    value[k] = any_sign && k > 128 ? -value_of(256 - k, true) : value_of(k, any_sign);
}

static float block_scale(const float *from, int64_t n)
{
  float most = 0, least = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; i++) {
    finite = finite && isfinite(from[i]);
    most = fmaxf(most, from[i]);
    least = fminf(least, from[i]);
  }
  float scale = most >= -least ? most : least;
  if (!finite) return NAN;
  return fabsf(scale) < 0x1p-100f ? 0 : scale;
}

/* Returns the code whose value is nearest to x, by bisection. Without a sign only 0 has code 0. */
static int code_of(const float value[256], bool any_sign, float x)
{
  bool negative = any_sign && x < 0;
  int low = 0, high = negative ? 127 : any_sign ? 128 : 255;
  float size = negative ? -x : x;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (value[middle] <= size)
      low = middle;
    else
      high = middle;
  }
  int code = size - value[low] < value[high] - size ? low : high;
  if (!any_sign && size > 0 && code == 0) code = 1;
  return negative ? 256 - code : code;
}

float codes_pack(const float value[256], bool any_sign, const float *from, int64_t n,
                 uint8_t *codes)
{
  float scale = block_scale(from, n);
  memset(codes, 0, AMPC_CODE_BLOCK);
  for (int64_t i = 0; i < n && scale == scale && scale != 0; i++)
    codes[i] = (uint8_t)code_of(value, any_sign, from[i] / scale);
  return scale;
}

void codes_unpack(const float value[256], const uint8_t *codes, float scale, int64_t n, float *to)
{
  for (int64_t i = 0; i < n; i++) to[i] = value[codes[i]] * scale;
}
