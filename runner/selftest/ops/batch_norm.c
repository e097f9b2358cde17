/* Statistics of channels and batch norm. */
#include "entry.h"
#include "compiler/rules/rules.h"

/* A tensor seen from its channel axis: element (o, c, i) stands at (o * n_channels + c) * inner +
 * i. The rows of a channel are numbered through all o and i. */
typedef struct Channels { /* [outer, c, inner] */
  int64_t outer, c, inner;
} Channels;

static Channels channels_of(const Case *t)
{
  const Tensor *x = &t->in[0];
  int64_t axis = case_int(t, "channel"), inner = 1;
  for (uint32_t d = (uint32_t)axis + 1; d < x->rank; d++) inner *= x->dim[d];
  return (Channels){x->n / (x->dim[axis] * inner), x->dim[axis], inner};
}

/* Index of row `row` of channel c. */
static int64_t element(const Channels *d, int64_t row, int64_t c)
{
  return (row / d->inner * d->c + c) * d->inner + row % d->inner;
}

/* How many parts a channel is summed in is the compiler's choice, which the result's shape shows:
 * it is the one thing that is taken from the code under test. What stands in the parts is not. */
static void shape_parts_of(const Case *t, Tensor *y)
{
  Channels d = channels_of(t);
  y->rank = 3;
  y->dim[0] = t->test->op == OP_channel_sums ? 1 : 2;
  y->dim[1] = rule_channel_parts(d.outer * d.inner, d.c);
  y->dim[2] = d.c;
}

/* Weight or bias of a channel; absent ones change nothing. */
static double of_channel(const Case *t, uint32_t input, int64_t c, double absent)
{
  return input < t->n_in && t->in[input].present ? t->in[input].at[c] : absent;
}

/* Sums of one part of one channel; moments: its mean, and the sum of squares around it. */
static void part_sums(const Case *t, const Channels *d, int64_t c, int64_t begin, int64_t end,
                      double *sum, double *size)
{
  const double *x = t->in[0].at;
  double n = (double)(end - begin);
  for (int i = 0; i < 2; i++) sum[i] = size[i] = 0;
  for (int64_t row = begin; row < end; row++) {
    double v = x[element(d, row, c)];
    sum[0] += v;
    size[0] += fabs(v);
  }
  for (int64_t row = begin; row < end; row++) {
    double v = x[element(d, row, c)], off = v - sum[0] / n;
    double term = off * off, large = (fabs(v) + size[0] / n) * fabs(off);
    if (t->test->op == OP_batch_norm_sums) {
      double z = t->in[1].at[element(d, row, c)], mean = t->in[2].at[c], rstd = t->in[3].at[c];
      term = v * (z - mean) * rstd;
      large = fabs(v * rstd) * (fabs(z) + fabs(mean));
    }
    sum[1] += term;
    size[1] += large;
  }
  if (t->test->op != OP_channel_moments) return;
  sum[0] /= n;
  size[0] /= n;
  if (sum[1] == 0) size[0] = size[1] = 0; /* equal numbers: exact */
}

/* Result [values, parts, channels]: part p has the rows from n p / parts to n (p + 1) / parts. */
static void reference_parts(const Case *t, Tensor *y, double *scale)
{
  Channels d = channels_of(t);
  int64_t rows = d.outer * d.inner, parts = y->dim[1];
  for (int64_t p = 0; p < parts; p++) {
    for (int64_t c = 0; c < d.c; c++) {
      double sum[2], size[2];
      part_sums(t, &d, c, rows * p / parts, rows * (p + 1) / parts, sum, size);
      for (int64_t v = 0; v < y->dim[0]; v++) {
        y->at[(v * parts + p) * d.c + c] = sum[v];
        scale[(v * parts + p) * d.c + c] = size[v];
      }
    }
  }
}

/* Rows of the longest part. */
static double terms_of_parts(const Case *t)
{
  return (double)(t->in[0].n / (t->want.dim[1] * t->want.dim[2]) + 1);
}

static void shape_join_of(const Case *t, Tensor *y)
{
  y->rank = 1;
  y->dim[0] = t->in[0].dim[2];
}

/* The parts' values, put together: channel_total adds them, channel_mean weighs means by their
 * rows. channel_var has the squares around each part's own mean, and moves them to the common mean:
 * n (part mean - mean)^2 more for each part. */
static void reference_join(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  int64_t parts = x->dim[1], rows = case_int(t, "rows"), value = case_int(t, "value");
  if (t->test->op == OP_channel_total) rows = 1;
  clear_sums(y, scale);
  for (int64_t i = 0; i < parts * y->n; i++) {
    int64_t p = i / y->n, c = i % y->n;
    double n = (double)(rows * (p + 1) / parts - rows * p / parts);
    double term = x->at[value * parts * y->n + i], size = fabs(term);
    if (t->test->op == OP_channel_mean) {
      term *= n;
      size *= n;
    } else if (t->test->op == OP_channel_var) {
      double mean = t->in[1].at[c], off = term - mean;
      term = x->at[parts * y->n + i] + n * off * off;
      size = fabs(x->at[parts * y->n + i]) + n * fabs(off) * (fabs(off) + fabs(mean));
    }
    y->at[c] += term / (double)rows;
    scale[c] += size / (double)rows;
  }
}

static double terms_of_join(const Case *t)
{
  return (double)t->in[0].dim[1];
}

/* x - mean cancels: errors are relative to |x| + |mean|. */
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

/* rstd w (dy - mean(dy) - normal(x) mean(dy normal(x))); the means come as sums and their share,
 * the inverse of the number of rows. */
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

/* batch_norm(x), as in training: mean and variance are those of x */
static Value chain_batch_norm(Compile *c, const Cursor *at, const Value *in)
{
  Node x = *ir_node(c->graph, in[0]);
  const NamedAttr *channel = ATTRS({"channel", {.i = 1}});
  const NamedAttr *rows = ATTRS({"rows", {.i = ir_elements(&x) / x.dim[1]}});
  Value parts = ir_append(c, at, OP_channel_moments, in, 1, channel);
  Value mean = ir_append(c, at, OP_channel_mean, &parts, 1, rows);
  Value var = ir_append(c, at, OP_channel_var, (Value[]){parts, mean}, 2, rows);
  Value rstd = ir_unary(c, at, OP_rsqrt, ir_binary(c, at, OP_add, var, ir_number(c, at, 1e-5)));
  return ir_append(c, at, OP_batch_norm, (Value[]){in[0], mean, rstd, in[1], in[2]}, 5, channel);
}

/* batch_norm(x) with statistics that are given */
static Value chain_norm_eval(Compile *c, const Cursor *at, const Value *in)
{
  const NamedAttr *channel = ATTRS({"channel", {.i = 1}});
  const NamedAttr *dims = ir_shape_attrs(c, (int64_t[]){ir_node(c->graph, in[0])->dim[1]}, 1);
  Value number[] = {ir_number(c, at, 0.25), ir_number(c, at, 1.5)};
  Value mean = ir_append(c, at, OP_full, &number[0], 1, dims);
  Value rstd = ir_append(c, at, OP_full, &number[1], 1, dims);
  return ir_append(c, at, OP_batch_norm_eval, (Value[]){in[0], mean, rstd, in[1], in[2]}, 5,
                   channel);
}

#define PARTS WHOLE(shape_parts_of, reference_parts)

static const OpTest tests[] = {
    {OP_channel_sums, "n", "f", PARTS, SUMMED(1, 0.5, terms_of_parts, "additions in a row"),
     CASES({FLOATS, "33x7", "channel=1"}, {FLOATS, "3x5x7x9", "channel=1"},
           /* several parts of unequal length */
           {"f", "1025x33", "channel=1"})},
    {OP_channel_moments, "n", "f", PARTS, SUMMED(4, 1, terms_of_parts, "two sums"),
     CASES({FLOATS, "33x7", "channel=1"}, {FLOATS, "3x5x7x9", "channel=1"},
           {"fh", "3x65x7", "channel=1"}, {"f", "1025x33", "channel=1"},
           {"f", "2x3x2x5x7", "channel=1"}, {"f", "1x1x1x3", "channel=1"},
           /* equal numbers: their mean, and no distance from it */
           {"f",
            "11x2{100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,0.3,100.1,"
            "0.3,100.1,0.3,100.1,0.3,100.1,0.3}",
            "channel=1"})},
    {OP_channel_total, "n", "f", WHOLE(shape_join_of, reference_join),
     SUMMED(2, 0.5, terms_of_join, "additions in a row"),
     CASES({"f", "2x3x5", "value=1"}, {"f", "2x7x65", "value=0"})},
    {OP_channel_mean, "n", "f", WHOLE(shape_join_of, reference_join),
     SUMMED(3, 0.5, terms_of_join, "differences, products, additions in a row"),
     CASES({"f", "2x3x5", "rows=10"}, {"f", "2x7x65", "rows=1001"})},
    {OP_channel_var, "vn", "f", WHOLE(shape_join_of, reference_join),
     SUMMED(6, 0.5, terms_of_join, "additions in a row, a square"),
     CASES({"f", "2x3x5 5", "rows=10"}, {"f", "2x7x65 65", "rows=1001"})},
    {OP_batch_norm, "nnpnn", "=", FIRST(reference_batch_norm), ULPS(4, "five roundings"),
     CASES({FLOATS, "33x7 f:7 f:7 f:7 f:7", "channel=1"},
           {FLOATS, "3x5x7x9 f:5 f:5 f:5 f:5", "channel=1"},
           {"fh", "3x5x7 f:5 f:5 - -", "channel=1"}),
     CHAINS({chain_batch_norm, FLOATS, "3x2x2x3~n 2~n 2~n 3x2x2x3~d"},
            {chain_batch_norm, "fh", "7x3~n 3~n 3~n 7x3~d"})},
    {OP_batch_norm_eval, "nnpnn", "=", FIRST(reference_batch_norm), ULPS(4, "five roundings"),
     CASES({FLOATS, "3x5x7x9 f:5 f:5 f:5 f:5", "channel=1"},
           {"fh", "33x7 f:7 f:7 - f:7", "channel=1"}),
     CHAINS({chain_norm_eval, FLOATS, "2x3x2x3~n 3~n 3~n 2x3x2x3~d"},
            {chain_norm_eval, "fh", "5x3~n 3~n 3~n 5x3~d"})},
    {OP_batch_norm_sums, "dnnp", "f", PARTS, SUMMED(4, 0.5, terms_of_parts, "additions in a row"),
     CASES({FLOATS, "33x7 33x7 f:7 f:7", "channel=1"},
           {FLOATS, "3x5x7x9 3x5x7x9 f:5 f:5", "channel=1"})},
    {OP_batch_norm_backward, "dnnpnnn", "=", FIRST(reference_batch_norm_backward),
     ULPS(8, "nine roundings"),
     CASES({FLOATS, "33x7 33x7 f:7 f:7 f:7 f:7 f:7", "channel=1 share=0.03"},
           {FLOATS, "3x5x7x9 3x5x7x9 f:5 f:5 - f:5 f:5", "channel=1 share=0.01"})},
};
FAMILY(batch_norm)
