/* The result of a `ranges` node, i32[parts, RANGE_FIELDS]: statistics of a value, a row for each
 * part. They are of absolute values in f32, which represents every number of the 16-bit types. The
 * runner reads them (runner/probe/). */
#pragma once
#include <stdint.h>

enum {
  RANGE_EXPONENTS = 256, /* field e < 256: number of elements with f32 exponent field e, from
                            2^(e - 127) to below twice that; 0: zeros and below 2^-126;
                            255: infinite or NaN */
  RANGE_ZEROS = 256,     /* number of zeros */
  RANGE_NANS,
  RANGE_OVER_F16,    /* number of finite elements that f16 rounds to infinity: 65520 and above */
  RANGE_GREATEST,    /* bits of the largest finite element; 0: there is none except 0 */
  RANGE_LEAST,       /* bits of the smallest nonzero element; bits of infinity: there is none */
  RANGE_FIELDS = 264 /* a multiple of 8, so that rows begin at whole vectors */
};

/* The number of parts that the elements are split into; it depends on the shape only. A part is
 * enough work for a block, and its result is small compared to what it reads. */
static inline int64_t range_parts(int64_t elements)
{
  int64_t parts = (elements + 65535) / 65536;
  return parts < 1 ? 1 : parts > 64 ? 64 : parts;
}
