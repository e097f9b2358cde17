/* References of pools and interpolation: plain loops in double over images [n, c, h, w]. */
#include "selftest.h"
#include <math.h>

typedef struct Stretch { /* pixels of one window along one axis: first, first + step, .. below end
                          */
  int64_t first, end, step, counted;
} Stretch;

static int64_t attr(const Case *t, const char *name, uint32_t axis)
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

/* Window `i` of `count` over `size` pixels. */
static Stretch span_of(const Case *t, uint32_t axis, int64_t i, int64_t size, int64_t count)
{
  if (is_adaptive(t)) {
    Stretch s = {.first = (int64_t)floor((double)(i * size) / (double)count), .step = 1};
    s.end = (int64_t)ceil((double)((i + 1) * size) / (double)count);
    s.counted = s.end - s.first;
    return s;
  }
  int64_t kernel = attr(t, "kernel", axis), step = is_max(t) ? attr(t, "dil", axis) : 1;
  int64_t first = i * attr(t, "stride", axis) - attr(t, "pad", axis), end = first + kernel * step;
  Stretch s = {.first = first, .end = end < size ? end : size, .step = step, .counted = kernel};
  while (s.first < 0) s.first += step;
  if (!is_max(t) && case_attr(t, "count_include_pad") == 0) s.counted = s.end - s.first;
  return s;
}

static void small_and_large(const Case *t, int64_t *h, int64_t *w)
{
  const int64_t *dim = t->in[0].dim;
  *h = dim[2];
  *w = dim[3];
  switch (t->test->op) {
  case OP_adaptive_avg_pool2d:
    *h = (int64_t)case_attr(t, "oh");
    *w = (int64_t)case_attr(t, "ow");
    break;
  case OP_max_pool2d_backward:
    *h = t->in[1].dim[2];
    *w = t->in[1].dim[3];
    break;
  case OP_avg_pool2d_backward:
  case OP_adaptive_avg_pool2d_backward:
    *h = (int64_t)case_attr(t, "h");
    *w = (int64_t)case_attr(t, "w");
    break;
  case OP_interpolate_nearest:
    *h *= attr(t, "scale", 0);
    *w *= attr(t, "scale", 1);
    break;
  case OP_interpolate_nearest_backward:
    *h /= attr(t, "scale", 0);
    *w /= attr(t, "scale", 1);
    break;
  default:
    for (uint32_t axis = 0; axis < 2; axis++) {
      int64_t kernel = attr(t, "kernel", axis), step = is_max(t) ? attr(t, "dil", axis) : 1;
      int64_t all = dim[2 + axis] + 2 * attr(t, "pad", axis) - step * (kernel - 1) - 1;
      *(axis ? w : h) = all / attr(t, "stride", axis) + 1;
    }
  }
}

void shape_pool_of(const Case *t, Tensor *y)
{
  y->rank = 4;
  y->dim[0] = t->in[0].dim[0];
  y->dim[1] = t->in[0].dim[1];
  small_and_large(t, &y->dim[2], &y->dim[3]);
}

typedef struct Pool { /* one channel of one image, and its windows */
  const Case *t;
  int64_t h, w, oh, ow;
  const double *x; /* max pools: the image */
} Pool;

/* Index of the greatest pixel of a window; the last NaN wins, else the first of equal ones. */
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

/* Calls for each pair of a pixel and a window that lies over it, with its weight. */
static void walk(const Pool *p, void (*pair)(void *, int64_t, int64_t, double), void *data)
{
  double divisor = is_max(p->t) || is_adaptive(p->t) ? 0 : case_attr(p->t, "divisor");
  for (int64_t i = 0; i < p->oh * p->ow; i++) {
    Stretch a = span_of(p->t, 0, i / p->ow, p->h, p->oh),
            b = span_of(p->t, 1, i % p->ow, p->w, p->ow);
    if (is_max(p->t)) {
      pair(data, greatest(p, a, b), i, 1);
      continue;
    }
    double weight = 1 / (divisor != 0 ? divisor : (double)(a.counted * b.counted));
    for (int64_t y = a.first; y < a.end; y++)
      for (int64_t x = b.first; x < b.end; x++) pair(data, y * p->w + x, i, weight);
  }
}

typedef struct Flow { /* from the images to the windows, or back */
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

static void interpolate(const Case *t, const Pool *p, Flow *f)
{
  int64_t s = attr(t, "scale", 0), u = attr(t, "scale", 1);
  for (int64_t i = 0; i < p->oh * p->ow; i++)
    add_pair(f, i / p->ow / s * p->w + i % p->ow / u, i, 1);
}

void reference_pool(const Case *t, Tensor *y, double *scale)
{
  OpKind op = t->test->op;
  bool back = op == OP_max_pool2d_backward || op == OP_avg_pool2d_backward ||
              op == OP_adaptive_avg_pool2d_backward || op == OP_interpolate_nearest_backward;
  const Tensor *in = &t->in[0], *image = back ? y : in, *of = back ? in : y;
  Pool p = {t, image->dim[2], image->dim[3], of->dim[2], of->dim[3], NULL};
  for (int64_t i = 0; i < y->n; i++) y->at[i] = scale[i] = 0;
  for (int64_t c = 0; c < y->dim[0] * y->dim[1]; c++) {
    Flow f = {in->at + c * in->dim[2] * in->dim[3], y->at + c * y->dim[2] * y->dim[3],
              scale + c * y->dim[2] * y->dim[3], back};
    if (is_max(t)) p.x = t->in[back ? 1 : 0].at + c * p.h * p.w;
    if (is_interpolation(t))
      interpolate(t, &p, &f);
    else
      walk(&p, add_pair, &f);
  }
}
