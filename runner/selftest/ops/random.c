/* Random ops: only the formulas of given random numbers. Suite random tests the rest. */
#include "entry.h"

/* x[1]: the uniform random number */
ELEMENT(drop_parts, x[1] >= a[0] ? x[0] / (1 - a[0]) : 0, fabs(r))

static const OpTest tests[] = {
    {OP_drop, NO_CASES("suite random: the paper's generator, shares, independence"),
     NO_GRADIENT("suite random: the gradient passes where the value passed")},
    {OP_drop_parts, "nk", "=", MAP(drop_parts), ULPS(1.5, "three roundings"),
     CASES("fhb 3x2x4 i:3x2x1{1,0,0,1,1,1} p=0.3", "fh 5x3 i:5x1{0,1,0,1,0} p=1"),
     GRADIENTS("fhb 3x2x2 i:3x1x1{0,1,1} p=0.25")},
    {OP_uniform, NO_CASES("suite random: the paper's generator")},
    {OP_normal, NO_CASES("suite random: Box and Muller, mean and variance")},
};
FAMILY(random)
