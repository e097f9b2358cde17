/* Statistics of channels, partial sums and batch norm. */
#include "entry.h"
#include "compiler/graph/columns.h"

/* A tensor as [outer, c, inner] around its channel axis: element (o, c, i) is at index (o *
 * n_channels + c) * inner + i. The rows of a channel are numbered over all o and i. */
typedef struct Channels {
  int64_t outer, c, inner;
} Channels;

static Channels channels_of(const Case *t)
{
  const Tensor *x = &t->in[0];
  int64_t axis = case_int(t, "channel"), columns = case_int(t, "columns"), inner = 1;
  if (columns) return (Channels){x->n / columns, columns, 1}; /* columns need not be an axis */
  for (uint32_t d = (uint32_t)axis + 1; d < x->rank; d++) inner *= x->dim[d];
  return (Channels){x->n / (x->dim[axis] * inner), x->dim[axis], inner};
}

/* Returns the index of row `row` of channel c. */
static int64_t element(const Channels *d, int64_t row, int64_t c)
{
  return (row / d->inner * d->c + c) * d->inner + row % d->inner;
}

/* Computes the shape [parts, channels]. The compiler decides how a channel is split into parts; the
 * reference takes only this from the code under test, not the values of the parts. */
static void shape_parts_of(const Case *t, Tensor *y)
{
  Channels d = channels_of(t);
  y->rank = 2;
  y->dim[0] = column_parts(d.outer * d.inner, d.c);
  y->dim[1] = d.c;
}

/* Returns the weight or bias of a channel; `absent` if there is no such input. */
static double of_channel(const Case *t, uint32_t input, int64_t c, double absent)
{
  return input < t->n_in && t->in[input].present ? t->in[input].at[c] : absent;
}

/* Returns the number of rows in the longest part. */
static double terms_of_parts(const Case *t)
{
  Channels d = channels_of(t);
  return fmin((double)column_part_rows(d.outer * d.inner, d.c), (double)(d.outer * d.inner));
}

typedef struct PartSum { /* size: the sum of the absolute values */
  double sum, size;
} PartSum;

static PartSum sum_part(const Case *t, const Channels *d, int64_t c, int64_t begin, int64_t end)
{
  PartSum s = {0};
  for (int64_t row = begin; row < end; row++) {
    double v = t->in[0].at[element(d, row, c)];
    s.sum += v;
    s.size += fabs(v);
  }
  return s;
}

/* Returns the sum of dy (x - mean) rstd over the rows of a part. */
static PartSum sum_products(const Case *t, const Channels *d, int64_t c, int64_t begin, int64_t end)
{
  PartSum s = {0};
  for (int64_t row = begin; row < end; row++) {
    double dy = t->in[0].at[element(d, row, c)], x = t->in[1].at[element(d, row, c)];
    double mean = t->in[2].at[c], rstd = t->in[3].at[c];
    s.sum += dy * (x - mean) * rstd;
    s.size += fabs(dy * rstd) * (fabs(x) + fabs(mean));
  }
  return s;
}

/* Returns the mean of a part. The kernels subtract a guess of the mean first (Note [moments] in
 * ops.def). A subtraction in f32 is off by an ulp of the element's distance from the guess, which
 * is at most the range of the elements. The error of the squares is bounded by the sum of squares
 * around the guess. If all elements are equal, the mean is exact and the squares are 0. */
static PartSum mean_of_part(const Case *t, const Channels *d, int64_t c, int64_t begin, int64_t end)
{
  PartSum s = sum_part(t, d, c, begin, end);
  double n = (double)(end - begin), mean = s.sum / n, far = 0;
  for (int64_t row = begin; row < end; row++)
    far = fmax(far, fabs(t->in[0].at[element(d, row, c)] - mean));
  return (PartSum){mean, far > 0 ? far + fabs(mean) / n : 0};
}

static PartSum squares_of_part(const Case *t, const Channels *d, int64_t c, int64_t begin,
                               int64_t end)
{
  enum { NEAR = 4 };
  double mean = mean_of_part(t, d, c, begin, end).sum, guess = 0;
  PartSum s = {0};
  for (int64_t k = 0; k < NEAR; k++) {
    int64_t row = begin + (end - begin) * k / NEAR;
    guess += t->in[0].at[element(d, row, c)] / NEAR;
  }
  for (int64_t row = begin; row < end; row++) {
    double v = t->in[0].at[element(d, row, c)];
    s.sum += (v - mean) * (v - mean);
    s.size += (v - guess) * (v - guess);
  }
  return s.sum > 0 ? s : (PartSum){0};
}

/* Computes the values of the parts, as [parts, channels]. */
static void reference_parts(const Case *t, Tensor *y, double *scale)
{
  Channels d = channels_of(t);
  int64_t rows = d.outer * d.inner, each = column_part_rows(rows, d.c);
  for (int64_t p = 0; p < y->dim[0]; p++) {
    int64_t begin = p * each, end = begin + each < rows ? begin + each : rows;
    for (int64_t c = 0; c < d.c; c++) {
      OpKind op = t->test->op;
      PartSum s = op == OP_channel_sums      ? sum_part(t, &d, c, begin, end)
                  : op == OP_part_sums       ? sum_part(t, &d, c, begin, end)
                  : op == OP_channel_means   ? mean_of_part(t, &d, c, begin, end)
                  : op == OP_channel_squares ? squares_of_part(t, &d, c, begin, end)
                                             : sum_products(t, &d, c, begin, end);
      y->at[p * d.c + c] = s.sum;
      scale[p * d.c + c] = s.size;
    }
  }
}

static void shape_join_of(const Case *t, Tensor *y)
{
  y->rank = 1;
  y->dim[0] = t->in[0].dim[1];
}

/* Combines the values of the parts. channel_mean weighs their means by their rows. channel_var gets
 * the squares around each part's own mean; to move them to the common mean, it adds n (part mean -
 * mean)^2 for each part. */
static void reference_join(const Case *t, Tensor *y, double *scale)
{
  const Tensor *means = &t->in[0];
  int64_t parts = means->dim[0], rows = case_int(t, "rows"), each = column_part_rows(rows, y->n);
  for (int64_t c = 0; c < y->n; c++) {
    double mean = 0, size = 0, squares = 0, of_squares = 0;
    for (int64_t p = 0; p < parts; p++) {
      double n = (double)(rows - p * each < each ? rows - p * each : each);
      mean += n * means->at[p * y->n + c] / (double)rows;
      size += n * fabs(means->at[p * y->n + c]) / (double)rows;
    }
    for (int64_t p = 0; p < parts && t->test->op == OP_channel_var; p++) {
      double n = (double)(rows - p * each < each ? rows - p * each : each);
      double off = means->at[p * y->n + c] - mean, own = t->in[1].at[p * y->n + c];
      squares += (own + n * off * off) / (double)rows;
      of_squares += (fabs(own) + n * fabs(off) * (fabs(off) + size)) / (double)rows;
    }
    y->at[c] = t->test->op == OP_channel_var ? fmax(squares, 0) : mean;
    scale[c] = t->test->op == OP_channel_var ? of_squares : size;
  }
}

static double terms_of_join(const Case *t)
{
  return (double)t->in[0].dim[0];
}

/* Normalizes. x - mean cancels, so errors are relative to |x| + |mean|. */
static void reference_batch_norm(const Case *t, Tensor *y, double *scale)
{
  Channels d = channels_of(t);
  for (int64_t i = 0; i < y->n; i++) {
    int64_t c = i / d.inner % d.c;
    double mean = t->in[1].at[c], rstd = t->in[2].at[c], x = t->in[0].at[i];
    double weight = of_channel(t, 3, c, 1), bias = of_channel(t, 4, c, 0);
    y->at[i] = (x - mean) * rstd * weight + bias;
    scale[i] = (fabs(x) + fabs(mean)) * fabs(rstd * weight) + fabs(bias);
  }
}

/* Computes rstd w (dy - mean(dy) - normal(x) mean(dy normal(x))). The inputs are sums instead of
 * means; `share` is 1 / number of rows. */
static void reference_batch_norm_backward(const Case *t, Tensor *y, double *scale)
{
  Channels d = channels_of(t);
  double share = case_attr(t, "share");
  for (int64_t i = 0; i < y->n; i++) {
    int64_t c = i / d.inner % d.c;
    double mean = t->in[2].at[c], rstd = t->in[3].at[c], x = t->in[1].at[i], dy = t->in[0].at[i];
    double a = t->in[5].at[c] * share, b = t->in[6].at[c] * share;
    double slope = rstd * of_channel(t, 4, c, 1);
    y->at[i] = slope * (dy - a - (x - mean) * rstd * b);
    scale[i] = fabs(slope) * (fabs(dy) + fabs(a) + (fabs(x) + fabs(mean)) * fabs(rstd * b));
  }
}

/* as in training: the mean and the variance are those of a */
#define BATCH_NORM(rows)                                                                           \
  "m = channel_means(a, channel=1); s = channel_squares(a, channel=1); "                           \
  "mean = channel_mean(m, rows=" #rows "); "                                                       \
  "var = channel_var(m, s, rows=" #rows "); "                                                      \
  "batch_norm(a, mean, rsqrt(var + 1e-5), b, c, channel=1)"

#define PARTS WHOLE(shape_parts_of, reference_parts)

static const OpTest tests[] = {
    {OP_channel_sums, "n", "f", PARTS, SUMMED(1, 0.5, terms_of_parts, "additions in a row"),
     CASES("fhb 33x7 channel=1", "fhb 3x5x7x9 channel=1",
           /* several parts of different length */
           "f 1025x33 channel=1")},
    {OP_part_sums, "n", "f", PARTS, SUMMED(1, 0.5, terms_of_parts, "additions in a row"),
     CASES("fhb 33x7 columns=7", "fhb 33x7 columns=1", "fh 1027x3 columns=3",
           /* column counts that split an axis; several parts of different length */
           "fhb 5x6x7x8 columns=16", "fh 130x24x5 columns=16", "f 2050x3x4 columns=8",
           "f 1025x65 columns=65", "f 1027x5x13 columns=65")},
    {OP_channel_means, "n", "f", PARTS, SUMMED(4, 1, terms_of_parts, "two sums"),
     CASES("fhb 33x7 channel=1", "fhb 3x5x7x9 channel=1", "fh 3x65x7 channel=1",
           "f 1025x33 channel=1", "f 2x3x2x5x7 channel=1", "f 1x1x1x3 channel=1",
           /* equal elements: the result is that number */
           "f "
           "11x2{100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,"
           "100.1,0.3,100.1,0.3,100.1,0.3} channel=1")},
    {OP_channel_squares, "n", "f", PARTS, SUMMED(4, 1, terms_of_parts, "two sums"),
     CASES("fhb 33x7 channel=1", "fhb 3x5x7x9 channel=1", "fh 3x65x7 channel=1",
           "f 1025x33 channel=1", "f 2x3x2x5x7 channel=1", "f 1x1x1x3 channel=1",
           /* equal elements: the result is 0 */
           "f "
           "11x2{100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,"
           "100.1,0.3,100.1,0.3,100.1,0.3} channel=1",
           /* a large mean, and a first row that differs from the others */
           "f "
           "9x2{10000,7,10001,1007,10002,1008,10001,1006,10000,1007,10001,1007,10002,1008,10000,"
           "1006,10001,1007} channel=1")},
    {OP_channel_mean, "n", "f", WHOLE(shape_join_of, reference_join),
     SUMMED(3, 0.5, terms_of_join, "differences, products, additions in a row"),
     CASES("f 3x5 rows=2900", "f 11x65 rows=671", "f 1x3 rows=1")},
    {OP_channel_var, "nv", "f", WHOLE(shape_join_of, reference_join),
     SUMMED(6, 0.5, terms_of_join, "additions in a row, a square"),
     CASES("f 3x5 3x5 rows=2900", "f 11x65 11x65 rows=671")},
    {OP_batch_norm, "nnpnn", "=", FIRST(reference_batch_norm), ULPS(4, "five roundings"),
     CASES("fhb 33x7 f:7 f:7 f:7 f:7 channel=1", "fhb 3x5x7x9 f:5 f:5 f:5 f:5 channel=1",
           "fh 3x5x7 f:5 f:5 - - channel=1"),
     CHAINS({BATCH_NORM(18), "fhb 3x2x2x3~n 2~n 2~n 3x2x2x3~d"},
            {BATCH_NORM(7), "fh 7x3~n 3~n 3~n 7x3~d"})},
    {OP_batch_norm_eval, "nnpnn", "=", FIRST(reference_batch_norm), ULPS(4, "five roundings"),
     CASES("fhb 3x5x7x9 f:5 f:5 f:5 f:5 channel=1", "fh 33x7 f:7 f:7 - f:7 channel=1"),
     CHAINS({"batch_norm_eval(a, b, c, d, e, channel=1)",
             "fhb 2x3x2x3~n f:3~n f:3~p 3~n 3~n 2x3x2x3~d"},
            {"batch_norm_eval(a, b, c, d, e, channel=1)", "fh 5x3~n f:3~n f:3~p 3~n 3~n 5x3~d"},
            {"batch_norm_eval(a, b, c, none, none, channel=1)", "fh 5x3~n f:3~n f:3~p 5x3~d"})},
    {OP_channel_products, "dnnp", "f", PARTS, SUMMED(4, 0.5, terms_of_parts, "additions in a row"),
     CASES("fhb 33x7 33x7 f:7 f:7 channel=1", "fhb 3x5x7x9 3x5x7x9 f:5 f:5 channel=1")},
    {OP_batch_norm_backward, "dnnpnnn", "=", FIRST(reference_batch_norm_backward),
     ULPS(8, "nine roundings"),
     CASES("fhb 33x7 33x7 f:7 f:7 f:7 f:7 f:7 channel=1 share=0.03",
           "fhb 3x5x7x9 3x5x7x9 f:5 f:5 - f:5 f:5 channel=1 share=0.01")},
};
FAMILY(batch_norm)
