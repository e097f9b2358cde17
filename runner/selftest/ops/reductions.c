/* Reductions over a set of axes (a bit mask) or along one axis. */
#include "entry.h"
#include "compiler/graph/ranges.h"
#include <string.h>

/* True if axis d is reduced. `dim` is a mask of axes, so {0, 2} is 5; 0 means all axes. */
static bool reduced(const Case *t, uint32_t d)
{
  int64_t mask = case_int(t, "dim");
  return mask == 0 || (mask >> d & 1);
}

static void shape_reduce_of(const Case *t, Tensor *y)
{
  drop_axes(t, y, reduced, case_attr(t, "keepdim") != 0);
}

/* Returns the index of the result to which element i of the input contributes. */
static int64_t reduced_index(const Case *t, int64_t i)
{
  const Tensor *x = &t->in[0];
  int64_t index = 0, stride = 1;
  for (uint32_t d = x->rank; d-- > 0; i /= x->dim[d]) {
    if (reduced(t, d)) continue;
    index += i % x->dim[d] * stride;
    stride *= x->dim[d];
  }
  return index;
}

/* Computes a sum or mean. Terms may cancel, so the scale is the sum of absolute values. */
static void reference_sum(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  double divisor = t->test->op == OP_mean ? (double)(x->n / y->n) : 1;
  clear_sums(y, scale);
  for (int64_t i = 0; i < x->n; i++) {
    int64_t j = reduced_index(t, i);
    y->at[j] += x->at[i];
    scale[j] += fabs(x->at[i]) / divisor;
  }
  for (int64_t i = 0; i < y->n; i++) y->at[i] /= divisor;
}

/* Computes a maximum or minimum. If there are NaNs, the first one is the result. */
static void reference_extreme(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  double sign = t->test->op == OP_amin ? -1 : 1;
  for (int64_t i = 0; i < y->n; i++) y->at[i] = -sign * INFINITY;
  for (int64_t i = 0; i < x->n; i++) {
    double *m = &y->at[reduced_index(t, i)];
    if (isnan(x->at[i]) || sign * x->at[i] > sign * *m) *m = isnan(*m) ? *m : x->at[i];
  }
  scale_as_size(y, scale);
}

/* Computes a product. The relative error is at most half an ulp for each multiplication. */
static void reference_prod(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (int64_t i = 0; i < y->n; i++) y->at[i] = 1;
  for (int64_t i = 0; i < x->n; i++) y->at[reduced_index(t, i)] *= x->at[i];
  scale_as_size(y, scale);
}

/* Returns the number of terms. If the last axis is not reduced, kernels add all terms sequentially:
 * see SUMS. Long sums are split into runs of 256 additions, whose sums are then added. */
static double terms_of_sum(const Case *t)
{
  const Tensor *x = &t->in[0];
  int64_t mask = case_int(t, "dim");
  bool last = mask == 0 || mask >> (x->rank - 1) & 1;
  double n = (double)(x->n / t->want.n), longest = 256;
  double additions = last ? n / PARTIAL_SUMS : n;
  if (n > 4096) additions = longest + additions / longest + PARTIAL_SUMS;
  return additions * PARTIAL_SUMS;
}

/* Returns the index of the extreme of the row; of the first NaN if there is one, as in PyTorch. */
static int64_t first_extreme(const Case *t, const Rows *r)
{
  const double *at = t->in[0].at;
  OpKind op = t->test->op;
  double sign = op == OP_argmin || op == OP_min_along || op == OP_min_along_backward ? -1 : 1;
  int64_t best = r->start;
  EACH (i, *r) {
    bool greater = isnan(at[i]) || sign * at[i] > sign * at[best];
    if (greater && !isnan(at[best])) best = i;
  }
  return best;
}

static void reference_arg(const Case *t, Tensor *y, double *scale)
{
  clear_sums(y, scale);
  for (Rows r = rows_of(&t->in[0], case_axis(t)); next_row(&r);)
    y->at[r.row] = (double)((first_extreme(t, &r) - r.start) / r.stride);
}

static void reference_extreme_along(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) y->at[r.row] = x->at[first_extreme(t, &r)];
  scale_as_size(y, scale);
}

/* Computes dy at the index of the extreme, 0 elsewhere. */
static void reference_extreme_backward(const Case *t, Tensor *y, double *scale)
{
  clear_sums(y, scale);
  for (Rows r = rows_of(&t->in[0], case_axis(t)); next_row(&r);)
    y->at[first_extreme(t, &r)] = t->in[1].at[r.row];
  scale_as_size(y, scale);
}

/* ---- ranges ---- */

static void shape_of_ranges(const Case *t, Tensor *y)
{
  y->rank = 2;
  y->dim[0] = range_parts(t->in[0].n);
  y->dim[1] = RANGE_FIELDS;
}

static double bits_of(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static void count_range(double x, double *fields)
{
  const double size = fabs(x);
  const bool finite = size < INFINITY;
  fields[isnan(x) || !finite ? 255 : size < 0x1p-126 ? 0 : ilogb(size) + 127]++;
  fields[RANGE_ZEROS] += size == 0;
  fields[RANGE_NANS] += isnan(x);
  fields[RANGE_OVER_F16] += finite && size >= 65520;
  if (finite) fields[RANGE_GREATEST] = fmax(fields[RANGE_GREATEST], bits_of((float)size));
  if (finite && size > 0) fields[RANGE_LEAST] = fmin(fields[RANGE_LEAST], bits_of((float)size));
}

/* Computes the ranges. All parts but the last have the same length, a multiple of 16. */
static void reference_ranges(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  int64_t part = ((x->n + y->dim[0] - 1) / y->dim[0] + 15) / 16 * 16;
  clear_sums(y, scale);
  for (int64_t i = 0; i < y->dim[0]; i++) y->at[i * RANGE_FIELDS + RANGE_LEAST] = bits_of(INFINITY);
  for (int64_t i = 0; i < x->n; i++) count_range(x->at[i], y->at + i / part * RANGE_FIELDS);
}

static const OpTest tests[] = {
    {OP_sum, "n", "=", WHOLE(shape_reduce_of, reference_sum),
     SUMMED(3, SUMS(1), terms_of_sum, "additions in a row"),
     /* dim: a mask of axes, 2 is axis 1 */
     CASES("fhb 5x512 dim=2", "fhb 513x64 dim=1", "fh 3x33280 dim=2", "fhb 7x33 dim=2",
           "fhb 7x1025 dim=2 keepdim=1", "fhb 33x7 dim=1", "fhb 1023", "fh 3x5x7 dim=2 keepdim=1",
           "fh 3x5x7 dim=6", "f 3x5x7 dim=0", "f 1x1 dim=2", "f 1025x3 dim=1", "fh 513x515 dim=2",
           "f 515x513 dim=1", "f 262147", /* split into parts by pass split */
           "fh 130x16x10", "f 263x127", "f 4201x65 dim=1", "h 16500x8 dim=1 keepdim=1",
           "iluo 7x33 dim=2 result=l", "io 130x16x10 result=l", "u 4201x65 dim=1 result=l",
           "l 33x7 dim=1 result=l"),
     GRADIENTS("fhb 5x7~n dim=2", "f 5x7~n dim=1 keepdim=1", "f 2x3x5~n dim=2", "f 5x7~n")},
    {OP_mean, "n", "=", WHOLE(shape_reduce_of, reference_sum),
     SUMMED(4, SUMS(1), terms_of_sum, "additions in a row, one quotient"),
     CASES("fhb 5x512 dim=2", "fhb 2x513x32 dim=2", "fh 3x2x33280 dim=4", "fhb 7x33 dim=2",
           "fhb 33x7 dim=1 keepdim=1", "fhb 1025", "f 3x5x7 dim=3",
           "fhb 130x24x7 dim=7 keepdim=1", /* equal elements, whose rounding errors add up */
           "f 1000003~e", "f 50021x3~e dim=1"),
     GRADIENTS("fhb 5x7~n dim=2 keepdim=1", "f 5x7~n dim=1"),
     CHAINS({"d = a - mean(a, dim=2, keepdim=1); d * d", "fhb 5x7~n 5x7~d"})},
    {OP_prod, "z", "=", WHOLE(shape_reduce_of, reference_prod),
     SUMMED(4, SUMS(1), terms_of_sum, "products in a row"),
     CASES("fhb 7x33 dim=2", "f 7x1025~o dim=2 keepdim=1", "fhb 33x7 dim=1", "fh 3x5x7 dim=6",
           "f 2x3x5 dim=0", "f 1025x3~o dim=1", "f 2x40000~o dim=2", "f 262147~o",
           "f 40001x5~o dim=1", "il 3x4{1,2,-3,4,5,0,7,8,1,1,1,1} dim=2 result=l",
           "fhb 3x3{1,0,2,inf,-1,2,1,nan,0} dim=2"),
     GRADIENTS("fhb 5x7~z dim=2", "f 5x7~z dim=1 keepdim=1", "f 2x3x2~z dim=6", "f 2x3x2~z",
               /* rows with one zero, with two zeros, without a zero */
               "fhb 3x3{1,0,2,0,3,0,1,2,3} dim=2")},
    {OP_amax, "w", "=", WHOLE(shape_reduce_of, reference_extreme), EXACT,
     CASES("fh 3x9000x4 dim=2", "fh 3x33280 dim=2", "fhb 7x33 dim=2", "fhb 33x7 dim=1 keepdim=1",
           "fhb 1025", "ilu 7x33 dim=2", /* a NaN; only -inf; -0 and negative numbers */
           "fhb 3x3{1,nan,2,-inf,-inf,-inf,-1,-0.0,-3} dim=2"),
     GRADIENTS("fhb 5x7~n dim=2", "f 5x7~n dim=1 keepdim=1")},
    {OP_amin, "w", "=", WHOLE(shape_reduce_of, reference_extreme), EXACT,
     CASES("f 33280", "fhb 7x33 dim=2", "fhb 33x7 dim=1 keepdim=1", "il 33x7 dim=1",
           "fhb 3x3{1,nan,2,inf,inf,inf,1,0.0,3} dim=2"),
     GRADIENTS("fhb 5x7~n dim=2")},
    {OP_max_along, "w", "=", ROW(reference_extreme_along), EXACT,
     CASES("fhb 7x33 dim=1", "fhb 33x7 dim=0 keepdim=1", "ilu 7x33 dim=1",
           "fhb 3x3{1,nan,2,-inf,-inf,-inf,-1,-0.0,-3} dim=1"),
     GRADIENTS("fhb 5x7~n dim=1", "f 5x7~n dim=0 keepdim=1")},
    {OP_min_along, "w", "=", ROW(reference_extreme_along), EXACT,
     CASES("fhb 7x33 dim=1", "fhb 3x5x7 dim=1", "il 33x7 dim=0",
           "fhb 3x3{1,nan,2,inf,inf,inf,1,0.0,3} dim=1"),
     GRADIENTS("fhb 5x7~n dim=1")},
    {OP_max_along_backward, "wd", "=", FIRST(reference_extreme_backward), EXACT,
     CASES("fh 3x33000 3 dim=1", "fhb 7x33 7 dim=1", "fhb 33x7 7 dim=0",
           /* the first of equal elements, the first NaN */
           "fhb 3x3{1,2,2,nan,nan,1,-inf,-inf,-inf} 3 dim=1")},
    {OP_min_along_backward, "wd", "=", FIRST(reference_extreme_backward), EXACT,
     CASES("fhb 7x33 7 dim=1", "fhb 3x5x7 3x7 dim=1",
           "fhb 3x3{1,1,2,2,nan,nan,inf,inf,inf} 3 dim=1")},
    {OP_argmax, "w", "l", ROW(reference_arg), EXACT,
     CASES("fh 3x33000 dim=1", "fhb 7x1025 dim=1", "fhb 33x7 dim=0 keepdim=1", "fhb 3x5x7 dim=1",
           "il 7x33 dim=1", "f 1025x129 dim=1",
           /* the first of equal elements, the first NaN, a row of -inf */
           "fhb 4x4{1,3,3,2,nan,1,nan,inf,-inf,-inf,-inf,-inf,5,5,nan,5} dim=1")},
    {OP_argmin, "w", "l", ROW(reference_arg), EXACT,
     CASES("f 2x9000x5 dim=1 keepdim=1", "fhb 7x33 dim=1", "fhb 33x7 dim=0 keepdim=1",
           "fhb 3x4{1,3,1,2,nan,1,nan,-inf,inf,inf,inf,inf} dim=1")},
    {OP_ranges, "w", "i", WHOLE(shape_of_ranges, reference_ranges), EXACT,
     CASES("fhb 33x7", "fhb 1", "fhb 65537", "fh 3x43691",
           "fhb 3x3{0,-0.0,1,-1,inf,-inf,nan,65504,0.5}",
           "f 11{65519,65520,-65536,1e38,1e-38,-1e-45,0,nan,nan,3e-8,1e-7}",
           "h 4{5.9604645e-8,6.1e-5,65504,-6.0975552e-5}", "b 4{9.2e-41,-1.2e-38,3.3e38,65536}")},
};
FAMILY(reductions)
