/* What a `ranges` node tells of a value, for each of the parts that blocks look at: i32[parts,
 * RANGE_FIELDS]. Absolute values throughout, as f32 has them, which has every number of the 16-bit
 * types. The runner reads it back (runner/probe/). */
#pragma once
#include <stdint.h>

enum {
  RANGE_EXPONENTS = 256, /* field e < 256: how many have exponent field e of f32: 2^(e - 127) and up
                            to twice that; 0: zeros and below 2^-126; 255: infinite, or NaN */
  RANGE_ZEROS = 256,     /* how many are 0 */
  RANGE_NANS,
  RANGE_OVER_F16,    /* finite ones that f16 rounds to infinity: 65520 and above */
  RANGE_GREATEST,    /* bits of the greatest finite one; 0: there is none but 0 */
  RANGE_LEAST,       /* bits of the least that is not 0; those of infinity: there is none */
  RANGE_FIELDS = 264 /* a multiple of 8: rows begin at whole vectors */
};

/* Into how many parts the elements are cut: by the shape alone. A part is some work for a block,
 * and what the parts tell is little beside what they read. */
static inline int64_t range_parts(int64_t elements)
{
  int64_t parts = (elements + 65535) / 65536;
  return parts < 1 ? 1 : parts > 64 ? 64 : parts;
}
