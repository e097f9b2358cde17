/* The expected result of a case, and the error of its actual result: Note [bounds] in case.h. */
#include "case.h"
#include <math.h>

/* NVIDIA does not document how a GPU converts f32 to tf32: it may truncate the 13 low bits or
 * round. The reference rounds to the nearest value with 11 bits, ties to even, as the CPU does. Any
 * other conversion returns that value or its neighbour, so a factor is off by at most 2^-10 of its
 * value. A product of two such factors is off by (1 + 2^-10)^2 - 1 = 2^-9 + 2^-20. The sum is off
 * by at most that fraction of the sum of |a b|, which is the scale. An ulp of f32 is at least 2^-24
 * of the scale. */
static const double tf32_ulps = 0x1p15 + 0x1p4;

/* Each term has a factor that is rounded to a narrow type, by at most half an ulp of that type. The
 * sum is then off by at most that fraction of the sum of |a b|, which is the scale. */
static double narrow_ulps(DType type)
{
  return ampc_is_narrow(type) ? ldexp(1, 23 - ampc_type_of(type)->mantissa) : 0;
}

/* Returns the bound of this case in ulps: the op's bound plus that of each term. */
double case_ulps(const Case *t)
{
  const OpTest *test = t->test;
  double ulps = test->ulps + (test->terms ? test->per_term * test->terms(t) : 0);
  if (test->narrow && t->by_cuda) ulps += narrow_ulps(t->want.dtype);
  return t->tf32 && t->by_gpu ? ulps + tf32_ulps : ulps;
}

/* Returns the type of the result. Input 0 of `where` is its condition, so input 1 sets the type. */
static DType result_type(const Case *t)
{
  const Tensor *same = &t->in[t->test->op == OP_where ? 1 : 0];
  char letter = t->result ? t->result : t->test->result[0];
  switch (letter) {
  case '=':
    return same->dtype;
  case 'd':
    return (DType)case_attr(t, "dtype");
  default:
    return number_type(letter);
  }
}

void case_expect(Arena *a, Case *t)
{
  Tensor y = {0};
  t->test->shape(t, &y);
  t->want = tensor_like(a, result_type(t), y.rank, y.dim);
  t->scale = arena_array(a, double, t->want.n);
  t->test->reference(t, &t->want, t->scale);
}

/* Returns 0 for the expected value, up to 1 within the accepted interval, more outside of it. */
static double interval_error(double got, double want, double low, double high)
{
  if (number_same(got, want)) return 0;
  if (isnan(got) || isnan(want)) return INFINITY;
  bool inside = got >= low && got <= high;
  double reach = fmax(high - want, want - low), error = fabs(got - want) / reach;
  if (inside) return isfinite(error) ? fmin(error, 1) : 1;
  return isnan(error) || error <= 1 ? INFINITY : error;
}

/* Returns the error in units of the bound: Note [bounds]. Integers and bools must be equal. */
double element_error(DType d, bool real64, double ulps, double got, double want, double scale)
{
  if (!dtype_is_float(d)) return number_same(got, number_round(d, want)) ? 0 : INFINITY;
  if (real64) { /* the reference itself has some rounding errors, or is a difference quotient */
    double unit = fmax(ldexp(fabs(scale), -52), 0x1p-1000) * (4096 + 16 * ulps);
    return interval_error(got, want, want - unit, want + unit);
  }
  double unit = ulps * number_ulp(AMPC_F32, scale);
  double low = number_round(d, number_round(AMPC_F32, want - unit));
  double high = number_round(d, number_round(AMPC_F32, want + unit));
  return interval_error(got, number_round(d, want), low, high);
}

static bool same_dims(const Tensor *a, const Tensor *b)
{
  if (a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; d++) {
    if (a->dim[d] != b->dim[d]) return false;
  }
  return true;
}

/* Compares shape and type first: if they differ, elements cannot be compared. */
double case_error(const Case *t, bool real64, int64_t *at)
{
  *at = 0;
  if (!same_dims(&t->got, &t->want) || t->got.dtype != t->want.dtype) return -1;
  double worst = 0, ulps = case_ulps(t);
  for (int64_t i = 0; i < t->want.n; i++) {
    double e = element_error(t->want.dtype, real64, ulps, t->got.at[i], t->want.at[i], t->scale[i]);
    if (e <= worst) continue;
    worst = e;
    *at = i;
  }
  return worst;
}

/* True if all elements have equal bits. Zeros must have equal signs; all NaNs count as equal. */
bool tensor_same_bits(const Tensor *x, const Tensor *y)
{
  for (int64_t i = 0; i < x->n; i++) {
    bool same = number_same(x->at[i], y->at[i]) && signbit(x->at[i]) == signbit(y->at[i]);
    if (!same && !isnan(x->at[i])) return false;
  }
  return x->n == y->n;
}
