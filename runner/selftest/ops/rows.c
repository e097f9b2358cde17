/* Ops along one axis: softmax, variance, layer norm. */
#include "entry.h"

/* Computes softmax. x - m is rounded before exp, so the exponent is off by |x - m| / 2 ulps. */
static void reference_softmax(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  bool is_log = t->test->op == OP_log_softmax;
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    double m, sum = row_sum(x->at, &r, &m), z = log(sum);
    bool undefined = row_undefined(x->at, &r);
    EACH (i, r) {
      double spread = isfinite(x->at[i]) ? fabs(x->at[i] - m) : 0;
      y->at[i] = is_log ? x->at[i] - m - z : exp(x->at[i] - m) / sum;
      if (undefined) y->at[i] = NAN;
      scale[i] = is_log ? 1 + fabs(z) + spread : fmax(y->at[i] * (1 + spread), 0x1p-104);
    }
  }
}

/* Computes softmax's gradient (dy - sum(dy y)) y or log_softmax's dy - e^y sum(dy). Both are
 * differences, so the error is relative to the sizes of their terms. */
static void reference_softmax_backward(const Case *t, Tensor *y, double *scale)
{
  const Tensor *dy = &t->in[0], *p = &t->in[1];
  bool is_log = t->test->op == OP_log_softmax_backward;
  for (Rows r = rows_of(dy, case_axis(t)); next_row(&r);) {
    double dot = 0, size = 0;
    EACH (i, r) {
      double term = is_log ? dy->at[i] : dy->at[i] * p->at[i];
      dot += term;
      size += fabs(term);
    }
    EACH (i, r) {
      double q = is_log ? exp(p->at[i]) : p->at[i];
      y->at[i] = is_log ? dy->at[i] - q * dot : (dy->at[i] - dot) * q;
      scale[i] = is_log ? fabs(dy->at[i]) + q * size * 2 : (fabs(dy->at[i]) + size) * fabs(q);
    }
  }
}

/* Computes max + log(sum). If the sum is near 1, the error of the log is an ulp of 1. */
static void reference_logsumexp(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    double m;
    double sum = row_sum(x->at, &r, &m);
    y->at[r.row] = m + log(sum);
    EACH (i, r)
      if (isnan(x->at[i])) y->at[r.row] = NAN;
    scale[r.row] = isfinite(m) ? fabs(m) + log((double)r.length) + 1 : 0;
  }
}

/* ---- variance ---- */

/* Computes the sum of squares around the mean / (n - correction): 0 if all elements are equal. */
static void reference_var(const Case *t, Tensor *y, double *scale)
{
  for (Rows r = rows_of(&t->in[0], case_axis(t)); next_row(&r);) {
    const double *x = t->in[0].at;
    double mean = row_mean(x, &r), squares = 0;
    EACH (i, r) squares += pow(x[i] - mean, 2);
    double var = squares / ((double)r.length - case_attr(t, "correction"));
    y->at[r.row] = t->test->op == OP_row_std ? sqrt(var) : var;
    scale[r.row] = fabs(y->at[r.row]);
  }
}

/* Computes dx = 2 dy (x - mean) / divisor; for row_std dy (x - mean) / (std divisor). The error of
 * the mean is relative to the largest |x| of the row. If std is 0, the gradient is 0. */
static void reference_var_backward(const Case *t, Tensor *y, double *scale)
{
  bool root = t->test->op == OP_row_std_backward;
  for (Rows r = rows_of(&t->in[0], case_axis(t)); next_row(&r);) {
    const double *x = t->in[0].at;
    double divisor = (double)r.length - case_attr(t, "correction");
    double mean = row_mean(x, &r), dy = t->in[root ? 2 : 1].at[r.row], largest = 0;
    double std = root ? t->in[1].at[r.row] : 0, slope = root ? dy / std : 2 * dy;
    if (root && std == 0) slope = 0;
    EACH (i, r) largest = fmax(largest, fabs(x[i]));
    EACH (i, r) {
      y->at[i] = slope * (x[i] - mean) / divisor;
      scale[i] = fabs(slope) * 2 * largest / divisor;
    }
  }
}

/* ---- layer norm ---- */

/* The moments of a row. rstd is 1 / sqrt(variance + eps). */
typedef struct Moments {
  double mean, rstd, largest;
  bool equal; /* all numbers of the row are equal */
} Moments;

static Moments row_moments(const double *x, const Rows *r, double eps)
{
  Moments m = {.equal = true};
  double square = 0;
  EACH (i, *r) m.mean += x[i] / (double)r->length;
  EACH (i, *r) {
    m.equal = m.equal && x[i] == x[r->start];
    square += (x[i] - m.mean) * (x[i] - m.mean);
    m.largest = fmax(m.largest, fabs(x[i]));
  }
  m.rstd = 1 / sqrt(square / (double)r->length + eps);
  return m;
}

/* Returns the element of an optional input for element i of y; `absent` without that input. */
static double given(const Case *t, uint32_t input, const Tensor *y, int64_t i, double absent)
{
  if (input >= t->n_in || !t->in[input].present) return absent;
  return t->in[input].at[broadcast_index(&t->in[input], y, i)];
}

/* Normalizes rows. Errors of the mean and of x - mean are relative to the largest |x|; 0 if all
 * elements are equal. */
static void reference_layer_norm(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    Moments m = row_moments(x->at, &r, case_attr(t, "eps"));
    EACH (i, r) {
      double weight = given(t, 1, y, i, 1), bias = given(t, 2, y, i, 0);
      double normal = m.equal ? 0 : (x->at[i] - m.mean) * m.rstd;
      y->at[i] = normal * weight + bias;
      scale[i] = fabs(weight) * (fabs(normal) + m.largest * m.rstd) + fabs(bias);
      if (m.equal) scale[i] = 0;
    }
  }
}

/* Computes rstd (g - mean(g) - h mean(g h)) with g = dy w and h = (x - mean) rstd. */
static void reference_layer_norm_backward(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0], *dy = &t->in[1];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    Moments m = row_moments(x->at, &r, case_attr(t, "eps"));
    double n = (double)r.length, mean_g = 0, mean_gh = 0, size = 0;
    EACH (i, r) {
      double g = dy->at[i] * given(t, 2, y, i, 1), h = (x->at[i] - m.mean) * m.rstd;
      mean_g += g / n;
      mean_gh += g * h / n;
      size += fabs(g) * (1 + fabs(h)) / n;
    }
    EACH (i, r) {
      double g = dy->at[i] * given(t, 2, y, i, 1), h = (x->at[i] - m.mean) * m.rstd;
      y->at[i] = m.rstd * (g - mean_g - h * mean_gh);
      scale[i] = m.rstd * (fabs(g) + size * (1 + fabs(h))) * (1 + m.largest * m.rstd);
    }
  }
}

/* Returns 1 / sqrt(mean(x^2) + eps) of the row. */
static double row_rms(const double *x, const Rows *r, double eps)
{
  double square = 0;
  EACH (i, *r) square += x[i] * x[i];
  return 1 / sqrt(square / (double)r->length + eps);
}

/* Normalizes by the mean square: a sum of positive terms, so the error is relative to it. */
static void reference_rms_norm(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    double rms = row_rms(x->at, &r, case_attr(t, "eps"));
    EACH (i, r) {
      y->at[i] = x->at[i] * rms * given(t, 1, y, i, 1);
      scale[i] = fabs(y->at[i]);
    }
  }
}

/* Computes r (g - h mean(g h)) with g = dy w and h = x r. */
static void reference_rms_norm_backward(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0], *dy = &t->in[1];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    double rms = row_rms(x->at, &r, case_attr(t, "eps")), mean = 0, size = 0;
    EACH (i, r) {
      double g = dy->at[i] * given(t, 2, y, i, 1), h = x->at[i] * rms;
      mean += g * h / (double)r.length;
      size += fabs(g * h) / (double)r.length;
    }
    EACH (i, r) {
      double g = dy->at[i] * given(t, 2, y, i, 1), h = x->at[i] * rms;
      y->at[i] = rms * (g - h * mean);
      scale[i] = rms * (fabs(g) + fabs(h) * size);
    }
  }
}

static const OpTest tests[] = {
    {OP_softmax, "n", "=", FIRST(reference_softmax),
     SUMMED(8, SUMS(1), terms_of_row, "exp 2 twice, sum, quotient"),
     CASES("fhb 9x1024 dim=1", "fh 513x16 dim=0", "fh 8200x5 dim=0", "fh 3x50400 dim=1",
           "fhb 33x7 dim=1", "fhb 7x1025 dim=1", "fhb 33x7 dim=0", "fh 3x5x7 dim=1", "f 1023 dim=0",
           "f 3x1 dim=1", "fh 513x257 dim=1", "f 257x513 dim=0",
           /* e^x would overflow if the maximum were not subtracted */
           "fhb 3x4{60000,59968,-60000,0,-1e4,-1e4,-1e4,-1e4,80,-80,100,100} dim=1",
           /* -inf has probability 0; rows of -inf, with a NaN or with inf are undefined */
           "fhb 4x3{1,-inf,2,-inf,-inf,-inf,1,nan,2,inf,0,1} dim=1"),
     GRADIENTS("fhb 5x7 dim=1", "f 5x7 dim=0"),
     CHAINS({"softmax(a @ b, dim=1) @ transpose(b, dim0=0, dim1=1)", "fhb 5x3~n 3x4~n 5x3~d"})},
    {OP_softmax_backward, "dy", "=", FIRST(reference_softmax_backward),
     SUMMED(6, SUMS(1), terms_of_row, "sum of products"),
     CASES("fhb 9x1024 9x1024 dim=1", "fh 3x33000 3x33000 dim=1", "fhb 33x7 33x7 dim=1",
           "fhb 33x7 33x7 dim=0", "f 7x1025 7x1025 dim=1"),
     GRADIENTS("fhb 5x7~d 5x7~y dim=1", "f 5x3~d 5x3~y dim=0")},
    {OP_log_softmax, "n", "=", FIRST(reference_softmax),
     SUMMED(8, SUMS(1), terms_of_row, "exp 2, sum, log 1, difference"),
     CASES("f 2x49203 dim=1", "fhb 33x7 dim=1", "fhb 7x1025 dim=1", "fhb 33x7 dim=0",
           "fhb 3x4{60000,59968,-60000,0,-1e4,-1e4,-1e4,-1e4,80,-80,100,100} dim=1",
           "fhb 3x3{1,-inf,2,1,nan,2,-inf,-inf,-inf} dim=1",
           /* a common offset of a row must cost no digits */
           "f 3x3{1e38,1e38,-1e38,10000,10000.5,10001,-6e4,-60001,-59999.5} dim=1",
           "f 3x2{1e38,10000,1e38,10000.5,-1e38,10001} dim=0"),
     GRADIENTS("fhb 5x7 dim=1", "f 5x7 dim=0")},
    {OP_log_softmax_backward, "dm", "=", FIRST(reference_softmax_backward),
     SUMMED(8, SUMS(1), terms_of_row, "sum, exp 2"),
     CASES("f 3x33000 3x33000 dim=1", "fhb 33x7 33x7 dim=1", "fhb 33x7 33x7 dim=0")},
    {OP_logsumexp, "n", "=", ROW(reference_logsumexp),
     SUMMED(8, SUMS(1), terms_of_row, "exp 2, sum, log 1"),
     CASES("fh 3x33000 dim=1", "f 2x2x33000 dim=2 keepdim=1", "fhb 33x7 dim=1",
           "fhb 33x7 dim=0 keepdim=1", "fhb 7x1025 dim=1",
           /* rows of -inf, with an infinite term, with a NaN, with numbers far from 0 */
           "fhb 5x2{-inf,-inf,inf,1,nan,1,1000,1000,-1000,-1000} dim=1"),
     GRADIENTS("fhb 5x7 dim=1", "f 5x7 dim=0 keepdim=1",
               "f 2x3{10000,10000.5,10001,-6e4,-60001,-59999.5} dim=1")},
    {OP_row_var, "n", "=", ROW(reference_var),
     SUMMED(8, SUMS(3), terms_of_row, "two sums, the mean's error twice"),
     CASES("fh 3x33000 dim=1", "fhb 33x7 dim=1", "fhb 7x1025 dim=1 correction=0",
           "fh 33x7 dim=0 correction=2"),
     GRADIENTS("fhb 5x7~n dim=1")},
    {OP_row_var_backward, "nd", "=", FIRST(reference_var_backward),
     SUMMED(8, SUMS(1), terms_of_row, "the mean, 4 roundings"),
     CASES("f 3x33000 3 dim=1", "fhb 33x7 33 dim=1", "fh 3x5x7 3x7 dim=1 correction=0")},
    {OP_row_std, "n", "=", ROW(reference_var),
     SUMMED(8, SUMS(3), terms_of_row, "as row_var, and a root"),
     CASES("fh 9000x4 dim=0", "f 33000 dim=0", "fhb 33x7 dim=1", "fh 3x33x5 dim=1 correction=0",
           /* equal elements: a root of 0 */
           "f 2x3{1,1,1,5,5,5} dim=1", "f 1x7{100.1,100.1,100.1,100.1,100.1,100.1,100.1} dim=1"),
     GRADIENTS("fhb 5x7~n dim=0 correction=0")},
    {OP_row_std_backward, "npd", "=", FIRST(reference_var_backward),
     SUMMED(8, SUMS(1), terms_of_row, "the mean, 4 roundings"),
     CASES("fh 2x3x33000 2x3 2x3 dim=2", "fhb 33x7 33 33 dim=1", /* where the root is 0 */
           "fhb 2x3 2{0,1} 2 dim=1")},
    {OP_layer_norm, "nnn", "=", FIRST(reference_layer_norm),
     SUMMED(12, SUMS(2), terms_of_row, "two sums, rsqrt 2"),
     CASES("fhb 9x256 256 256 dim=1", "fh 2x50400 50400 50400 dim=1", "fhb 33x7 7 7 dim=1",
           "fhb 7x1025 1025 1025 dim=1", "fhb 33x7 - - dim=1 eps=0.001", "fh 33x7 7 - dim=1",
           "f 2x3x33 33 33 dim=2", "f 3x1 1 1 dim=1", "h 33x7 f:7 f:7 dim=1",
           "f 513x259 259 259 dim=1",
           /* equal elements far from 0: the normalized row is 0 */
           "fhb "
           "3x11{100.1,100.1,100.1,100.1,100.1,100.1,100.1,100.1,100.1,100.1,100.1,0.3,0.3,0.3,0.3,"
           "0.3,0.3,0.3,0.3,0.3,0.3,0.3,6e4,6e4,6e4,6e4,6e4,6e4,6e4,6e4,6e4,6e4,6e4} 11 11 dim=1"),
     GRADIENTS("fhb 5x7 7 7 dim=1", "fh 5x7 - - dim=1", "f 2x3x5 5 - dim=2"),
     CHAINS({"layer_norm(gelu_erf(a) + a, b, c, dim=1)", "fhb 5x7~n 7~n 7~n 5x7~d"})},
    {OP_layer_norm_backward, "ndn", "=", FIRST(reference_layer_norm_backward),
     SUMMED(24, SUMS(4), terms_of_row, "four sums"),
     CASES("fh 2x65600 2x65600 65600 dim=1", "fhb 33x7 33x7 7 dim=1",
           "fhb 33x7 33x7 - dim=1 eps=0.001", "f 7x1025 7x1025 1025 dim=1")},
    {OP_rms_norm, "nn", "=", FIRST(reference_rms_norm),
     SUMMED(8, SUMS(1), terms_of_row, "a sum of squares, rsqrt 2, two products"),
     CASES("fh 2x33000 33000 dim=1 eps=1e-6", "fhb 33x7 7 dim=1 eps=1e-6",
           "fhb 7x1025 1025 dim=1 eps=1e-6", "fhb 33x7 - dim=1 eps=0.001",
           "f 2x3x33 33 dim=2 eps=1e-6", "f 3x1 1 dim=1 eps=1e-6", "h 33x7 f:7 dim=1 eps=1e-6",
           /* a row of zeros */
           "fhb 2x3{0,0,0,1,2,3} 3 dim=1 eps=1e-5", "f 513x259 259 dim=1 eps=1e-6"),
     GRADIENTS("fhb 5x7 7 dim=1 eps=0.001", "fh 5x7 - dim=1 eps=0.001",
               "f 2x3x5 5 dim=2 eps=0.001")},
    {OP_rms_norm_backward, "ndn", "=", FIRST(reference_rms_norm_backward),
     SUMMED(16, SUMS(2), terms_of_row, "two sums, rsqrt 2"),
     CASES("f 2x33000 2x33000 - dim=1 eps=1e-6", "fhb 33x7 33x7 7 dim=1 eps=1e-6",
           "fhb 33x7 33x7 - dim=1 eps=0.001", "f 7x1025 7x1025 1025 dim=1 eps=1e-6")},
};
FAMILY(rows)
