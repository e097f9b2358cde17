/* Convolutions of images and their gradients. */
#include "entry.h"
#include <stdio.h>

enum { AXES = 3 };

/* Images [n, c, h, w] and volumes [n, c, d, h, w]. An image is a volume of depth 1. */
typedef struct Images {
  uint32_t axes; /* number of spatial axes */
  int64_t n, c, size[AXES];
} Images;

static Images images_of(const Tensor *x)
{
  Images d = {x->rank - 2, x->dim[0], x->dim[1], {1, 1, 1}};
  for (uint32_t i = 0; i < d.axes; i++) d.size[AXES - d.axes + i] = x->dim[2 + i];
  return d;
}

static void set_images(Tensor *y, Images d)
{
  y->rank = 2 + d.axes;
  y->dim[0] = d.n;
  y->dim[1] = d.c;
  for (uint32_t i = 0; i < d.axes; i++) y->dim[2 + i] = d.size[AXES - d.axes + i];
}

static int64_t pixels(const Images *d)
{
  return d->size[0] * d->size[1] * d->size[2];
}

static int64_t pixel(const Images *d, int64_t n, int64_t c, const int64_t *at)
{
  return (((n * d->c + c) * d->size[0] + at[0]) * d->size[1] + at[1]) * d->size[2] + at[2];
}

/* Computes the coordinates of pixel i of an image. */
static void place_of(const Images *d, int64_t i, int64_t *at)
{
  for (int axis = AXES - 1; axis >= 0; i /= d->size[axis--]) at[axis] = i % d->size[axis];
}

typedef struct Conv { /* the three tensors of a convolution; one is the result */
  const Case *t;
  Images x, y, w;
  int64_t groups, stride[AXES], pad[AXES], dil[AXES];
  const double *xs, *ys, *ws;
  double *sums, *scale; /* of the elements of the result */
} Conv;

static bool makes_images(const Case *t)
{
  return t->test->op == OP_conv2d_data || t->test->op == OP_conv3d_data;
}

static bool makes_weight(const Case *t)
{
  return t->test->op == OP_conv2d_weight || t->test->op == OP_conv3d_weight;
}

/* Reads an attribute such as stride0 for each axis; `absent` for axes that the op lacks. */
static void axis_values(const Case *t, uint32_t axes, const char *name, int64_t absent,
                        int64_t *out)
{
  for (uint32_t i = 0; i < AXES; i++) {
    char text[16];
    snprintf(text, sizeof text, "%s%d", name, (int)(i + axes) - AXES);
    out[i] = i + axes < AXES ? absent : case_int(t, text);
  }
}

/* Assigns the case's tensors to y = conv2d(x, w). The result of conv2d_data is x and that of
 * conv2d_weight is w; their input dy takes the place of y. */
static Conv conv_of(const Case *t, const Tensor *result)
{
  bool data = makes_images(t), weight = makes_weight(t);
  const Tensor *x = data ? result : weight ? &t->in[1] : &t->in[0];
  const Tensor *w = weight ? result : &t->in[1];
  const Tensor *y = data || weight ? &t->in[0] : result;
  Conv v = {.t = t,
            .x = images_of(x),
            .y = images_of(y),
            .w = images_of(w),
            .groups = case_int(t, "groups"),
            .xs = x->at,
            .ws = w->at,
            .ys = y->at};
  axis_values(t, v.x.axes, "stride", 1, v.stride);
  axis_values(t, v.x.axes, "pad", 0, v.pad);
  axis_values(t, v.x.axes, "dil", 1, v.dil);
  return v;
}

/* Returns the number of output pixels along an axis, as in PyTorch. */
static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dil)
{
  return (size + 2 * pad - dil * (kernel - 1) - 1) / stride + 1;
}

static void named_sizes(const Case *t, const char *const *names, Images *d)
{
  for (uint32_t i = AXES - d->axes; i < AXES; i++) d->size[i] = case_int(t, names[i]);
}

static void shape_conv_of(const Case *t, Tensor *y)
{
  static const char *const sizes[] = {"d", "h", "w"}, *const kernels[] = {"kd", "kh", "kw"};
  Images d = images_of(&t->in[0]), w = images_of(&t->in[1]);
  if (makes_images(t)) {
    d.c = w.c * case_int(t, "groups");
    named_sizes(t, sizes, &d);
  } else if (makes_weight(t)) {
    d.n = d.c;
    d.c = w.c / case_int(t, "groups");
    named_sizes(t, kernels, &d);
  } else {
    int64_t stride[AXES], pad[AXES], dil[AXES];
    axis_values(t, d.axes, "stride", 1, stride);
    axis_values(t, d.axes, "pad", 0, pad);
    axis_values(t, d.axes, "dil", 1, dil);
    d.c = w.n;
    for (int i = 0; i < AXES; i++)
      d.size[i] = windows(d.size[i], w.size[i], stride[i], pad[i], dil[i]);
  }
  set_images(y, d);
}

/* Adds one product of the sum y[iy] += x[ix] w[iw], from which all three ops are computed: the
 * result is y, x or w, and the other two are its factors. tf32 rounds each factor to 11 bits. */
static void add_term(const Conv *v, int64_t ix, int64_t iw, int64_t iy)
{
  const Case *t = v->t;
  int64_t to = makes_images(t) ? ix : makes_weight(t) ? iw : iy;
  double p = makes_images(t) ? v->ys[iy] : v->xs[ix];
  double q = makes_weight(t) ? v->ys[iy] : v->ws[iw];
  if (t->tf32) p = number_round_bits(p, 11);
  if (t->tf32) q = number_round_bits(q, 11);
  v->sums[to] += p * q;
  v->scale[to] += fabs(p * q);
}

/* Finds the input pixel under tap `tap` at output pixel `at`. False if it is in the padding. */
static bool seen(const Conv *v, const int64_t *at, const int64_t *tap, int64_t *out)
{
  for (int i = 0; i < AXES; i++) {
    out[i] = at[i] * v->stride[i] - v->pad[i] + tap[i] * v->dil[i];
    if (out[i] < 0 || out[i] >= v->x.size[i]) return false;
  }
  return true;
}

/* Adds all terms of one output pixel of output channel k. */
static void add_window(const Conv *v, int64_t n, int64_t k, const int64_t *at)
{
  int64_t group = v->x.c / v->groups, first = k / (v->y.c / v->groups) * group;
  for (int64_t c = 0; c < group; c++) {
    for (int64_t i = 0; i < pixels(&v->w); i++) {
      int64_t tap[AXES], from[AXES];
      place_of(&v->w, i, tap);
      if (!seen(v, at, tap, from)) continue;
      add_term(v, pixel(&v->x, n, first + c, from), (k * group + c) * pixels(&v->w) + i,
               pixel(&v->y, n, k, at));
    }
  }
}

/* Computes all three ops in one loop over the windows of y. Only the forward op has a bias. */
static void reference_conv(const Case *t, Tensor *y, double *scale)
{
  Conv v = conv_of(t, y);
  bool forward = !makes_images(t) && !makes_weight(t), biased = forward && t->n_in > 2;
  int64_t each = pixels(&v.y);
  v.sums = y->at;
  v.scale = scale;
  clear_sums(y, scale);
  for (int64_t i = 0; i < v.y.n * v.y.c * each; i++) {
    int64_t k = i / each % v.y.c, at[AXES];
    place_of(&v.y, i % each, at);
    add_window(&v, i / each / v.y.c, k, at);
    if (!biased || !t->in[2].present) continue;
    y->at[i] += t->in[2].at[k];
    scale[i] += fabs(t->in[2].at[k]);
  }
}

/* Returns the largest number of terms of one sum. */
static double terms_of_conv(const Case *t)
{
  Conv v = conv_of(t, &t->want);
  if (makes_weight(t)) return (double)(v.y.n * pixels(&v.y));
  int64_t channels = makes_images(t) ? v.y.c : v.x.c;
  return (double)(channels / v.groups * pixels(&v.w));
}

static const OpTest tests[] = {
    {OP_conv2d, "nnn", "=", WHOLE(shape_conv_of, reference_conv),
     SUMMED(2, 0.5, terms_of_conv, "additions in a row, bias"),
     CASES("fhb 2x3x7x9 5x3x3x3 5", "fhb 1x1x5x5 1x1x1x1 -",
           /* groups; one channel for each group; different strides, padding and dilation of the two
            * axes; more channels than pixels */
           "fhb 3x4x9x7 8x2x3x3 8 stride0=2 stride1=2 pad0=1 pad1=1 groups=2",
           "fh 2x5x9x9 5x1x3x5 - pad0=1 pad1=2 groups=5",
           "fb 2x3x11x8 7x3x3x2 7 stride0=3 stride1=1 pad0=2 pad1=0 dil0=2 dil1=3",
           "f 1x33x3x3 17x33x2x2 17 pad0=1 pad1=1", "f 2x3x7x9 5x3x3x3 5 tf32=1",
           /* groups of more products than CONV_WHOLE_DEPTH; groups of 1x1, without columns */
           "f 2x10x5x4 6x5x3x3 6 pad0=1 pad1=1 groups=2", "f 2x68x2x3 4x34x1x1 4 groups=2"),
     GRADIENTS("fhb 2x3x4x5 2x3x3x3 2 pad0=1 pad1=1",
               "fh 1x4x6x5 4x2x2x3 - stride0=2 stride1=1 pad0=1 pad1=0 groups=2",
               "f 1x2x7x5 3x2x3x2 3 dil0=2 dil1=3 stride0=1 stride1=1"),
     CHAINS(/* images and tensors that are not images */
            {"y = max_pool2d(conv2d(a + a, b, c, pad0=1, pad1=1), kernel0=2, kernel1=2, stride0=2, "
             "stride1=2); reshape(y, shape=[2, 12]) * reshape(y - mean(y, dim=12, keepdim=1), "
             "shape=[2, 12])",
             "fhb 2x2x4x4~n 3x2x3x3~n 3~n 2x12~d"},
            /* a number that is no tensor: as weight, and as images */
            {"n = in_type_of(reshape(0.75, shape=[1, 1, 1, 1]), a); conv2d(a, n, none) * conv2d(n, "
             "b, none)",
             "fhb 2x1x3x3~n 3x1x1x1~n 2x3x3x3~d"})},
    {OP_conv2d_data, "dn", "=", WHOLE(shape_conv_of, reference_conv),
     SUMMED(1, 0.5, terms_of_conv, "additions in a row"),
     CASES("fhb 2x5x5x7 5x3x3x3 h=7 w=9",
           "fhb 3x8x5x4 8x2x3x3 stride0=2 stride1=2 pad0=1 pad1=1 groups=2 h=9 w=7",
           "fh 2x7x4x5 7x3x3x2 stride0=3 stride1=1 pad0=2 pad1=0 dil0=2 dil1=3 h=11 w=8",
           "f 2x5x5x7 5x3x3x3 h=7 w=9 tf32=1"),
     GRADIENTS("fhb 1x2x3x3 2x3x2x2 stride0=2 stride1=2 h=6 w=6")},
    {OP_conv2d_weight, "dn", "=", WHOLE(shape_conv_of, reference_conv),
     SUMMED(1, 0.5, terms_of_conv, "additions in a row"),
     CASES("fhb 2x5x5x7 2x3x7x9 kh=3 kw=3",
           "fhb 3x8x5x4 3x4x9x7 stride0=2 stride1=2 pad0=1 pad1=1 groups=2 kh=3 kw=3",
           "fh 2x7x4x5 2x3x11x8 stride0=3 stride1=1 pad0=2 pad1=0 dil0=2 dil1=3 kh=3 kw=2",
           "f 2x5x5x7 2x3x7x9 kh=3 kw=3 tf32=1"),
     GRADIENTS("fhb 1x2x2x3 1x3x4x5 kh=3 kw=3",
               "f 1x4x3x2 1x2x6x4 stride0=2 stride1=2 pad0=1 groups=2 kh=3 kw=2")},
    {OP_conv3d, "nnn", "=", WHOLE(shape_conv_of, reference_conv),
     SUMMED(2, 0.5, terms_of_conv, "additions in a row, bias"),
     CASES("fhb 2x3x4x5x6 5x3x2x3x3 5",
           "fhb 2x4x5x6x7 8x2x3x3x2 8 stride0=2 stride1=1 stride2=3 pad0=1 pad1=2 pad2=0 groups=2",
           "fh 1x5x3x7x5 5x1x2x3x3 - pad0=1 pad1=1 pad2=1 dil1=2 groups=5",
           "f 1x9x2x3x3 17x9x1x1x1 17", "f 2x3x4x5x6 5x3x2x3x3 5 tf32=1"),
     GRADIENTS("fhb 1x2x3x3x4 2x2x2x3x3 2 pad1=1 pad2=1",
               "fh 1x4x3x4x3 4x2x2x2x1 - stride0=2 stride2=2 pad0=1 groups=2")},
    {OP_conv3d_data, "dn", "=", WHOLE(shape_conv_of, reference_conv),
     SUMMED(1, 0.5, terms_of_conv, "additions in a row"),
     CASES("fhb 2x5x3x3x4 5x3x2x3x3 d=4 h=5 w=6",
           "fhb 2x8x3x4x3 8x2x3x3x2 stride0=2 stride2=3 pad0=1 pad1=0 groups=2 d=5 h=6 w=8"),
     GRADIENTS("fhb 1x2x2x2x3 2x2x2x2x2 stride0=2 stride1=2 d=4 h=4 w=4")},
    {OP_conv3d_weight, "dn", "=", WHOLE(shape_conv_of, reference_conv),
     SUMMED(1, 0.5, terms_of_conv, "additions in a row"),
     CASES("fhb 2x5x3x3x4 2x3x4x5x6 kd=2 kh=3 kw=3",
           "fhb 2x8x3x4x3 2x4x5x6x8 stride0=2 stride2=3 pad0=1 groups=2 kd=3 kh=3 kw=2"),
     GRADIENTS("fhb 1x2x2x2x1 1x3x3x3x3 kd=2 kh=2 kw=3",
               "f 1x2x2x2x2 1x2x4x3x4 stride0=2 stride2=2 groups=2 kd=2 kh=2 kw=2")},
};
FAMILY(convolutions)
