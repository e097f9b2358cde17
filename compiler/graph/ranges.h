/* The result of a `ranges` node, i32[parts, RANGE_FIELDS]: statistics of a value's elements, a row
 * for each part. They count absolute values in f32, which represents every number of the 16-bit
 * types. The runner reads them (runner/probe/). */
#pragma once
#include <stdint.h>

enum {
  RANGE_EXPONENTS = 256, /* field e < 256: number of elements with f32 exponent field e, from
                            2^(e - 127) to below twice that; 0: zeros and below 2^-126;
                            255: infinite or NaN */
  RANGE_ZEROS = 256,     /* number of zeros */
  RANGE_NANS,
  RANGE_OVER_F16,    /* number of finite elements of at least 65520, which f16 rounds to infinity */
  RANGE_GREATEST,    /* bits of the largest finite element; 0: all finite elements are 0 */
  RANGE_LEAST,       /* bits of the smallest nonzero element; bits of infinity: none */
  RANGE_FIELDS = 264 /* a multiple of 8, so that rows begin at whole vectors */
};

/* Returns the number of parts into which the elements are split; it depends on the shape only. A
 * part is enough work for a block, and its result is small compared to its elements. */
static inline int64_t range_parts(int64_t elements)
{
  int64_t parts = (elements + 65535) / 65536;
  return parts < 1 ? 1 : parts > 64 ? 64 : parts;
}
