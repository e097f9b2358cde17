/* Interval arithmetic on floats.
 *
 * Note [widening]
 * A kernel rounds after each operation, to f32. So a result differs from the exact one by at most
 * 2^-24 of it, and a function of device.cuh by a few times more. Therefore each result is widened
 * by 2^-20 of each bound. Below 2^-126 a GPU may flush a result to 0, so 2^-126 is added. A bound
 * that is 0 stays 0, since rounding keeps signs. A bound beyond f32 becomes infinite, as the number
 * would. */
#include "bounds.h"
#include "compiler/base/names.h"
#include "runtime/plan/types.h"
#include <float.h>
#include <math.h>

static bool is_any(Interval a)
{
  return isnan(a.low);
}

static bool has_zero(Interval a)
{
  return a.low <= 0 && a.high >= 0;
}

static bool has_infinity(Interval a)
{
  return isinf(a.low) || isinf(a.high);
}

/* ---- widening: Note [widening] ---- */

/* Moves v by `by` towards -inf (sign -1) or inf (1), but not past 0. */
static double outward(double v, double by, int sign)
{
  double out = v + sign * (by + 0x1p-126);
  if (v == 0 || isinf(v)) return v;
  if (out * v < 0) return 0;
  return fabs(out) >= ampc_type_of(AMPC_F32)->overflow ? copysign(INFINITY, out) : out;
}

static Interval widened(double low, double high)
{
  if (isnan(low) || isnan(high)) return INTERVAL_ANY;
  return (Interval){outward(low, fabs(low) * 0x1p-20, -1), outward(high, fabs(high) * 0x1p-20, 1)};
}

Interval interval_widen(Interval a, double fraction)
{
  double by = fraction * fmax(fabs(a.low), fabs(a.high));
  if (is_any(a)) return a;
  return (Interval){outward(a.low, by, -1), outward(a.high, by, 1)};
}

/* ---- arithmetic ---- */

Interval interval_of(double v)
{
  v = rule_rounded(AMPC_F32, v);
  return (Interval){v, v};
}

Interval interval_join(Interval a, Interval b)
{
  if (is_any(a) || is_any(b)) return INTERVAL_ANY;
  return (Interval){fmin(a.low, b.low), fmax(a.high, b.high)};
}

Interval interval_neg(Interval a)
{
  return (Interval){-a.high, -a.low};
}

Interval interval_add(Interval a, Interval b)
{
  bool cancels =
      (a.high == INFINITY && b.low == -INFINITY) || (a.low == -INFINITY && b.high == INFINITY);
  return cancels ? INTERVAL_ANY : widened(a.low + b.low, a.high + b.high);
}

static Interval corners(double p, double q, double r, double s)
{
  if (isnan(p) || isnan(q) || isnan(r) || isnan(s)) return INTERVAL_ANY;
  return widened(fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s)));
}

Interval interval_mul(Interval a, Interval b)
{
  if ((has_infinity(a) && has_zero(b)) || (has_infinity(b) && has_zero(a))) return INTERVAL_ANY;
  return corners(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high);
}

Interval interval_div(Interval a, Interval b)
{
  if (has_zero(b) || (has_infinity(a) && has_infinity(b))) return INTERVAL_ANY;
  return corners(a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high);
}

/* Each of the n additions rounds by at most 2^-22 of the sum of the magnitudes: tensor cores
 * truncate. */
Interval interval_sum(Interval a, Interval n)
{
  double most = fmax(fabs(a.low), fabs(a.high));
  if (is_any(a) || is_any(n)) return INTERVAL_ANY;
  double error = n.high * most * expm1(n.high * 0x1p-22);
  double low = a.low * (a.low < 0 ? n.high : n.low) - error;
  double high = a.high * (a.high < 0 ? n.low : n.high) + error;
  return widened(a.low >= 0 ? fmax(low, 0) : low, a.high <= 0 ? fmin(high, 0) : high);
}

/* ---- the functions of templates/device.cuh ---- */

static double sign(double x)
{
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static double relu(double x)
{
  return fmax(x, 0);
}

static double sigmoid(double x)
{
  return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
  return x > 50 ? x : log1p(exp(x));
}

static double rsqrt(double x)
{
  return 1 / sqrt(x);
}

/* Functions that rise, or fall, from end to end of their domain. Outside of it they are NaN. */
static const struct {
  const char *name;
  double (*f)(double);
  double first, last; /* the domain */
  bool falls;
} monotone[] = {{"acos", acos, -1, 1, true},
                {"asin", asin, -1, 1, false},
                {"ceil", ceil, -INFINITY, INFINITY, false},
                {"erf", erf, -INFINITY, INFINITY, false},
                {"exp", exp, -INFINITY, INFINITY, false},
                {"expm1", expm1, -INFINITY, INFINITY, false},
                {"floor", floor, -INFINITY, INFINITY, false},
                {"log", log, 0, INFINITY, false},
                {"log1p", log1p, -1, INFINITY, false},
                {"log2", log2, 0, INFINITY, false},
                {"relu", relu, -INFINITY, INFINITY, false},
                {"round", rint, -INFINITY, INFINITY, false},
                {"rsqrt", rsqrt, DBL_MIN, INFINITY, true},
                {"sigmoid", sigmoid, -INFINITY, INFINITY, false},
                {"sign", sign, -INFINITY, INFINITY, false},
                {"sinh", sinh, -INFINITY, INFINITY, false},
                {"softplus", softplus, -INFINITY, INFINITY, false},
                {"sqrt", sqrt, 0, INFINITY, false},
                {"tanh", tanh, -INFINITY, INFINITY, false}};

/* Functions of finite numbers whose results are in a fixed interval. */
static const struct {
  const char *name;
  Interval range;
} within[] = {{"cos", {-1, 1}},
              {"gelu_slope", {-0.13, 1.13}},
              {"gelu_tanh_slope", {-0.13, 1.13}},
              {"hardswish_slope", {-0.5, 1.5}},
              {"silu_slope", {-0.1, 1.1}},
              {"sin", {-1, 1}}};

/* x times a number from 0 to 1 that rises with x: the result is between x and 0, but below 0 not
 * less than `dip`. */
static const struct {
  const char *name;
  double dip;
} gates[] = {{"gelu", -0.17}, {"gelu_tanh", -0.17005}, {"hardswish", -0.3751}, {"silu", -0.2785}};

static Interval abs_of(const Interval *x)
{
  double low = fmin(fabs(x->low), fabs(x->high)), high = fmax(fabs(x->low), fabs(x->high));
  return (Interval){has_zero(*x) ? 0 : low, high};
}

static Interval max_of(const Interval *x)
{
  return (Interval){fmax(x[0].low, x[1].low), fmax(x[0].high, x[1].high)};
}

static Interval min_of(const Interval *x)
{
  return (Interval){fmin(x[0].low, x[1].low), fmin(x[0].high, x[1].high)};
}

static Interval clamp_of(const Interval *x)
{
  Interval above = max_of((Interval[]){x[0], x[1]});
  return min_of((Interval[]){above, x[2]});
}

static Interval elu_of(const Interval *x)
{
  Interval below = widened(expm1(fmin(x->low, 0)), 0);
  return interval_join(x->low < 0 ? interval_mul(x[1], below) : *x,
                       max_of((Interval[]){*x, {0, 0}}));
}

static const struct {
  const char *name;
  Interval (*f)(const Interval *x);
} others[] = {
    {"abs", abs_of}, {"clamp", clamp_of}, {"elu", elu_of}, {"max", max_of}, {"min", min_of}};

/* Finds a row of a table by its first field, the name. */
#define FIND(table, i)                                                                             \
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)                                        \
    if (same_name(name, table[i].name))

Interval interval_call(const char *name, const Interval *args, uint32_t n)
{
  if (same_name(name, "nan")) return INTERVAL_NONE;
  for (uint32_t i = 0; i < n; i++)
    if (is_any(args[i])) return INTERVAL_ANY;
  FIND(monotone, i)
  {
    if (args->low < monotone[i].first || args->high > monotone[i].last) return INTERVAL_ANY;
    double low = monotone[i].f(args->low), high = monotone[i].f(args->high);
    return monotone[i].falls ? widened(high, low) : widened(low, high);
  }
  FIND(within, i) return has_infinity(*args) ? INTERVAL_ANY : within[i].range;
  FIND(gates, i)
  return (Interval){fmax(fmin(args->low, 0), gates[i].dip), fmax(args->high, 0)};
  FIND(others, i) return others[i].f(args);
  return INTERVAL_ANY;
}
