/* See packed.h. The codes are those of bitsandbytes. */
#include "packed.h"
#include <math.h>

enum { ZERO = 7 /* the code of 0 in nf4 */ };

/* The same numbers are in ampc_nf4 of templates/cpu.h and cuda.cuh. */
const float packed_nf4[16] = {
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};

/* Returns the code of the nearest value, for x from -1 to 1. */
static uint8_t nf4_code(float x)
{
  int code = 0;
  for (int i = 0; i < 15; i++) code += x > (packed_nf4[i] + packed_nf4[i + 1]) / 2;
  return (uint8_t)code;
}

/* Returns the largest magnitude; NaN if a value is not finite. Magnitudes near those at which f32
 * loses digits count as 0: otherwise the values of a block might not quantize to the same codes
 * again. */
static float largest_of(const float *x, int64_t n)
{
  float most = 0, rest = 0;
  for (int64_t i = 0; i < n; i++) {
    most = fmaxf(most, fabsf(x[i]));
    rest += x[i] - x[i]; /* NaN if x[i] is infinite or NaN */
  }
  return rest != 0 ? NAN : most < 0x1p-100F ? 0 : most;
}

static void int8_block(const float *x, int64_t n, float scale, uint8_t *codes)
{
  for (int64_t i = 0; i < n; i++)
    codes[i] = scale > 0 ? (uint8_t)(128 + (int)rintf(x[i] * (127 / scale))) : 128;
}

static void nf4_block(const float *x, int64_t n, float scale, uint8_t *codes)
{
  for (int64_t i = 0; i < n; i += 2) {
    uint8_t first = scale > 0 ? nf4_code(x[i] / scale) : ZERO;
    uint8_t second = scale > 0 ? nf4_code(x[i + 1] / scale) : ZERO;
    codes[i / 2] = (uint8_t)(first << 4 | second);
  }
}

bool packed_from(ampc_packing packing, int64_t block, const float *from, int64_t n, uint8_t *codes,
                 float *scales)
{
  for (int64_t i = 0; i < n; i += block) {
    float scale = scales[i / block] = largest_of(from + i, block);
    if (isnan(scale)) return false;
    if (packing == AMPC_NF4)
      nf4_block(from + i, block, scale, codes + i / 2);
    else
      int8_block(from + i, block, scale, codes + i);
  }
  return true;
}

void packed_to(ampc_packing packing, int64_t block, const uint8_t *codes, const float *scales,
               float *to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    float value = packing == AMPC_NF4 ? packed_nf4[i & 1 ? codes[i / 2] & 15 : codes[i / 2] >> 4]
                                      : (float)(codes[i] - 128) * (1.0F / 127);
    to[i] = value * scales[i / block];
  }
}
