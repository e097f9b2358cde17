/* References of images and channels: convolutions, pools, batch norm. Plain loops in double over
 * images [n, c, h, w], as the language has them. */
#include "selftest.h"
#include "compiler/rules/rules.h"
#include <math.h>

typedef struct Images {
  int64_t n, c, h, w;
} Images;

static Images images_of(const Tensor *x)
{
  return (Images){x->dim[0], x->dim[1], x->dim[2], x->dim[3]};
}

static void set_images(Tensor *y, Images d)
{
  y->rank = 4;
  y->dim[0] = d.n;
  y->dim[1] = d.c;
  y->dim[2] = d.h;
  y->dim[3] = d.w;
}

static int64_t pixel(Images d, int64_t n, int64_t c, int64_t h, int64_t w)
{
  return ((n * d.c + c) * d.h + h) * d.w + w;
}

static int64_t attr(const Case *t, const char *name)
{
  return (int64_t)case_attr(t, name);
}

static void clear(Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) y->at[i] = scale[i] = 0;
}

/* ---- convolutions -------------------------------------------------------------------------------
 */

typedef struct Conv { /* its three tensors; one is the result */
  Images x, y;
  int64_t kh, kw, groups, stride[2], pad[2], dil[2];
  const double *xs, *ws, *ys;
} Conv;

static Conv conv_of(const Case *t, const Tensor *result)
{
  OpKind op = t->test->op;
  const Tensor *x = op == OP_conv2d ? &t->in[0] : op == OP_conv2d_data ? result : &t->in[1];
  const Tensor *w = op == OP_conv2d_weight ? result : &t->in[1];
  const Tensor *y = op == OP_conv2d ? result : &t->in[0];
  return (Conv){.x = images_of(x),
                .y = images_of(y),
                .kh = w->dim[2],
                .kw = w->dim[3],
                .groups = attr(t, "groups"),
                .stride = {attr(t, "stride0"), attr(t, "stride1")},
                .pad = {attr(t, "pad0"), attr(t, "pad1")},
                .dil = {attr(t, "dil0"), attr(t, "dil1")},
                .xs = x->at,
                .ws = w->at,
                .ys = y->at};
}

static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dil)
{
  return (size + 2 * pad - dil * (kernel - 1) - 1) / stride + 1;
}

void shape_conv_of(const Case *t, Tensor *y)
{
  const Tensor *a = &t->in[0], *b = &t->in[1];
  Images d = images_of(a);
  if (t->test->op == OP_conv2d_data) {
    set_images(y, (Images){d.n, b->dim[1] * attr(t, "groups"), attr(t, "h"), attr(t, "w")});
  } else if (t->test->op == OP_conv2d_weight) {
    set_images(y, (Images){d.c, b->dim[1] / attr(t, "groups"), attr(t, "kh"), attr(t, "kw")});
  } else {
    d.c = b->dim[0];
    d.h = windows(d.h, b->dim[2], attr(t, "stride0"), attr(t, "pad0"), attr(t, "dil0"));
    d.w = windows(d.w, b->dim[3], attr(t, "stride1"), attr(t, "pad1"), attr(t, "dil1"));
    set_images(y, d);
  }
}

static void add_term(const Case *t, const Conv *v, Tensor *y, double *scale, int64_t ix, int64_t iw,
                     int64_t iy)
{
  OpKind op = t->test->op;
  int64_t to = op == OP_conv2d ? iy : op == OP_conv2d_data ? ix : iw;
  double p = op == OP_conv2d_data ? v->ys[iy] : v->xs[ix];
  double q = op == OP_conv2d_weight ? v->ys[iy] : v->ws[iw];
  if (t->tf32) p = number_round_bits(p, 11);
  if (t->tf32) q = number_round_bits(q, 11);
  y->at[to] += p * q;
  scale[to] += fabs(p * q);
}

/* One output pixel of one output channel. */
static void add_window(const Case *t, const Conv *v, Tensor *y, double *scale, const int64_t *at)
{
  int64_t n = at[0], k = at[1], group = v->x.c / v->groups;
  int64_t first = k / (v->y.c / v->groups) * group;
  for (int64_t c = 0; c < group; c++) {
    for (int64_t a = 0; a < v->kh; a++) {
      for (int64_t b = 0; b < v->kw; b++) {
        int64_t h = at[2] * v->stride[0] - v->pad[0] + a * v->dil[0];
        int64_t w = at[3] * v->stride[1] - v->pad[1] + b * v->dil[1];
        if (h < 0 || h >= v->x.h || w < 0 || w >= v->x.w) continue;
        add_term(t, v, y, scale, pixel(v->x, n, first + c, h, w),
                 ((k * group + c) * v->kh + a) * v->kw + b, pixel(v->y, n, k, at[2], at[3]));
      }
    }
  }
}

void reference_conv(const Case *t, Tensor *y, double *scale)
{
  Conv v = conv_of(t, y);
  int64_t all = v.y.n * v.y.c * v.y.h * v.y.w;
  clear(y, scale);
  for (int64_t i = 0; i < all; i++) {
    int64_t at[4] = {i / (v.y.c * v.y.h * v.y.w), i / (v.y.h * v.y.w) % v.y.c, i / v.y.w % v.y.h,
                     i % v.y.w};
    add_window(t, &v, y, scale, at);
    if (t->test->op != OP_conv2d || t->n_in < 3 || !t->in[2].present) continue;
    y->at[i] += t->in[2].at[at[1]];
    scale[i] += fabs(t->in[2].at[at[1]]);
  }
}

/* Most terms of one sum. */
double conv_terms(const Case *t)
{
  Conv v = conv_of(t, &t->want);
  if (t->test->op == OP_conv2d_weight) return (double)(v.y.n * v.y.h * v.y.w);
  int64_t channels = t->test->op == OP_conv2d ? v.x.c : v.y.c;
  return (double)(channels / v.groups * v.kh * v.kw);
}

/* ---- channels
 * ------------------------------------------------------------------------------------
 */

typedef struct Channels { /* [outer, c, inner] */
  int64_t outer, c, inner;
} Channels;

static Channels channels_of(const Case *t)
{
  const Tensor *x = &t->in[0];
  int64_t axis = attr(t, "channel"), inner = 1;
  for (uint32_t d = (uint32_t)axis + 1; d < x->rank; d++) inner *= x->dim[d];
  return (Channels){x->n / (x->dim[axis] * inner), x->dim[axis], inner};
}

static int64_t element(const Channels *d, int64_t row, int64_t c)
{
  return (row / d->inner * d->c + c) * d->inner + row % d->inner;
}

void shape_parts_of(const Case *t, Tensor *y)
{
  Channels d = channels_of(t);
  y->rank = 3;
  y->dim[0] = t->test->op == OP_channel_sums ? 1 : 2;
  y->dim[1] = rule_channel_parts(d.outer * d.inner, d.c);
  y->dim[2] = d.c;
}

static double of_channel(const Case *t, uint32_t input, int64_t c, double absent)
{
  return input < t->n_in && t->in[input].present ? t->in[input].at[c] : absent;
}

/* Sums of one part of one channel; moments: the second is of squares around the part's mean. */
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
}

void reference_parts(const Case *t, Tensor *y, double *scale)
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

void shape_join_of(const Case *t, Tensor *y)
{
  y->rank = 1;
  y->dim[0] = t->in[0].dim[2];
}

void reference_join(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  int64_t parts = x->dim[1], rows = attr(t, "rows"), value = attr(t, "value");
  clear(y, scale);
  for (int64_t i = 0; i < parts * y->n; i++) {
    int64_t p = i / y->n, c = i % y->n;
    double n = (double)(rows * (p + 1) / parts - rows * p / parts);
    double term = x->at[value * parts * y->n + i], size = fabs(term);
    if (t->test->op == OP_channel_var) {
      double mean = t->in[1].at[c], off = term / n - mean;
      term = x->at[parts * y->n + i] + n * off * off;
      size = fabs(x->at[parts * y->n + i]) + n * fabs(off) * (fabs(off) + fabs(mean));
    }
    y->at[c] += term / (double)rows;
    scale[c] += size / (double)rows;
  }
}

void reference_batch_norm(const Case *t, Tensor *y, double *scale)
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

void reference_batch_norm_backward(const Case *t, Tensor *y, double *scale)
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
