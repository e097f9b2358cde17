/* Losses of rows with labels, and elementwise losses. */
#include "entry.h"

/* Returns the target probability of the class of element i: e / n, for the label 1 - e more. */
static double share_of(const Case *t, const Rows *r, int64_t i)
{
  double e = case_attr(t, "label_smoothing");
  bool is_label = (i - r->start) / r->stride == (int64_t)t->in[1].at[r->row];
  return e / (double)r->length + (is_label ? 1 - e : 0);
}

/* Computes -sum(share log p), where a share is a target probability. A share of 0 adds nothing even
 * if log p is -inf. A label out of range yields NaN, the ignored label 0. */
static void reference_cross_entropy(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    double m, z = log(row_sum(x->at, &r, &m)), loss = 0, size = fabs(z) + 1;
    int64_t label = (int64_t)t->in[1].at[r.row];
    EACH (i, r) {
      double off = m - x->at[i], share = share_of(t, &r, i);
      if (share != 0) loss += share * (z + off);
      if (share != 0) size += share * off;
    }
    if (label < 0 || label >= r.length || row_undefined(x->at, &r)) loss = NAN;
    bool ignored = (double)label == case_attr(t, "ignore_index");
    y->at[r.row] = ignored ? 0 : loss;
    scale[r.row] = ignored ? 0 : size;
  }
}

/* Computes dy (softmax - shares). */
static void reference_cross_entropy_backward(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (Rows r = rows_of(x, case_axis(t)); next_row(&r);) {
    double m, sum = row_sum(x->at, &r, &m), dy = t->in[2].at[r.row];
    int64_t label = (int64_t)t->in[1].at[r.row];
    bool ignored = (double)label == case_attr(t, "ignore_index");
    EACH (i, r) {
      double target = share_of(t, &r, i), p = exp(x->at[i] - m) / sum;
      y->at[i] = ignored ? 0 : dy * (p - target);
      scale[i] = ignored ? 0 : fabs(dy) * (p * (1 + fabs(x->at[i] - m)) + target);
    }
  }
}

/* Returns log(1 + e^x) without overflow. */
static double softplus(double x)
{
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

ELEMENT(squared_error, (x[0] - x[1]) * (x[0] - x[1]), fabs(r))
/* with targets 0 and 1 the large terms cancel exactly, so the error is relative to the result */
ELEMENT(bce_with_logits, ((1 - x[1]) * x[0] + (x[0] < 0 ? -x[0] : 0)) + log1p(exp(-fabs(x[0]))),
        x[1] == 0 || x[1] == 1 ? fabs(r) : fabs((1 - x[1]) * x[0]) + softplus(-x[0]))
/* Returns log(x), at least -100. */
static double bounded_log(double x)
{
  return x == 0 ? -100 : fmax(log(x), x > 0 ? -100 : NAN);
}
ELEMENT(bce, -x[1] * bounded_log(x[0]) - (1 - x[1]) * bounded_log(1 - x[0]),
        fabs(x[1] * bounded_log(x[0])) + fabs((1 - x[1]) * bounded_log(1 - x[0])))
ELEMENT(bce_backward, x[0] * (x[1] - x[2]) / fmax(x[1] * (1 - x[1]), 1e-12),
        fabs(x[0]) * (fabs(x[1]) + fabs(x[2])) / fmax(x[1] * (1 - x[1]), 1e-12))

static const OpTest tests[] = {
    {OP_cross_entropy_rows, "nk", "=", ROW(reference_cross_entropy),
     SUMMED(8, SUMS(1), terms_of_row, "as log_softmax"),
     CASES("f 2x9000x4 l:2x4 dim=1", "fh 3x33000 l:3 dim=1 label_smoothing=0.1",
           "f 3x33000 l:3{-100,32999,33000} dim=1", "fhb 33x7 l:33 dim=1",
           "fhb 7x1025 l:7 dim=1 label_smoothing=0.1",
           "fh 3x7x5 l:3x5 dim=1", /* the ignored label, and labels out of range */
           "fhb 5x3 l:5{-100,0,3,-1,2} dim=1", "fhb 5x3 l:5{1,0,3,-1,2} dim=1 ignore_index=1",
           "f 3x3{500,-500,0,1,nan,2,1,inf,3} l:3{1,0,0} dim=1",
           /* the class of the label, or another one, has probability 0 */
           "fhb 3x3{1,-inf,2,-inf,1,2,-inf,0,-inf} l:3{0,0,1} dim=1",
           "fh 2x3{1,-inf,2,-inf,1,2} l:2{0,0} dim=1 label_smoothing=0.1",
           "fh 1025x129 l:1025 dim=1",
           /* logits with a common offset, which must not cost the loss any digits */
           "fhb 3x3{10000,10008,9992,-6e4,-60032,-6e4,1000,1001,1002} l:3 dim=1",
           "f 2x3{1e38,1e38,-1e38,10000,10000.5,10001} l:2{0,1} dim=1",
           "f 1x3{10000,10000.5,10001} l:1 dim=1 label_smoothing=0.1",
           "f 3x2{10000,-6e4,10000.5,-60000.5,9999,-60000.25} l:2 dim=0"),
     GRADIENTS("fhb 5x7 l:5 dim=1", "fhb 5x7 l:5 dim=1 label_smoothing=0.1", "f 3x5x2 l:3x2 dim=1",
               "f 4x3 l:4{1,0,2,1} dim=1 ignore_index=1")},
    {OP_cross_entropy_backward, "nkd", "=", FIRST(reference_cross_entropy_backward),
     SUMMED(10, SUMS(1), terms_of_row, "as softmax, two differences"),
     CASES("f 2x9000x8 l:2x8 2x8 dim=1", "fh 3x50400 l:3 3 dim=1 label_smoothing=0.1",
           "f 3x50400 l:3{-100,50399,2101} 3 dim=1",
           "fhb 2x3{1,-inf,2,-inf,0,-inf} l:2{0,1} 2 dim=1", "fhb 33x7 l:33 33 dim=1",
           "fhb 7x1025 l:7 7 dim=1 label_smoothing=0.1", "fh 3x7x5 l:3x5 3x5 dim=1",
           "fhb 3x3 l:3{-100,0,2} 3 dim=1")},
    {OP_squared_error, "gg", "=", MAP(squared_error),
     ULPS(2, "the difference is half an ulp off, its square two"),
     CASES("fhb 1025 1025", "fhb 7x33 33"), GRADIENTS("fhb 7x3~n 3~n")},
    {OP_bce_with_logits, "gy", "=", MAP(bce_with_logits), ULPS(7, "softplus 4, three roundings"),
     CASES("fhb 1025 1025", /* where e^x overflows */
           "f 4{200,-200,0,-1e30} 4{0,1,0.5,0}",
           /* logits that agree with their targets: small losses */
           "fhb 6{-10,10,-16,16,-5,9} 6{0,1,0,1,0,1}"),
     GRADIENTS("fhb 17~n 17~y")},
    {OP_bce, "yy", "=", MAP(bce), ULPS(4, "two logarithms 1 and 2, three roundings"),
     CASES("fhb 1025 1025", "fhb 7x33 33",
           /* probabilities 0 and 1, right and wrong; values that are not probabilities */
           "fhb 6{0,1,0,1,1e-30,0.5} 6{0,1,1,0,1,0.25}", "fhb 4{-0.5,1.5,nan,0} 4{0.5,0.5,0,0.5}"),
     GRADIENTS("fhb 7{0.15,0.2,0.4,0.55,0.7,0.8,0.85} 7~y")},
    {OP_bce_backward, "dyy", "=", MAP(bce_backward),
     ULPS(4, "a product, two differences, a quotient, a product"),
     CASES("fhb 1025 1025 1025", "fhb 4{1,-1,1,2} 4{0,1,0,1} 4{0,1,1,0}"),
     GRADIENTS("fhb 7~d 7{0.15,0.2,0.4,0.55,0.7,0.8,0.85} 7~y")},
};
FAMILY(losses)
