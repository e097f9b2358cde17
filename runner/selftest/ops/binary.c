/* Elementwise ops of several inputs. */
#include "entry.h"

/* Returns the remainder with the sign of y. *moved: y was added to get that sign. fmod is exact,
 * while x / y in floating point may be rounded up to an integer. */
static double signed_remainder(double x, double y, bool *moved)
{
  double rest = fmod(x, y);
  *moved = rest != 0 && (rest < 0) != (y < 0);
  return *moved ? rest + y : rest;
}

static double python_modulo(double x, double y)
{
  bool moved;
  return signed_remainder(x, y, &moved);
}

static double whole_quotient(double x, double y)
{
  bool moved;
  if (y == 0) return x / y;
  signed_remainder(x, y, &moved);
  return nearbyint((x - fmod(x, y)) / y) - moved;
}

/* arithmetic */
ELEMENT(add, x[0] + x[1], fabs(r))
ELEMENT(sub, x[0] - x[1], fabs(r))
ELEMENT(mul, x[0] * x[1], fabs(r))
ELEMENT(div, x[0] / x[1], fabs(r))
ELEMENT(floor_divide, whole_quotient(x[0], x[1]), fabs(r))
ELEMENT(remainder, python_modulo(x[0], x[1]), fabs(x[1]))
ELEMENT(pow, pow(x[0], x[1]), fabs(r))
ELEMENT(atan2, atan2(x[0], x[1]), fabs(r))
ELEMENT(atan2_backward, x[1] == 0 && x[2] == 0 ? 0 : x[0] * x[1] / (x[1] * x[1] + x[2] * x[2]),
        fabs(r))
/* C's fmax ignores a NaN; here a NaN is the result, as in PyTorch */
ELEMENT(maximum, isnan(x[0]) || isnan(x[1]) ? NAN : fmax(x[0], x[1]), fabs(r))
ELEMENT(minimum, isnan(x[0]) || isnan(x[1]) ? NAN : fmin(x[0], x[1]), fabs(r))
/* comparisons and bits: exact, so the scale is 0 */
ELEMENT(eq, x[0] == x[1], 0)
ELEMENT(ne, x[0] != x[1], 0)
ELEMENT(lt, x[0] < x[1], 0)
ELEMENT(le, x[0] <= x[1], 0)
ELEMENT(gt, x[0] > x[1], 0)
ELEMENT(ge, x[0] >= x[1], 0)
ELEMENT(logical_and, (double)((int64_t)x[0] & (int64_t)x[1]), 0)
ELEMENT(logical_or, (double)((int64_t)x[0] | (int64_t)x[1]), 0)
/* where returns one of its inputs, unchanged */
ELEMENT(where, x[0] != 0 ? x[1] : x[2], fabs(r))
ELEMENT(addcmul, x[0] + a[0] * x[1] * x[2], fabs(x[0]) + fabs(a[0] * x[1] * x[2]))
ELEMENT(addcdiv, x[0] + a[0] * x[1] / x[2], fabs(x[0]) + fabs(a[0] * x[1] / x[2]))
ELEMENT(prelu, x[0] > 0 ? x[0] : x[0] * x[1], fabs(r))
ELEMENT(clamp, isnan(x[0]) ? NAN : fmin(fmax(x[0], a[0]), a[1]), fabs(r))
ELEMENT(clamp_backward, x[1] > a[0] && x[1] < a[1] ? x[0] : 0, fabs(r))

static const OpTest tests[] = {
    {OP_add, "ww", "=", MAP(add), ROUNDED,
     CASES("fhbil 1025 1025", "fhb 7x33 33", "fhb 7x1 1x33", "fh 33 7x33", "f 2x3x5 3x1", "f s 33",
           "h 33 s", "f 1x5 3x1x1", "f 2x1x3x1x2x2 3x1x2x1", "f s s", "u 33 33",
           "fh 257x1025 1025", /* PyTorch promotes two types by a tensor of one element, not by a
                                * scalar */
           "f h:33 33 result=f", "h b:33 33 result=f", "h 33 f:s{1.5} result=h",
           "hb 33 f:1{1.5} result=f"),
     GRADIENTS("fhb 7x3~n 3~n", "f 5x1~n 1x3~n", "f s~n 7~n")},
    {OP_sub, "ww", "=", MAP(sub), ROUNDED, CASES("fhbil 1023 1023", "fhb 7x33 33", "f 33 7x33"),
     GRADIENTS("fhb 7x3~n 3~n", "f 3~n 7x3~n"),
     CHAINS({"sigmoid(a + b) * (a - b)", "fhb 5x3~n 3~n 5x3~d"})},
    {OP_mul, "ww", "=", MAP(mul), ROUNDED,
     CASES("fhbil 1025 1025", "fhb 7x33 7x1", "h i:33 33 result=h", "f i:33 33 result=f"),
     GRADIENTS("fhb 7x3~n 7x1~n", "f 2x1x5~n 3x1~n"),
     CHAINS(/* the gradient of a has three terms */
            {"a * a + a", "fhb 33~n 33~d"})},
    {OP_div, "ww", "=", MAP(div), ROUNDED,
     CASES("fhb 1025 1025", "fhb 7x33 33", "il 33 33~q result=f"),
     GRADIENTS("fhb 7x3~n 3~q", "f 3~n 7x3~q")},
    {OP_counted_mean, "ww", "=", MAP(div), ROUNDED,
     CASES("fhb 33 33", "f s 2{0,3}", "f l:s s result=f"), GRADIENTS("fhb 7x3~n 3~q")},
    {OP_floor_divide, "nq", "=", MAP(floor_divide), EXACT,
     CASES("fhbil 1025 1025",
           /* signs, zero and infinity as divisors */
           "fhb 8{5,-5,-0.0,inf,5,-5,nan,1} 8{0,0,2,2,inf,inf,1,nan}",
           /* quotients that f32 division rounds up to the next integer */
           "f 4{1,0.3,-0.3,16777216} 4{0.1,0.1,0.1,3}")},
    {OP_remainder, "nq", "=", MAP(remainder),
     ULPS(1, "fmod is exact, adding y rounds; relative to |y|"),
     CASES("fhbil 1025 1025", "fhb 8{5,-5,-0.0,inf,5,-5,nan,1} 8{0,0,2,2,inf,inf,1,nan}"),
     GRADIENTS("fhb 9{5.3,-5.3,7.1,-7.4,2.9,3.3,-1.2,0.6,8.5} 9~v")},
    {OP_pow, "pn", "=", MAP(pow), ULPS(2, "maths.cuh: 2"),
     CASES("fhb 1025 1025",
           /* zero, negative and infinite bases, as in C and PyTorch */
           "fhb 9{0,0,-2,-2,nan,2,inf,1,-8} 9{0,-1,3,0.5,0,nan,-1,inf,2}",
           /* integers: a negative power truncates to 0, except for bases 1 and -1 */
           "il 10{2,3,-2,0,0,5,1,-1,-1,2} 10{10,3,5,0,3,1,-7,-3,-2,-1}",
           "u 4{2,3,0,15} 4{7,5,0,2}"),
     GRADIENTS("fhb 17~v 17~n", "f 5x3~v 3~n", "f 7~v s{2}"),
     CHAINS(/* constant powers have rules of their own */
            {"a ** 3 + (a ** 2 * a ** 0.5 + a ** 1)", "fhb 33~v 33~d"})},
    {OP_atan2, "ww", "=", MAP(atan2), ULPS(2, "maths.cuh: 2"),
     CASES("fhb 1025 1025", "fhb 1025~n 1025~n", "fhb 7x1 33", "il 33 33 result=f",
           "f h:33 33 result=f",
           /* the signs of zeros, infinities */
           "fhb 8{0,-0.0,0,-0.0,1,-1,0,-0.0} 8{0,0,-0.0,-0.0,0,-0.0,-2,-2}",
           "fhb 8{inf,inf,-inf,-inf,inf,1,-1,nan} 8{inf,-inf,inf,-inf,3,inf,-inf,1}",
           "f 4{3e38,1e-40,3e38,1e-45} 4{3e38,1e-40,1e-40,-3e38}"),
     GRADIENTS("fhb 7x3~z 7x3~z", "fhb 5x3~z 3~z")},
    {OP_atan2_backward, "dnn", "=", MAP(atan2_backward),
     ULPS(4, "two squares and a sum of one sign, a quotient, a product"),
     CASES("fhb 1025 1025 1025", "fhb 2{1,-1} 2{0,0} 2{0,-0.0}"), GRADIENTS("fhb 33~d 33~z 33~z")},
    {OP_maximum, "ww", "=", MAP(maximum), EXACT,
     CASES("fhbil 1025 1025", "uo 33 33", "fhb 4{nan,1,inf,-inf} 4{1,nan,-inf,nan}"),
     GRADIENTS("fhb 7x3~n 3~n")},
    {OP_minimum, "ww", "=", MAP(minimum), EXACT,
     CASES("fhbil 1025 1025", "fhb 4{nan,1,inf,-inf} 4{1,nan,-inf,nan}"),
     GRADIENTS("fhb 7x3~n 3~n")},
    {OP_eq, "ww", "o", MAP(eq), EXACT,
     CASES("fhbil 1025 1025", "fhb 5{nan,0,1,inf,2} 5{nan,-0.0,1,inf,1}")},
    {OP_ne, "ww", "o", MAP(ne), EXACT,
     CASES("fhbil 1025 1025", "fhb 5{nan,0,1,inf,2} 5{nan,-0.0,1,inf,1}")},
    {OP_lt, "ww", "o", MAP(lt), EXACT, CASES("fhbil 7x33 33", "h i:33 33")},
    {OP_le, "ww", "o", MAP(le), EXACT, CASES("fhbil 1025 1025")},
    {OP_gt, "ww", "o", MAP(gt), EXACT, CASES("fhbil 1025 1025")},
    {OP_ge, "ww", "o", MAP(ge), EXACT, CASES("fhbil 7x33 33")},
    {OP_logical_and, "ww", "=", MAP(logical_and), EXACT, CASES("o 33 33", "ilu 33 33")},
    {OP_logical_or, "ww", "=", MAP(logical_or), EXACT, CASES("o 33 33", "il 33 33")},
    {OP_where, "cww", "=", MAP(where), EXACT,
     CASES("fhbil o:1025 1025 1025", "fhb o:7x1 33 7x33", "uo o:33 33 33",
           "h o:33 f:33 33 result=f"),
     GRADIENTS("fhb o:7x3 7x3~n 3~n")},
    {OP_addcmul, "nnn", "=", MAP(addcmul), ULPS(2, "two products, a sum"),
     CASES("fhb 1025 1025 1025 value=1", "fhb 7x33 7x1 33 value=-0.3", "f s 33 33 value=2"),
     GRADIENTS("fhb 7x3~n 3~n 7x1~n value=0.7")},
    {OP_addcdiv, "nnq", "=", MAP(addcdiv), ULPS(2, "a product, a quotient, a sum"),
     CASES("fhb 1025 1025 1025~q value=1", "fhb 7x33 7x1 33~q value=-0.3"),
     GRADIENTS("fhb 7x3~n 3~n 7x1~q value=0.7")},
    {OP_prelu, "wn", "=", MAP(prelu), ROUNDED,
     CASES("fhb 1025 1025", "fhb 2x5x3x7 5x1x1", "f 4{0,-0.0,nan,-inf} s{0.25}"),
     GRADIENTS("fhb 2x5x3~z 5x1~n")},
    {OP_clamp, "w", "=", MAP(clamp), EXACT,
     CASES("fhb 1025 min=-0.5 max=1.25", "il 1025 min=-10 max=20", "fh 33 max=0.25",
           "fh 33 min=0.25"),
     GRADIENTS("fhb 33~z min=-0.75 max=1.25")},
    {OP_clamp_backward, "ww", "=", MAP(clamp_backward), EXACT,
     CASES("fhb 1025 1025 min=-0.5 max=1.25", /* the gradient at a bound is 0 */
           "fhb 4{1,2,3,4} 4{-0.5,1.25,0,nan} min=-0.5 max=1.25"),
     GRADIENTS("fhb 4~d 4{-2,-0.2,0.7,3} min=-0.5 max=1.25")},
};
FAMILY(binary)
