/* References of reductions and row ops: plain loops in double. A row is the elements along one
 * axis; `Rows` walks them. The scales are those of Note [bounds]. */
#include "selftest.h"
#include <math.h>

typedef struct Rows {
  int64_t n, length, stride; /* rows; elements of one; between neighbours of a row */
} Rows;

static Rows rows_of(const Tensor *x, int axis)
{
  Rows r = {.length = x->dim[axis], .stride = 1};
  for (uint32_t d = (uint32_t)axis + 1; d < x->rank; d++) r.stride *= x->dim[d];
  r.n = x->n / r.length;
  return r;
}

static int64_t row_start(const Rows *r, int64_t row)
{
  return row / r->stride * r->stride * r->length + row % r->stride;
}

/* ---- reductions over a set of axes ------------------------------------------------------------
 */

static bool reduced(const Case *t, uint32_t d)
{
  int64_t mask = (int64_t)case_attr(t, "dim");
  return mask == 0 || (mask >> d & 1);
}

static void drop_axes(const Case *t, Tensor *y, bool (*gone)(const Case *, uint32_t), bool keep)
{
  const Tensor *x = &t->in[0];
  y->rank = 0;
  for (uint32_t d = 0; d < x->rank; d++) {
    if (!gone(t, d))
      y->dim[y->rank++] = x->dim[d];
    else if (keep)
      y->dim[y->rank++] = 1;
  }
}

void shape_reduce_of(const Case *t, Tensor *y)
{
  drop_axes(t, y, reduced, case_attr(t, "keepdim") != 0);
}

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

void reference_sum(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  double divisor = t->test->op == OP_mean ? (double)(x->n / y->n) : 1;
  for (int64_t i = 0; i < y->n; i++) y->at[i] = scale[i] = 0;
  for (int64_t i = 0; i < x->n; i++) {
    int64_t j = reduced_index(t, i);
    y->at[j] += x->at[i] / divisor;
    scale[j] += fabs(x->at[i]) / divisor;
  }
}

void reference_extreme(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  double sign = t->test->op == OP_amin ? -1 : 1;
  for (int64_t i = 0; i < y->n; i++) y->at[i] = -sign * INFINITY;
  for (int64_t i = 0; i < x->n; i++) {
    double *m = &y->at[reduced_index(t, i)];
    if (isnan(x->at[i]) || sign * x->at[i] > sign * *m) *m = isnan(*m) ? *m : x->at[i];
  }
  for (int64_t i = 0; i < y->n; i++) scale[i] = fabs(y->at[i]);
}

/* ---- one axis -----------------------------------------------------------------------------------
 */

static bool is_axis(const Case *t, uint32_t d)
{
  return d == (uint32_t)case_axis(t);
}

void shape_row_of(const Case *t, Tensor *y)
{
  drop_axes(t, y, is_axis, t->test->op != OP_cross_entropy_rows && case_attr(t, "keepdim") != 0);
}

/* The first NaN wins, as in PyTorch. */
void reference_arg(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  Rows r = rows_of(x, case_axis(t));
  double sign = t->test->op == OP_argmin ? -1 : 1;
  for (int64_t row = 0; row < r.n; row++) {
    const double *at = x->at + row_start(&r, row);
    int64_t best = 0;
    for (int64_t c = 1; c < r.length && !isnan(at[best * r.stride]); c++) {
      double v = at[c * r.stride];
      if (isnan(v) || sign * v > sign * at[best * r.stride]) best = c;
    }
    y->at[row] = (double)best;
    scale[row] = 0;
  }
}

/* Greatest element and the sum of e^(x - greatest); the terms of the greatest ones are 1, also
 * where it is infinite. */
static double row_sum(const double *x, const Rows *r, double *max)
{
  double m = -INFINITY, sum = 0;
  for (int64_t c = 0; c < r->length; c++) m = fmax(m, x[c * r->stride]);
  *max = m;
  for (int64_t c = 0; c < r->length; c++) {
    double v = x[c * r->stride];
    sum += v == m ? 1 : exp(v - m);
  }
  return sum;
}

static double row_log_sum(const double *x, const Rows *r, double *max)
{
  double sum = row_sum(x, r, max);
  return *max + log(sum);
}

static bool row_undefined(const double *x, const Rows *r)
{
  double m = -INFINITY;
  for (int64_t c = 0; c < r->length; c++) {
    if (isnan(x[c * r->stride])) return true;
    m = fmax(m, x[c * r->stride]);
  }
  return isinf(m); /* inf - inf; also a row of nothing but -inf */
}

/* x - m is rounded before exp: an error of |x - m| / 2 ulps in the exponent. */
void reference_softmax(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  Rows r = rows_of(x, case_axis(t));
  bool is_log = t->test->op == OP_log_softmax;
  for (int64_t row = 0; row < r.n; row++) {
    int64_t start = row_start(&r, row);
    double m, sum = row_sum(x->at + start, &r, &m), z = m + log(sum);
    bool undefined = row_undefined(x->at + start, &r);
    for (int64_t c = 0; c < r.length; c++) {
      int64_t i = start + c * r.stride;
      double spread = isfinite(x->at[i]) ? fabs(x->at[i] - m) : 0;
      y->at[i] = is_log ? x->at[i] - z : exp(x->at[i] - m) / sum;
      if (undefined) y->at[i] = NAN;
      scale[i] = is_log ? fabs(m) + fabs(z) + spread : fmax(y->at[i] * (1 + spread), 0x1p-104);
    }
  }
}

void reference_softmax_backward(const Case *t, Tensor *y, double *scale)
{
  const Tensor *dy = &t->in[0], *p = &t->in[1];
  Rows r = rows_of(dy, case_axis(t));
  bool is_log = t->test->op == OP_log_softmax_backward;
  for (int64_t row = 0; row < r.n; row++) {
    int64_t start = row_start(&r, row);
    double dot = 0, size = 0;
    for (int64_t c = 0; c < r.length; c++) {
      int64_t i = start + c * r.stride;
      double term = is_log ? dy->at[i] : dy->at[i] * p->at[i];
      dot += term;
      size += fabs(term);
    }
    for (int64_t c = 0; c < r.length; c++) {
      int64_t i = start + c * r.stride;
      double q = is_log ? exp(p->at[i]) : p->at[i];
      y->at[i] = is_log ? dy->at[i] - q * dot : (dy->at[i] - dot) * q;
      scale[i] = is_log ? fabs(dy->at[i]) + q * size * 2 : (fabs(dy->at[i]) + size) * fabs(q);
    }
  }
}

void reference_logsumexp(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  Rows r = rows_of(x, case_axis(t));
  for (int64_t row = 0; row < r.n; row++) {
    double m, worst = 0;
    const double *at = x->at + row_start(&r, row);
    y->at[row] = row_log_sum(at, &r, &m);
    for (int64_t c = 0; c < r.length; c++) {
      if (isnan(at[c * r.stride])) y->at[row] = NAN;
      worst = fmax(worst, 1);
    }
    scale[row] = isfinite(m) ? fabs(m) + log((double)r.length) + worst : 0;
  }
}

/* ---- variance
 * ----------------------------------------------------------------------------------- */

static double row_mean(const double *x, const Rows *r)
{
  double sum = 0;
  for (int64_t c = 0; c < r->length; c++) sum += x[c * r->stride];
  return sum / (double)r->length;
}

void reference_var(const Case *t, Tensor *y, double *scale)
{
  Rows r = rows_of(&t->in[0], case_axis(t));
  for (int64_t row = 0; row < r.n; row++) {
    const double *x = t->in[0].at + row_start(&r, row);
    double mean = row_mean(x, &r), squares = 0;
    for (int64_t c = 0; c < r.length; c++) squares += pow(x[c * r.stride] - mean, 2);
    double var = squares / ((double)r.length - case_attr(t, "correction"));
    y->at[row] = t->test->op == OP_row_std ? sqrt(var) : var;
    scale[row] = fabs(y->at[row]);
  }
}

void reference_var_backward(const Case *t, Tensor *y, double *scale)
{
  Rows r = rows_of(&t->in[0], case_axis(t));
  bool root = t->test->op == OP_row_std_backward;
  double divisor = (double)r.length - case_attr(t, "correction");
  for (int64_t row = 0; row < r.n; row++) {
    int64_t start = row_start(&r, row);
    const double *x = t->in[0].at + start;
    double mean = row_mean(x, &r), dy = t->in[root ? 2 : 1].at[row], largest = 0;
    double std = root ? t->in[1].at[row] : 0, slope = root ? dy / std : 2 * dy;
    if (root && std == 0) slope = 0;
    for (int64_t c = 0; c < r.length; c++) largest = fmax(largest, fabs(x[c * r.stride]));
    for (int64_t c = 0; c < r.length; c++) {
      y->at[start + c * r.stride] = slope * (x[c * r.stride] - mean) / divisor;
      scale[start + c * r.stride] = fabs(slope) * 2 * largest / divisor;
    }
  }
}

/* ---- layer norm
 * ----------------------------------------------------------------------------------- */

typedef struct Moments {
  double mean, rstd, largest;
} Moments;

static Moments row_moments(const double *x, const Rows *r, double eps)
{
  Moments m = {0};
  double square = 0;
  for (int64_t c = 0; c < r->length; c++) m.mean += x[c * r->stride] / (double)r->length;
  for (int64_t c = 0; c < r->length; c++) {
    double v = x[c * r->stride];
    square += (v - m.mean) * (v - m.mean);
    m.largest = fmax(m.largest, fabs(v));
  }
  m.rstd = 1 / sqrt(square / (double)r->length + eps);
  return m;
}

static double given(const Case *t, uint32_t input, const Tensor *y, int64_t i, double absent)
{
  if (input >= t->n_in || !t->in[input].present) return absent;
  return t->in[input].at[broadcast_index(&t->in[input], y, i)];
}

/* An error of the mean, or of x - mean, is relative to the largest |x|. */
void reference_layer_norm(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  Rows r = rows_of(x, case_axis(t));
  for (int64_t row = 0; row < r.n; row++) {
    int64_t start = row_start(&r, row);
    Moments m = row_moments(x->at + start, &r, case_attr(t, "eps"));
    for (int64_t c = 0; c < r.length; c++) {
      int64_t i = start + c * r.stride;
      double weight = given(t, 1, y, i, 1), bias = given(t, 2, y, i, 0);
      double normal = (x->at[i] - m.mean) * m.rstd;
      y->at[i] = normal * weight + bias;
      scale[i] = fabs(weight) * (fabs(normal) + m.largest * m.rstd) + fabs(bias);
    }
  }
}

void reference_layer_norm_backward(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0], *dy = &t->in[1];
  Rows r = rows_of(x, case_axis(t));
  for (int64_t row = 0; row < r.n; row++) {
    int64_t start = row_start(&r, row);
    Moments m = row_moments(x->at + start, &r, case_attr(t, "eps"));
    double n = (double)r.length, mean_g = 0, mean_gh = 0, size = 0;
    for (int64_t c = 0; c < r.length; c++) {
      int64_t i = start + c * r.stride;
      double g = dy->at[i] * given(t, 2, y, i, 1), h = (x->at[i] - m.mean) * m.rstd;
      mean_g += g / n;
      mean_gh += g * h / n;
      size += fabs(g) * (1 + fabs(h)) / n;
    }
    for (int64_t c = 0; c < r.length; c++) {
      int64_t i = start + c * r.stride;
      double g = dy->at[i] * given(t, 2, y, i, 1), h = (x->at[i] - m.mean) * m.rstd;
      y->at[i] = m.rstd * (g - mean_g - h * mean_gh);
      scale[i] = m.rstd * (fabs(g) + size * (1 + fabs(h))) * (1 + m.largest * m.rstd);
    }
  }
}

/* ---- cross entropy
 * --------------------------------------------------------------------------------- */

void reference_cross_entropy(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  Rows r = rows_of(x, case_axis(t));
  double e = case_attr(t, "label_smoothing"), n = (double)r.length;
  for (int64_t row = 0; row < r.n; row++) {
    int64_t start = row_start(&r, row);
    double m, z = row_log_sum(x->at + start, &r, &m), loss = 0, size = fabs(z) + 1;
    int64_t label = (int64_t)t->in[1].at[row];
    for (int64_t c = 0; c < r.length; c++) {
      double nll = z - x->at[start + c * r.stride], share = e / n + (c == label ? 1 - e : 0);
      if (share != 0) loss += share * nll;
      if (share != 0) size += share * fabs(x->at[start + c * r.stride]);
    }
    if (label < 0 || label >= r.length || row_undefined(x->at + start, &r)) loss = NAN;
    bool ignored = (double)label == case_attr(t, "ignore_index");
    y->at[row] = ignored ? 0 : loss;
    scale[row] = ignored ? 0 : size;
  }
}

void reference_cross_entropy_backward(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  Rows r = rows_of(x, case_axis(t));
  double e = case_attr(t, "label_smoothing"), n = (double)r.length;
  for (int64_t row = 0; row < r.n; row++) {
    int64_t start = row_start(&r, row);
    double m, sum = row_sum(x->at + start, &r, &m), dy = t->in[2].at[row];
    int64_t label = (int64_t)t->in[1].at[row];
    bool ignored = (double)label == case_attr(t, "ignore_index");
    for (int64_t c = 0; c < r.length; c++) {
      int64_t i = start + c * r.stride;
      double target = e / n + (c == label ? 1 - e : 0), p = exp(x->at[i] - m) / sum;
      y->at[i] = ignored ? 0 : dy * (p - target);
      scale[i] = ignored ? 0 : fabs(dy) * (p * (1 + fabs(x->at[i] - m)) + target);
    }
  }
}
