/* Random numbers from Philox blocks: each block serves two neighbouring elements. */
#include <math.h>
#include "philox.h"

/* A block has two numbers: element i is number i mod 2 of block i / 2. */
double philox_uniform(uint64_t key, uint64_t stream, uint64_t i)
{
  Philox p = philox(key, i / 2, stream);
  return philox_unit(&p, i % 2);
}

/* Box-Muller: element 2k is the cosine of the pair, element 2k + 1 the sine. */
double philox_normal(uint64_t key, uint64_t stream, uint64_t i)
{
  Philox p = philox(key, i / 2, stream);
  double radius = sqrt(-2 * log(1 - philox_unit(&p, 0))); /* 1 - u lies in (0, 1] */
  double angle = 2 * 3.14159265358979323846 * philox_unit(&p, 1);
  return radius * (i % 2 ? sin(angle) : cos(angle));
}
