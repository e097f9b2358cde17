/* References of map ops, an element each: ELEMENT(op, result, scale). x: the inputs' elements, a:
 * the attributes in the order of the signature, r: the result. Only libm in double: nothing here is
 * taken from the kernels. Included by selftest_map.c alone. */

/* exact: what is rounded, moved or compared */
ELEMENT(neg, -x[0], fabs(r))
ELEMENT(abs, fabs(x[0]), fabs(r))
ELEMENT(sign, isnan(x[0]) ? 0 : x[0] == 0 ? 0 : copysign(1, x[0]), fabs(r))
ELEMENT(floor, floor(x[0]), fabs(r))
ELEMENT(ceil, ceil(x[0]), fabs(r))
ELEMENT(round, nearbyint(x[0]), fabs(r))
ELEMENT(full_like, x[1], fabs(r))
ELEMENT(isnan, isnan(x[0]), 0)
ELEMENT(isfinite, isfinite(x[0]), 0)
ELEMENT(logical_not, x[0] == 0, 0)
ELEMENT(logical_and, (double)((int64_t)x[0] & (int64_t)x[1]), 0)
ELEMENT(logical_or, (double)((int64_t)x[0] | (int64_t)x[1]), 0)
ELEMENT(eq, x[0] == x[1], 0)
ELEMENT(ne, x[0] != x[1], 0)
ELEMENT(lt, x[0] < x[1], 0)
ELEMENT(le, x[0] <= x[1], 0)
ELEMENT(gt, x[0] > x[1], 0)
ELEMENT(ge, x[0] >= x[1], 0)
ELEMENT(where, x[0] != 0 ? x[1] : x[2], fabs(r))
ELEMENT(maximum, isnan(x[0]) || isnan(x[1]) ? NAN : fmax(x[0], x[1]), fabs(r))
ELEMENT(minimum, isnan(x[0]) || isnan(x[1]) ? NAN : fmin(x[0], x[1]), fabs(r))
ELEMENT(clamp, isnan(x[0]) ? NAN : fmin(fmax(x[0], a[0]), a[1]), fabs(r))
ELEMENT(clamp_backward, x[1] >= a[0] && x[1] <= a[1] ? x[0] : 0, fabs(r))
ELEMENT(relu, isnan(x[0]) ? NAN : fmax(x[0], 0), fabs(r))
ELEMENT(relu_backward, x[1] > 0 ? x[0] : 0, fabs(r))

/* one IEEE operation */
ELEMENT(add, x[0] + x[1], fabs(r))
ELEMENT(sub, x[0] - x[1], fabs(r))
ELEMENT(mul, x[0] * x[1], fabs(r))
ELEMENT(div, x[0] / x[1], fabs(r))
ELEMENT(sqrt, sqrt(x[0]), fabs(r))
ELEMENT(reciprocal, 1 / x[0], fabs(r))

/* functions of the device library */
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
ELEMENT(pow, pow(x[0], x[1]), fabs(r))

/* several of them; FLUSH where e^-x overflows before the result leaves the normal numbers */
#define FLUSH 0x1p-104
ELEMENT(sigmoid, x[0] >= 0 ? 1 / (1 + exp(-x[0])) : exp(x[0]) / (1 + exp(x[0])),
        fmax(fabs(r), FLUSH))
ELEMENT(silu, x[0] * e_sigmoid(x, a, scale), fmax(fabs(r), FLUSH * 128))
ELEMENT(softplus, x[0] > 0 ? x[0] + log1p(exp(-x[0])) : log1p(exp(x[0])), fabs(r))
ELEMENT(gelu_erf, x[0] * 0.5 * erfc(-x[0] * M_SQRT1_2), fabs(x[0]))
ELEMENT(gelu_tanh, x[0] * e_sigmoid(&(double){2 * tanh_argument(x[0])}, a, scale), fabs(x[0]))

/* backward forms: scale is that of the largest term */
ELEMENT(sigmoid_backward, x[0] * x[1] * (1 - x[1]), fabs(r))
ELEMENT(tanh_backward, x[0] * (1 - x[1]) * (1 + x[1]), fabs(x[0]))
ELEMENT(silu_backward, x[0] * slope(e_silu, x[1]), fabs(x[0]) * (1 + fabs(x[1]) / 4))
ELEMENT(gelu_erf_backward, x[0] * slope(e_gelu_erf, x[1]), fabs(x[0]) * (1 + fabs(x[1]) / 2))
ELEMENT(gelu_tanh_backward, x[0] * slope(e_gelu_tanh, x[1]), fabs(x[0]) * (1 + fabs(x[1]) / 2))

ELEMENT(like, x[1], fabs(r))
ELEMENT(drop_parts, x[1] >= a[0] ? x[0] / (1 - a[0]) : 0, fabs(r))
ELEMENT(squared_error, (x[0] - x[1]) * (x[0] - x[1]), fabs(r))
ELEMENT(bce_with_logits, (1 - x[1]) * x[0] + e_softplus(&(double){-x[0]}, a, scale),
        fabs((1 - x[1]) * x[0]) + e_softplus(&(double){-x[0]}, a, &(double){0}))
ELEMENT(floor_divide, whole_quotient(x[0], x[1]), fabs(r))
ELEMENT(remainder, python_modulo(x[0], x[1]), fabs(x[1]))

/* schedules: t, then their numbers */
ELEMENT(schedule_linear,
        x[0] < x[4] ? x[1] * x[0] / x[4]
                    : x[2] + (x[1] - x[2]) * fmax(0, (x[3] - x[0]) / (x[3] - x[4])),
        fabs(x[1]) + fabs(x[2]))
ELEMENT(schedule_cosine,
        x[0] < x[3]
            ? x[1] * x[0] / x[3]
            : x[4] + (x[1] - x[4]) * pow(cos(M_PI_2 * fmin(1, (x[0] - x[3]) / (x[2] - x[3]))), 2),
        fabs(x[1]) + fabs(x[4]))
ELEMENT(schedule_onecycle,
        x[0] <= 0.3 * x[2] - 1
            ? x[1] / 25 + x[1] * 24 / 25 * pow(sin(M_PI_2 * x[0] / (0.3 * x[2] - 1)), 2)
            : x[1] / 25e4 +
                  (x[1] - x[1] / 25e4) *
                      pow(cos(M_PI_2 * fmin(1, (x[0] - 0.3 * x[2] + 1) / (0.7 * x[2]))), 2),
        fabs(x[1]))
ELEMENT(schedule_step, x[1] * exp(log(x[3]) * floor(x[0] / x[2])), fabs(r))
