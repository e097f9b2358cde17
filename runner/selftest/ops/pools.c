/* Pools and interpolation: plain loops over images [n, c, h, w].
 *
 * A pool is described by pairs of a pixel and a window. Each pair has the weight of the pixel in
 * the window: 1 / size for averages, 1 for the largest pixel of a max pool. */
#include "entry.h"
#include <stdio.h>

typedef struct Stretch { /* one window's pixels along one axis: first, first + step, .. < end */
  int64_t first, end, step, counted;
} Stretch;

/* Returns an attribute that exists for each axis, such as kernel0 and kernel1. */
static int64_t axis_int(const Case *t, const char *name, uint32_t axis)
{
  static const char digits[][2] = {"0", "1"};
  char text[16];
  snprintf(text, sizeof text, "%s%s", name, digits[axis]);
  return (int64_t)case_attr(t, text);
}

static bool is_max(const Case *t)
{
  return t->test->op == OP_max_pool2d || t->test->op == OP_max_pool2d_backward;
}

static bool is_adaptive(const Case *t)
{
  return t->test->op == OP_adaptive_avg_pool2d || t->test->op == OP_adaptive_avg_pool2d_backward;
}

static bool is_interpolation(const Case *t)
{
  return t->test->op == OP_interpolate_nearest || t->test->op == OP_interpolate_nearest_backward;
}

/* Returns the pixels of window `i` of `count` over `size` pixels. */
static Stretch span_of(const Case *t, uint32_t axis, int64_t i, int64_t size, int64_t count)
{
  if (is_adaptive(t)) {
    Stretch s = {.first = (int64_t)floor((double)(i * size) / (double)count), .step = 1};
    s.end = (int64_t)ceil((double)((i + 1) * size) / (double)count);
    s.counted = s.end - s.first;
    return s;
  }
  int64_t kernel = axis_int(t, "kernel", axis), step = is_max(t) ? axis_int(t, "dil", axis) : 1;
  int64_t first = i * axis_int(t, "stride", axis) - axis_int(t, "pad", axis),
          end = first + kernel * step;
  Stretch s = {.first = first, .end = end < size ? end : size, .step = step, .counted = kernel};
  while (s.first < 0) s.first += step;
  bool ceil = !is_max(t) && case_attr(t, "ceil") != 0;
  int64_t padded = size + axis_int(t, "pad", axis);
  if (ceil && first + kernel > padded) s.counted = padded - first;
  if (!is_max(t) && case_attr(t, "count_include_pad") == 0) s.counted = s.end - s.first;
  return s;
}

/* Computes the height and width of the result. */
static void small_and_large(const Case *t, int64_t *h, int64_t *w)
{
  const int64_t *dim = t->in[0].dim;
  *h = dim[2];
  *w = dim[3];
  switch (t->test->op) {
  case OP_adaptive_avg_pool2d:
    *h = case_int(t, "oh");
    *w = case_int(t, "ow");
    break;
  case OP_max_pool2d_backward:
  case OP_avg_pool2d_backward:
  case OP_adaptive_avg_pool2d_backward:
    *h = case_int(t, "h");
    *w = case_int(t, "w");
    break;
  case OP_interpolate_nearest:
    *h *= axis_int(t, "scale", 0);
    *w *= axis_int(t, "scale", 1);
    break;
  case OP_interpolate_nearest_backward:
    *h /= axis_int(t, "scale", 0);
    *w /= axis_int(t, "scale", 1);
    break;
  default:
    for (uint32_t axis = 0; axis < 2; axis++) {
      int64_t kernel = axis_int(t, "kernel", axis), step = is_max(t) ? axis_int(t, "dil", axis) : 1;
      int64_t stride = axis_int(t, "stride", axis), pad = axis_int(t, "pad", axis);
      int64_t all = dim[2 + axis] + 2 * pad - step * (kernel - 1) - 1;
      int64_t count = all / stride + 1;
      if (case_attr(t, "ceil") != 0) { /* rounds up, as PyTorch does */
        count = (all + stride - 1) / stride + 1;
        if ((count - 1) * stride >= dim[2 + axis] + pad) count--;
      }
      *(axis ? w : h) = count;
    }
  }
}

static void shape_pool_of(const Case *t, Tensor *y)
{
  y->rank = 4;
  y->dim[0] = t->in[0].dim[0];
  y->dim[1] = t->in[0].dim[1];
  small_and_large(t, &y->dim[2], &y->dim[3]);
}

typedef struct Pool { /* one channel of one image, and its windows */
  const Case *t;
  int64_t h, w, oh, ow;
  const double *x;      /* max pools: the pixels of the image */
  const double *argmax; /* backward of max pools: the index in each window */
} Pool;

/* Returns the index of a window's largest pixel: the last NaN, or else the first maximum. */
static int64_t greatest(const Pool *p, Stretch a, Stretch b)
{
  int64_t best = -1;
  for (int64_t y = a.first; y < a.end; y += a.step) {
    for (int64_t x = b.first; x < b.end; x += b.step) {
      double v = p->x[y * p->w + x];
      if (best < 0 || v > p->x[best] || isnan(v)) best = y * p->w + x;
    }
  }
  return best;
}

/* Returns element k of a window, in row-major order: a pixel; -1 if it is outside of the image. */
static int64_t element_of(const Pool *p, int64_t window, int64_t k)
{
  int64_t at = 0, kernel = axis_int(p->t, "kernel", 1), in_window[2] = {k / kernel, k % kernel};
  if (in_window[0] >= axis_int(p->t, "kernel", 0)) return -1;
  for (uint32_t axis = 0; axis < 2; axis++) {
    int64_t place = axis ? window % p->ow : window / p->ow, size = axis ? p->w : p->h;
    int64_t pixel = place * axis_int(p->t, "stride", axis) - axis_int(p->t, "pad", axis) +
                    in_window[axis] * axis_int(p->t, "dil", axis);
    if (pixel < 0 || pixel >= size) return -1;
    at = at * size + pixel;
  }
  return at;
}

/* Returns the index that a pixel has in a window: the inverse of element_of. */
static int64_t element_at(const Pool *p, int64_t window, int64_t pixel)
{
  int64_t k = 0;
  while (element_of(p, window, k) != pixel) k++;
  return k;
}

/* Calls `pair` for each pixel and each window that contains it, with the weight. */
static void walk(const Pool *p, void (*pair)(void *, int64_t, int64_t, double), void *data)
{
  double divisor = is_max(p->t) || is_adaptive(p->t) ? 0 : case_attr(p->t, "divisor");
  for (int64_t i = 0; i < p->oh * p->ow; i++) {
    if (is_max(p->t)) {
      int64_t pixel = element_of(p, i, (int64_t)p->argmax[i]);
      if (pixel >= 0) pair(data, pixel, i, 1);
      continue;
    }
    Stretch a = span_of(p->t, 0, i / p->ow, p->h, p->oh),
            b = span_of(p->t, 1, i % p->ow, p->w, p->ow);
    double weight = 1 / (divisor != 0 ? divisor : (double)(a.counted * b.counted));
    for (int64_t y = a.first; y < a.end; y++)
      for (int64_t x = b.first; x < b.end; x++) pair(data, y * p->w + x, i, weight);
  }
}

typedef struct Flow { /* forward adds pixels to windows; with `back`, windows are added to pixels */
  const double *from;
  double *to, *scale;
  bool back;
} Flow;

static void add_pair(void *data, int64_t pixel, int64_t window, double weight)
{
  Flow *f = data;
  int64_t from = f->back ? window : pixel, to = f->back ? pixel : window;
  f->to[to] += f->from[from] * weight;
  f->scale[to] += fabs(f->from[from] * weight);
}

/* Interpolates. Each result is the pixel at its coordinates divided by the scale, rounded down. */
static void interpolate(const Case *t, const Pool *p, Flow *f)
{
  int64_t s = axis_int(t, "scale", 0), u = axis_int(t, "scale", 1);
  for (int64_t i = 0; i < p->oh * p->ow; i++)
    add_pair(f, i / p->ow / s * p->w + i % p->ow / u, i, 1);
}

/* Computes all pools, forward and backward, in one loop over pairs of a pixel and a window. Forward
 * adds the pixel to the window, backward the window to the pixel. */
static void reference_pool(const Case *t, Tensor *y, double *scale)
{
  OpKind op = t->test->op;
  bool back = op == OP_max_pool2d_backward || op == OP_avg_pool2d_backward ||
              op == OP_adaptive_avg_pool2d_backward || op == OP_interpolate_nearest_backward;
  const Tensor *in = &t->in[0], *image = back ? y : in, *of = back ? in : y;
  Pool p = {t, image->dim[2], image->dim[3], of->dim[2], of->dim[3], NULL, NULL};
  clear_sums(y, scale);
  for (int64_t c = 0; c < y->dim[0] * y->dim[1]; c++) {
    Flow f = {in->at + c * in->dim[2] * in->dim[3], y->at + c * y->dim[2] * y->dim[3],
              scale + c * y->dim[2] * y->dim[3], back};
    if (is_max(t)) p.argmax = t->in[1].at + c * p.oh * p.ow;
    if (is_interpolation(t))
      interpolate(t, &p, &f);
    else
      walk(&p, add_pair, &f);
  }
}

/* Computes max_pool2d: the largest pixels, or with argmax their indices in the windows. */
static void reference_max_pool(const Case *t, Tensor *y, double *scale)
{
  const Tensor *in = &t->in[0];
  Pool p = {.t = t, .h = in->dim[2], .w = in->dim[3], .oh = y->dim[2], .ow = y->dim[3]};
  for (int64_t i = 0; i < y->n; i++) {
    int64_t windows = p.oh * p.ow, at = i % windows;
    p.x = in->at + i / windows * p.h * p.w;
    int64_t pixel =
        greatest(&p, span_of(t, 0, at / p.ow, p.h, p.oh), span_of(t, 1, at % p.ow, p.w, p.ow));
    y->at[i] = case_attr(t, "argmax") != 0 ? (double)element_at(&p, at, pixel) : p.x[pixel];
    scale[i] = 0;
  }
}

/* Returns the most terms of a sum: the windows that contain a pixel, or the pixels of a window. */
static double terms_of_pool(const Case *t)
{
  const Tensor *x = &t->in[0], *y = &t->want;
  double image = (double)(x->dim[2] * x->dim[3]), of = (double)(y->dim[2] * y->dim[3]);
  return image < of ? image : of;
}

#define POOL     WHOLE(shape_pool_of, reference_pool)
#define MAX_POOL WHOLE(shape_pool_of, reference_max_pool)

static const OpTest tests[] = {
    {OP_max_pool2d, "w", "=", MAX_POOL, EXACT,
     CASES("fhb 3x5x8x6 kernel0=2 kernel1=2 stride0=2 stride1=2",
           "fhb 2x65x7x9 kernel0=3 kernel1=3 stride0=2 stride1=2 pad0=1 pad1=1",
           "fh 2x3x9x11 kernel0=3 kernel1=2 stride0=1 stride1=3 dil0=2 dil1=4",
           /* counts of channels that allow vectors */
           "fhb 2x16x7x9 kernel0=3 kernel1=3 stride0=2 stride1=2 pad0=1 pad1=1",
           "fh 2x12x6x5 kernel0=2 kernel1=3 stride0=2 stride1=1",
           /* windows with a NaN, which is the result, and with only -inf */
           "fhb 1x1x2x4{nan,1,-inf,-inf,2,inf,-inf,-inf} kernel0=2 kernel1=2 stride0=2 stride1=2",
           /* argmax: the first of equal pixels, or the last NaN */
           "fhb 2x65x7x9 kernel0=3 kernel1=3 stride0=2 stride1=2 pad0=1 pad1=1 argmax=1 result=u",
           "fh 2x16x9x11 kernel0=3 kernel1=2 stride0=1 stride1=3 dil0=2 dil1=4 argmax=1 result=u",
           "fhb 1x1x2x6{1,1,nan,2,nan,3,1,1,nan,3,nan,nan} kernel0=2 kernel1=2 stride0=2 stride1=2 "
           "argmax=1 result=u",
           "f 1x1x2x4{-inf,-inf,0,0,-inf,-inf,0,0} kernel0=2 kernel1=2 stride0=2 stride1=2 "
           "argmax=1 result=u",
           "fhb 2x8x8x7 kernel0=3 kernel1=2 stride0=2 stride1=3 pad0=1 pad1=1 ceil=1",
           "f 1x2x17x34 kernel0=17 kernel1=17 stride0=17 stride1=17 argmax=1 result=i"),
     GRADIENTS("fhb 1x2x4x6~n kernel0=2 kernel1=2 stride0=2 stride1=2",
               "f 1x2x5x5~n kernel0=3 kernel1=3 stride0=2 stride1=1 pad0=1 pad1=1",
               "f 1x2x7x6~n kernel0=3 kernel1=2 stride0=1 stride1=2 pad0=1 dil0=2 dil1=3",
               "f 1x4x4x6~n kernel0=3 kernel1=3 stride0=2 stride1=2 ceil=1")},
    {OP_max_pool2d_backward, "dc", "=", POOL, SUMMED(1, 0.5, terms_of_pool, "additions in a row"),
     CASES(
         "fhb 3x5x4x3 u:3x5x4x3~c kernel0=2 kernel1=2 stride0=2 stride1=2 h=8 w=6",
         "fhb 2x65x4x5 u:2x65x4x5~q kernel0=3 kernel1=3 stride0=2 stride1=2 pad0=1 pad1=1 h=7 w=9",
         "fh 2x3x5x3 u:2x3x5x3~q kernel0=3 kernel1=2 stride0=1 stride1=3 dil0=2 dil1=4 h=9 w=11",
         /* all four elements of a window, and pixels in the padding */
         "fhb 1x1x2x2 u:1x1x2x2{3,2,1,0} kernel0=2 kernel1=2 stride0=2 stride1=2 h=4 w=5",
         "f 1x1x2x2 u:1x1x2x2{3,2,1,0} kernel0=2 kernel1=2 stride0=1 stride1=1 pad0=1 pad1=1 h=1 "
         "w=1",
         /* vectors of channels; tiles of 2 x 2, 2 x 1 and 1 windows: 3 x 3 are too many */
         "fhb 2x16x4x5 u:2x16x4x5~q kernel0=3 kernel1=3 stride0=2 stride1=2 pad0=1 pad1=1 h=7 w=9",
         "fh 2x12x3x3 u:2x12x3x3~c kernel0=2 kernel1=3 stride0=2 stride1=1 h=6 w=5",
         "fh 1x24x4x3 u:1x24x4x3~q kernel0=3 kernel1=3 stride0=3 stride1=3 pad0=1 pad1=1 h=11 w=8",
         "fh 1x8x2x1 u:1x8x2x1~q kernel0=5 kernel1=5 stride0=5 stride1=5 h=11 w=9",
         /* windows with too many elements for an index of one byte */
         "f 1x2x1x1 i:1x2x1x1{288,17} kernel0=17 kernel1=17 stride0=17 stride1=17 h=17 w=17")},
    {OP_avg_pool2d, "n", "=", POOL, SUMMED(1, 0.5, terms_of_pool, "additions in a row"),
     CASES("fhb 3x5x8x6 kernel0=2 kernel1=2 stride0=2 stride1=2",
           "fhb 2x65x7x9 kernel0=3 kernel1=3 stride0=2 stride1=2 pad0=1 pad1=1 count_include_pad=0",
           "fh 2x3x9x11 kernel0=3 kernel1=5 stride0=1 stride1=3 pad0=1 pad1=2",
           "f 2x3x4x4 kernel0=2 kernel1=3 stride0=2 stride1=1 divisor=5",
           "fhb 2x3x8x7 kernel0=3 kernel1=4 stride0=2 stride1=3 pad0=1 pad1=2 ceil=1",
           "f 2x3x8x6 kernel0=3 kernel1=2 stride0=3 stride1=4 ceil=1 count_include_pad=0"),
     GRADIENTS("fhb 1x2x4x5 kernel0=2 kernel1=3 stride0=2 stride1=1 pad1=1",
               "f 1x2x5x4 kernel0=2 kernel1=3 stride0=2 stride1=2 pad1=1 ceil=1")},
    {OP_avg_pool2d_backward, "d", "=", POOL, SUMMED(1, 0.5, terms_of_pool, "additions in a row"),
     CASES("fhb 3x5x4x3 kernel0=2 kernel1=2 stride0=2 stride1=2 h=8 w=6",
           "fhb 2x65x4x5 kernel0=3 kernel1=3 stride0=2 stride1=2 pad0=1 pad1=1 count_include_pad=0 "
           "h=7 w=9",
           "fh 2x3x9x4 kernel0=3 kernel1=5 stride0=1 stride1=3 pad0=1 pad1=2 h=9 w=11",
           "f 2x3x2x2 kernel0=2 kernel1=3 stride0=2 stride1=1 divisor=5 h=4 w=4",
           "fhb 2x3x5x3 kernel0=3 kernel1=4 stride0=2 stride1=3 pad0=1 pad1=2 ceil=1 h=8 w=7"),
     GRADIENTS("fhb 1x2x3x2 kernel0=3 kernel1=3 stride0=2 stride1=2 pad0=1 pad1=1 "
               "count_include_pad=0 h=5 w=4",
               "f 1x1x2x2 kernel0=2 kernel1=3 stride0=2 stride1=1 divisor=5 h=4 w=4")},
    {OP_adaptive_avg_pool2d, "n", "=", POOL, SUMMED(1, 0.5, terms_of_pool, "additions in a row"),
     CASES("fhb 3x5x7x9 oh=3 ow=2", "fhb 2x65x4x3 oh=1 ow=1", "f 2x3x3x2 oh=5 ow=7"),
     GRADIENTS("fhb 1x2x5x4 oh=3 ow=2")},
    {OP_adaptive_avg_pool2d_backward, "d", "=", POOL,
     SUMMED(1, 0.5, terms_of_pool, "additions in a row"),
     CASES("fhb 3x5x3x2 h=7 w=9", "f 2x3x5x7 h=3 w=2", "fh 2x65x1x1 h=4 w=3"),
     GRADIENTS("fhb 1x2x3x2 h=5 w=4")},
    {OP_interpolate_nearest, "w", "=", POOL, EXACT,
     CASES("fhb 2x3x5x7 scale0=2 scale1=2", "f 1x65x3x2 scale0=3 scale1=1"),
     GRADIENTS("fhb 1x2x2x3 scale0=2 scale1=3")},
    {OP_interpolate_nearest_backward, "d", "=", POOL,
     SUMMED(1, 0.5, terms_of_pool, "additions in a row"),
     CASES("fhb 2x3x10x14 scale0=2 scale1=2", "f 1x65x9x2 scale0=3 scale1=1"),
     GRADIENTS("fhb 1x2x4x3 scale0=2 scale1=3")},
};
FAMILY(pools)
