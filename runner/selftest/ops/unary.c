/* Elementwise ops of one input, and their backward forms. */
#include "entry.h"

/* Returns the central difference of sixth order; its error is about 1e-13. */
static double slope(Element *f, double x)
{
  static const double weight[] = {45, -9, 1};
  const double h = 0x1p-7;
  double sum = 0, scale;
  for (int i = 1; i <= 3; i++) {
    double right = x + i * h, left = x - i * h;
    sum += weight[i - 1] * (f(&right, NULL, &scale) - f(&left, NULL, &scale));
  }
  return sum / (60 * h);
}

static double tanh_argument(double x)
{
  return sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

/* exact: rounding, moves, comparisons */
ELEMENT(neg, -x[0], fabs(r))
ELEMENT(abs, fabs(x[0]), fabs(r))
ELEMENT(sign, isnan(x[0]) ? 0 : x[0] == 0 ? 0 : copysign(1, x[0]), fabs(r))
ELEMENT(floor, floor(x[0]), fabs(r))
ELEMENT(ceil, ceil(x[0]), fabs(r))
ELEMENT(round, nearbyint(x[0]), fabs(r))
ELEMENT(isnan, isnan(x[0]), 0)
ELEMENT(isfinite, isfinite(x[0]), 0)
ELEMENT(logical_not, x[0] == 0, 0)
ELEMENT(relu, x[0] < 0 ? 0 : x[0], fabs(r))
ELEMENT(relu_backward, x[1] > 0 ? x[0] : 0, fabs(r))

/* one IEEE operation */
ELEMENT(sqrt, sqrt(x[0]), fabs(r))
ELEMENT(reciprocal, 1 / x[0], fabs(r))

/* functions of the kernels' math library */
ELEMENT(exp, exp(x[0]), fabs(r))
ELEMENT(expm1, expm1(x[0]), fabs(r))
ELEMENT(log, log(x[0]), fabs(r))
ELEMENT(log1p, log1p(x[0]), fabs(r))
ELEMENT(log2, log2(x[0]), fabs(r))
ELEMENT(rsqrt, 1 / sqrt(x[0]), fabs(r))
ELEMENT(tanh, tanh(x[0]), fabs(r))
ELEMENT(erf, erf(x[0]), fabs(r))
ELEMENT(sin, sin(x[0]), fmax(fabs(r), 0x1p-24 * fabs(x[0])))
ELEMENT(cos, cos(x[0]), fmax(fabs(r), 0x1p-24 * fabs(x[0])))
/* the error of the reduced argument, as for sin */
ELEMENT(tan, tan(x[0]), fmax(fabs(r), 0x1p-24 * fabs(x[0]) * (1 + r * r)))
ELEMENT(asin, asin(x[0]), fabs(r))
ELEMENT(acos, acos(x[0]), fabs(r))
ELEMENT(sinh, sinh(x[0]), fabs(r))
ELEMENT(cosh, cosh(x[0]), fabs(r))

/* compositions; below FLUSH, e^-x overflows although the result is still a normal number */
#define FLUSH 0x1p-104
ELEMENT(sigmoid, x[0] >= 0 ? 1 / (1 + exp(-x[0])) : exp(x[0]) / (1 + exp(x[0])),
        fmax(fabs(r), FLUSH))
ELEMENT(silu, x[0] * element_sigmoid(x, a, scale), fmax(fabs(r), FLUSH * 128))
ELEMENT(softplus, x[0] > 0 ? x[0] + log1p(exp(-x[0])) : log1p(exp(x[0])), fabs(r))
ELEMENT(gelu_erf, x[0] * 0.5 * erfc(-x[0] * M_SQRT1_2), fmax(fabs(r), FLUSH))
/* an ulp of the argument of exp changes the result by |argument| ulps */
ELEMENT(gelu_tanh, x[0] * element_sigmoid(&(double){2 * tanh_argument(x[0])}, a, scale),
        fmax(fabs(r), FLUSH * 128) * (1 + fmin(fabs(tanh_argument(x[0])), 100)))
ELEMENT(elu, x[0] > 0 ? x[0] : a[0] * expm1(x[0]), fabs(r))
ELEMENT(hardswish, x[0] * fmin(fmax(x[0] + 3, 0), 6) / 6,
        fabs(r) + (isnan(x[0])      ? 0
                   : fabs(x[0]) < 3 ? 1
                                    : 0))

/* backward ops: the scale is that of the largest term */
ELEMENT(sigmoid_backward, x[0] * x[1] * (1 - x[1]), fabs(r))
ELEMENT(tanh_backward, x[0] * (1 - x[1]) * (1 + x[1]), fabs(x[0]))
ELEMENT(elu_backward, x[0] * (x[1] > 0 ? 1 : a[0] * exp(x[1])), fabs(r))
ELEMENT(hardswish_backward, x[0] * (x[1] <= -3 ? 0 : x[1] < 3 ? x[1] / 3 + 0.5 : 1), fabs(x[0]))
ELEMENT(silu_backward, x[0] * slope(element_silu, x[1]), fabs(x[0]) * (1 + fabs(x[1]) / 4))
ELEMENT(gelu_erf_backward, x[0] * slope(element_gelu_erf, x[1]), fabs(x[0]) * (1 + fabs(x[1]) / 2))
ELEMENT(gelu_tanh_backward, x[0] * slope(element_gelu_tanh, x[1]),
        fabs(x[0]) * (1 + fabs(x[1]) / 2))

/* angles whose reduction needs more bits of pi than a double has */
#define HUGE "f 6{1e20,-1e15,3e38,-2e12,1.2e12,9.3e18}"

static const OpTest tests[] = {
    {OP_neg, "w", "=", MAP(neg), EXACT, CASES("fhbil 1025", "f 1", "f s", "h 2x1x3x1x5x7"),
     GRADIENTS("fhb 33~n")},
    {OP_abs, "w", "=", MAP(abs), EXACT, CASES("fhbil 1025"), GRADIENTS("fhb 33~z")},
    {OP_sign, "w", "=", MAP(sign), EXACT, CASES("fhbil 1025")},
    {OP_floor, "w", "=", MAP(floor), EXACT, CASES("fhb 1025")},
    {OP_ceil, "w", "=", MAP(ceil), EXACT, CASES("fhb 1025")},
    {OP_round, "w", "=", MAP(round), EXACT,
     CASES("fhb 1025", /* halves round to the even neighbour; the largest number below a half must
                          not round up */
           "fhb 8{0.5,1.5,2.5,-0.5,-1.5,-2.5,0.49999997,3.5}")},
    {OP_relu, "w", "=", MAP(relu), EXACT,
     CASES("fhb 1025", /* NaN and -0 are unchanged */
           "fhb 6{0,-0.0,nan,inf,-inf,1e-7}", "fb 262147", "il 33"),
     GRADIENTS("fhb 33~z")},
    {OP_relu_backward, "ww", "=", MAP(relu_backward), EXACT,
     CASES("fhb 1025 1025", /* the gradient is 0 at 0 and at a NaN */
           "fhb 4{1,2,3,4} 4{0,-0.0,nan,1}"),
     GRADIENTS("fhb 33~d 33~z")},
    {OP_gelu_erf, "g", "=", MAP(gelu_erf), ULPS(6, "maths.cuh: 5, a product"),
     CASES("fhb 1025", /* far below 0 */ "fhb 7{-4,-5,-5.5,-6,-8,-11,-13}"), GRADIENTS("fhb 33~n")},
    {OP_gelu_erf_backward, "dn", "=", MAP(gelu_erf_backward),
     ULPS(6, "erf and exp 2 each, three roundings"), CASES("fhb 1025 1025"),
     GRADIENTS("fhb 33~d 33~n")},
    {OP_gelu_tanh, "g", "=", MAP(gelu_tanh), ULPS(8, "sigmoid 4, its argument 3, a product"),
     CASES("fhb 1025", /* far below 0 */ "fhb 7{-4,-5,-5.5,-6,-8,-9,-10}"), GRADIENTS("fhb 33~n")},
    {OP_gelu_tanh_backward, "dn", "=", MAP(gelu_tanh_backward),
     ULPS(8, "tanh 2, its slope and polynomial"), CASES("fhb 1025 1025"),
     GRADIENTS("fhb 33~d 33~n")},
    {OP_elu, "w", "=", MAP(elu), ULPS(3, "expm1 2, a product, relative twice that"),
     CASES("fhb 1025 alpha=1", "fhb 1025 alpha=0.3", "il 33 alpha=0.5 result=f"),
     GRADIENTS("fhb 33~z alpha=0.3")},
    {OP_elu_backward, "dw", "=", MAP(elu_backward), ULPS(3, "exp 1, two products"),
     CASES("fhb 1025 1025 alpha=0.3",
           /* the slope at 0 is alpha */
           "fhb 3{1,2,3} 3{0,-0.0,nan} alpha=0.5"),
     GRADIENTS("fhb 33~d 33~z alpha=0.3")},
    {OP_hardswish, "w", "=", MAP(hardswish), ULPS(3, "a sum, a product, a quotient"),
     CASES("fhb 1025", /* one rounding, and no overflow before it */
           "h 5{10928,60000,-60000,-3,3}", "il 33 result=f"),
     GRADIENTS("fhb 6{-4,-2.5,-1,0.5,2.5,4}")},
    {OP_hardswish_backward, "dn", "=", MAP(hardswish_backward),
     ULPS(2, "a quotient, a sum, a product"),
     CASES("fhb 1025 1025", "fhb 4{1,2,3,4} 4{-3,3,0,-0.0}"),
     GRADIENTS("fhb 5~d 5{-4,-1,0.5,2,5}")},
    {OP_silu, "g", "=", MAP(silu), ULPS(6, "sigmoid 4 and a product, relative twice that"),
     CASES("fhb 1025"), GRADIENTS("fhb 33~n"),
     CHAINS(/* without a kink, which rounding could cross */
            {"silu(silu(a @ b) @ c)", "fhb 5x3~n 3x4~n 4x3~n 5x3~d"})},
    {OP_silu_backward, "dn", "=", MAP(silu_backward),
     ULPS(6, "sigmoid 4, three roundings, relative to |dy|"), CASES("fhb 1025 1025"),
     GRADIENTS("fhb 33~d 33~n")},
    {OP_sigmoid, "w", "=", MAP(sigmoid),
     ULPS(4, "exp 2, sum and quotient 1/2 each, relative twice that"), CASES("fhb 1025"),
     GRADIENTS("fhb 33~n")},
    {OP_sigmoid_backward, "dy", "=", MAP(sigmoid_backward),
     ULPS(3, "1 - y exact for y > 1/2, two products"), CASES("fhb 1025 1025"),
     GRADIENTS("fhb 33~d 33~y")},
    {OP_tanh, "w", "=", MAP(tanh), ULPS(3, "maths.cuh: 3"), CASES("fhb 1025"),
     GRADIENTS("fhb 33~n")},
    {OP_tanh_backward, "dt", "=", MAP(tanh_backward), ULPS(2, "1 - y y cancels: relative to |dy|"),
     CASES("fhb 1025 1025"), GRADIENTS("fhb 33~d 33~t")},
    {OP_erf, "w", "=", MAP(erf), ULPS(2, "maths.cuh: 2"), CASES("fhb 1025"), GRADIENTS("fhb 33~n")},
    {OP_sin, "s", "=", MAP(sin), ULPS(2, "maths.cuh: 2"), CASES("fhb 1025", HUGE),
     GRADIENTS("fhb 33~n")},
    {OP_cos, "s", "=", MAP(cos), ULPS(2, "maths.cuh: 2"), CASES("fhb 1025", HUGE),
     GRADIENTS("fhb 33~n")},
    {OP_tan, "s", "=", MAP(tan), ULPS(3, "maths.cuh: 3"),
     CASES("fhb 1025", HUGE, "il 33 result=f",
           /* no overflow next to pi / 2; zeros keep their sign */
           "fhb 8{1.57079637,1.57079625,-1.57079637,4.71238899,0,-0.0,inf,nan}"),
     GRADIENTS("fhb 33~t")},
    {OP_asin, "d", "=", MAP(asin), ULPS(2, "maths.cuh: 2"),
     CASES("fhb 1025", "fhb 1025~w", "il 3{0,1,-1} result=f",
           "fhb 9{1,-1,0.99999994,0.5,-0.5,0.50000006,-0.0,1.0001,-inf}"),
     GRADIENTS("fhb 7{-0.9,-0.6,-0.3,0.1,0.45,0.7,0.8}")},
    {OP_acos, "d", "=", MAP(acos), ULPS(2, "maths.cuh: 2"),
     CASES("fhb 1025", "fhb 1025~w", "il 3{0,1,-1} result=f",
           "fhb 9{1,-1,0.99999994,0.5,-0.5,0.50000006,-0.0,1.0001,-inf}"),
     GRADIENTS("fhb 7{-0.9,-0.6,-0.3,0.1,0.45,0.7,0.8}")},
    {OP_sinh, "w", "=", MAP(sinh), ULPS(2, "maths.cuh: 2"),
     CASES("fhb 1025", "fhb 1025~g",
           /* f16 overflows at log(2 65520), f32 beyond 89.4159 */
           "h 4{11.7734375,11.78125,-11.7734375,-12}",
           "f 5{89.4159851,89.41599,-89.4159851,-90,0.99999994}"),
     GRADIENTS("fhb 33~n")},
    {OP_cosh, "w", "=", MAP(cosh), ULPS(2, "maths.cuh: 2"),
     CASES("fhb 1025", "fhb 1025~g", "h 4{11.7734375,11.78125,-11.7734375,-12}",
           "f 5{89.4159851,89.41599,-89.4159851,-90,0}"),
     GRADIENTS("fhb 33~n")},
    {OP_sqrt, "w", "=", MAP(sqrt), ROUNDED, CASES("fhb 1025", "il 33 result=f"),
     GRADIENTS("fhb 33~v")},
    {OP_exp, "w", "=", MAP(exp), ULPS(1, "maths.cuh: 1"),
     CASES("fhb 1025", "iu 33 result=f",
           /* f16 overflows at log(65520) */ "h 4{11.0859375,11.09375,-17,12}",
           /* f32: largest finite result, inf, smallest normal, smallest subnormal, 0 */
           "f 6{88.72283,88.72284,-87.33655,-103.9,-104,-1e30}"),
     GRADIENTS("fhb 33~n")},
    {OP_expm1, "w", "=", MAP(expm1), ULPS(2, "maths.cuh: 2"), CASES("fhb 1025"),
     GRADIENTS("fhb 33~n")},
    {OP_log, "w", "=", MAP(log), ULPS(1, "maths.cuh: 1"), CASES("fhb 1025"), GRADIENTS("fhb 33~v")},
    {OP_log1p, "w", "=", MAP(log1p), ULPS(2, "maths.cuh: 2"), CASES("fhb 1025"),
     GRADIENTS("fhb 33~v")},
    {OP_log2, "w", "=", MAP(log2), ULPS(2, "maths.cuh: 2"), CASES("fhb 1025"),
     GRADIENTS("fhb 33~v")},
    {OP_rsqrt, "w", "=", MAP(rsqrt), ULPS(2, "CUDA: 2"), CASES("fhb 1025"), GRADIENTS("fhb 33~v")},
    {OP_reciprocal, "w", "=", MAP(reciprocal), ROUNDED, CASES("fhb 1025"), GRADIENTS("fhb 33~v")},
    {OP_softplus, "w", "=", MAP(softplus),
     ULPS(4, "exp 2, log1p 1, half an ulp relative twice that"), CASES("fhb 1025"),
     GRADIENTS("fhb 33~n")},
    {OP_isnan, "w", "o", MAP(isnan), EXACT, CASES("fhb 1025")},
    {OP_isfinite, "w", "o", MAP(isfinite), EXACT, CASES("fhb 1025")},
    {OP_logical_not, "w", "o", MAP(logical_not), EXACT, CASES("o 33")},
};
FAMILY(unary)
