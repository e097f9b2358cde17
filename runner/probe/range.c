#include "range.h"
#include <math.h>
#include <string.h>
#include "runtime/plan/types.h"

/* Exponent field e of f32: numbers from 2^(e - BIAS) up to twice 2^(e - BIAS). */
enum { BIAS = 127 };

static double float_of(int32_t bits)
{
  float x;
  memcpy(&x, &bits, sizeof x);
  return (double)x;
}

void range_add(Range *r, const int32_t *fields, int64_t parts, int64_t n)
{
  r->n += n;
  for (int64_t i = 0; i < parts; i++, fields += RANGE_FIELDS) {
    for (int e = 0; e < RANGE_EXPONENTS; e++) r->exponent[e] += fields[e];
    r->zeros += fields[RANGE_ZEROS];
    r->nans += fields[RANGE_NANS];
    r->infinite += fields[RANGE_EXPONENTS - 1] - fields[RANGE_NANS];
    r->over_f16 += fields[RANGE_OVER_F16];
    double greatest = float_of(fields[RANGE_GREATEST]), least = float_of(fields[RANGE_LEAST]);
    if (greatest > r->greatest) r->greatest = greatest;
    if (isfinite(least) && (r->least == 0 || least < r->least)) r->least = least;
  }
}

void range_merge(Range *sum, const Range *r)
{
  sum->n += r->n;
  for (int e = 0; e < RANGE_EXPONENTS; e++) sum->exponent[e] += r->exponent[e];
  sum->zeros += r->zeros;
  sum->nans += r->nans;
  sum->infinite += r->infinite;
  sum->over_f16 += r->over_f16;
  sum->greatest = fmax(sum->greatest, r->greatest);
  if (r->least > 0 && (sum->least == 0 || r->least < sum->least)) sum->least = r->least;
}

bool range_is_finite(const Range *r)
{
  return !r->nans && !r->infinite;
}

/* Every element counts as the mean square of the numbers with its exponent: 7/3 of 2^(2 e). */
double range_rms(const Range *r)
{
  double sum = 0;
  int64_t n = r->zeros;
  for (int e = 1; e < RANGE_EXPONENTS - 1; e++) {
    sum += (double)r->exponent[e] * ldexp(7.0 / 3, 2 * (e - BIAS));
    n += r->exponent[e];
  }
  return n ? sqrt(sum / (double)n) : 0;
}

/* bf16 has the exponents of f32 and overflows only from half a step below 2^128 on. The counts do
 * not show how many elements are above this bound, so bf16 reports 1 or 0. */
int64_t range_over(const Range *r, ampc_dtype d)
{
  if (d == AMPC_F16) return r->over_f16;
  return ampc_is_narrow(d) && r->greatest >= ampc_type_of(d)->overflow ? 1 : 0;
}

/* Returns how many elements that are not 0 have an exponent below `limit`. Field 0 contains all
 * numbers below 2^-126: all of them count if the smallest one does. */
static int64_t below(const Range *r, int limit)
{
  int64_t n = 0;
  for (int e = 1; e < RANGE_EXPONENTS - 1 && e - BIAS < limit; e++) n += r->exponent[e];
  bool tiny = r->least > 0 && ilogb(r->least) < limit;
  return n + (tiny ? r->exponent[0] - r->zeros : 0);
}

int64_t range_under(const Range *r, ampc_dtype d, double scale)
{
  return below(r, ilogb(ampc_type_of(d)->least) - 1 + (int)lround(log2(scale)));
}

int64_t range_subnormal(const Range *r, ampc_dtype d)
{
  return below(r, ilogb(ampc_type_of(d)->normal));
}
