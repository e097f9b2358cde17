/* Convolutions of images and their gradients. */
#include "entry.h"

/* Images [n, c, h, w], as the language has them. */
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

typedef struct Conv { /* its three tensors; one is the result */
  Images x, y;
  int64_t kh, kw, groups, stride[2], pad[2], dil[2];
  const double *xs, *ws, *ys;
} Conv;

/* Which of the case's tensors plays which part: y = conv2d(x, w); conv2d_data makes x, and
 * conv2d_weight makes w, of what stands in y's place, dy. */
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
                .groups = case_int(t, "groups"),
                .stride = {case_int(t, "stride0"), case_int(t, "stride1")},
                .pad = {case_int(t, "pad0"), case_int(t, "pad1")},
                .dil = {case_int(t, "dil0"), case_int(t, "dil1")},
                .xs = x->at,
                .ws = w->at,
                .ys = y->at};
}

/* Output pixels along an axis, as PyTorch counts them. */
static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dil)
{
  return (size + 2 * pad - dil * (kernel - 1) - 1) / stride + 1;
}

static void shape_conv_of(const Case *t, Tensor *y)
{
  const Tensor *a = &t->in[0], *b = &t->in[1];
  Images d = images_of(a);
  if (t->test->op == OP_conv2d_data) {
    set_images(
        y, (Images){d.n, b->dim[1] * case_int(t, "groups"), case_int(t, "h"), case_int(t, "w")});
  } else if (t->test->op == OP_conv2d_weight) {
    set_images(
        y, (Images){d.c, b->dim[1] / case_int(t, "groups"), case_int(t, "kh"), case_int(t, "kw")});
  } else {
    d.c = b->dim[0];
    d.h = windows(d.h, b->dim[2], case_int(t, "stride0"), case_int(t, "pad0"), case_int(t, "dil0"));
    d.w = windows(d.w, b->dim[3], case_int(t, "stride1"), case_int(t, "pad1"), case_int(t, "dil1"));
    set_images(y, d);
  }
}

/* One product of the sum that all three ops are made of: y[iy] += x[ix] w[iw], read as what the op
 * makes of the other two. tf32 keeps 11 bits of each factor. */
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

/* All three by one walk over the windows of y; the bias is conv2d's alone. */
static void reference_conv(const Case *t, Tensor *y, double *scale)
{
  Conv v = conv_of(t, y);
  int64_t all = v.y.n * v.y.c * v.y.h * v.y.w;
  clear_sums(y, scale);
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
static double terms_of_conv(const Case *t)
{
  Conv v = conv_of(t, &t->want);
  if (t->test->op == OP_conv2d_weight) return (double)(v.y.n * v.y.h * v.y.w);
  int64_t channels = t->test->op == OP_conv2d ? v.x.c : v.y.c;
  return (double)(channels / v.groups * v.kh * v.kw);
}

/* max_pool2d(conv2d(x + x, w, b)) and a flat copy of it: images meet what is none */
static Value chain_images(Compile *c, const Cursor *at, const Value *in)
{
  const NamedAttr *conv = ATTRS({"pad0", {.i = 1}}, {"pad1", {.i = 1}});
  const NamedAttr *pool = ATTRS({"kernel0", {.i = 2}}, {"kernel1", {.i = 2}}, {"stride0", {.i = 2}},
                                {"stride1", {.i = 2}});
  Value conv_in[] = {ir_binary(c, at, OP_add, in[0], in[0]), in[1], in[2]};
  Value y = ir_append(c, at, OP_conv2d, conv_in, 3, conv);
  y = ir_append(c, at, OP_max_pool2d, &y, 1, pool);
  Node n = *ir_node(c->graph, y);
  Value flat = ir_reshape(c, at, y, (int64_t[]){n.dim[0], ir_elements(&n) / n.dim[0]}, 2);
  Value mean = ir_reduce(c, at, OP_mean, y, 12, true);
  Value centred = ir_binary(c, at, OP_sub, y, mean);
  return ir_binary(
      c, at, OP_mul, flat,
      ir_reshape(c, at, centred, (int64_t[]){n.dim[0], ir_elements(&n) / n.dim[0]}, 2));
}

/* Numbers that are no tensors: as weight of one convolution and as images of another. */
static Value chain_numbers(Compile *c, const Cursor *at, const Value *in)
{
  Value one = ir_reshape(c, at, ir_number(c, at, 0.75), (int64_t[]){1, 1, 1, 1}, 4);
  one = ir_cast(c, at, one, ir_node(c->graph, in[0])->dtype);
  Value x = ir_append(c, at, OP_conv2d, (Value[]){in[0], one, {0}}, 3, NULL);
  Value y = ir_append(c, at, OP_conv2d, (Value[]){one, in[1], {0}}, 3, NULL);
  return ir_binary(c, at, OP_mul, x, y);
}

static const OpTest tests[] = {
    {OP_conv2d, "nnn", "=", WHOLE(shape_conv_of, reference_conv),
     SUMMED(2, 0.5, terms_of_conv, "additions in a row, bias"),
     CASES({FLOATS, "2x3x7x9 5x3x3x3 5", ""}, {FLOATS, "1x1x5x5 1x1x1x1 -", ""},
           /* groups; a group a channel; uneven strides, padding and dilation; more channels than
              pixels */
           {FLOATS, "3x4x9x7 8x2x3x3 8", "stride0=2 stride1=2 pad0=1 pad1=1 groups=2"},
           {"fh", "2x5x9x9 5x1x3x5 -", "pad0=1 pad1=2 groups=5"},
           {"fb", "2x3x11x8 7x3x3x2 7", "stride0=3 stride1=1 pad0=2 pad1=0 dil0=2 dil1=3"},
           {"f", "1x33x3x3 17x33x2x2 17", "pad0=1 pad1=1"}, {"f", "2x3x7x9 5x3x3x3 5", "tf32=1"}),
     GRADIENTS({FLOATS, "2x3x4x5 2x3x3x3 2", "pad0=1 pad1=1"},
               {"fh", "1x4x6x5 4x2x2x3 -", "stride0=2 stride1=1 pad0=1 pad1=0 groups=2"},
               {"f", "1x2x7x5 3x2x3x2 3", "dil0=2 dil1=3 stride0=1 stride1=1"}),
     CHAINS({chain_images, FLOATS, "2x2x4x4~n 3x2x3x3~n 3~n 2x12~d"},
            {chain_numbers, FLOATS, "2x1x3x3~n 3x1x1x1~n 2x3x3x3~d"})},
    {OP_conv2d_data, "dn", "=", WHOLE(shape_conv_of, reference_conv),
     SUMMED(1, 0.5, terms_of_conv, "additions in a row"),
     CASES({FLOATS, "2x5x5x7 5x3x3x3", "h=7 w=9"},
           {FLOATS, "3x8x5x4 8x2x3x3", "stride0=2 stride1=2 pad0=1 pad1=1 groups=2 h=9 w=7"},
           {"fh", "2x7x4x5 7x3x3x2", "stride0=3 stride1=1 pad0=2 pad1=0 dil0=2 dil1=3 h=11 w=8"},
           {"f", "2x5x5x7 5x3x3x3", "h=7 w=9 tf32=1"}),
     GRADIENTS({FLOATS, "1x2x3x3 2x3x2x2", "stride0=2 stride1=2 h=6 w=6"})},
    {OP_conv2d_weight, "dn", "=", WHOLE(shape_conv_of, reference_conv),
     SUMMED(1, 0.5, terms_of_conv, "additions in a row"),
     CASES({FLOATS, "2x5x5x7 2x3x7x9", "kh=3 kw=3"},
           {FLOATS, "3x8x5x4 3x4x9x7", "stride0=2 stride1=2 pad0=1 pad1=1 groups=2 kh=3 kw=3"},
           {"fh", "2x7x4x5 2x3x11x8", "stride0=3 stride1=1 pad0=2 pad1=0 dil0=2 dil1=3 kh=3 kw=2"},
           {"f", "2x5x5x7 2x3x7x9", "kh=3 kw=3 tf32=1"})},
};
FAMILY(convolutions)
