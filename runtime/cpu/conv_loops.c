/* Convolutions by loops of our own: Note [reference code] in conv_choice.c. Programs without oneDNN
 * compute all convolutions by them.
 *
 * For one tap, the pixels of a line of y, along its last axis, read pixels of one line of x that
 * are a stride apart. All three kinds visit such pairs of lines in the same order. They differ in
 * what they add: y += x w, x += y w, w += x y. In a depthwise convolution, the innermost loop runs
 * over all channels, which are contiguous. In others, each group of channels is a matrix product
 * (product_loops.h). So packed weights are [tap, c / groups, k], or for a gradient of x
 * [tap, k / groups, c]. */
#include "conv_loops.h"
#include "product_loops.h"
#include <string.h>
#include "common/level.h"
#include "common/machine.h"
#include "runtime/plan/conv_sizes.h"

enum { AXES = AMPC_MAX_SPATIAL, BLOCK = 64 }; /* BLOCK: channels whose sums stay in registers */

typedef struct Lines {
  const ampc_conv *d;
  int64_t c, k;           /* channels of a pixel: of x; of y */
  int64_t c_each, k_each; /* channels of a group */
  int64_t n;              /* pixels */
  int64_t x_step, y_step; /* elements from one pixel to the next */
  float *x, *w, *y;       /* x, y: the first pixels; w: the weights of the tap */
} Lines;

/* ---- the order of weights -------------------------------------------------------------------- */

/* Returns the packed index of tap t of channel c of filter k; c counts within the group. */
static int64_t packed_at(const ampc_conv *d, int64_t filters, int64_t k, int64_t c, int64_t t)
{
  int64_t c_each = d->c / d->groups, k_each = filters / d->groups;
  if (d->kind == AMPC_CONV_DATA) return (t * k_each + k % k_each) * d->c + k / k_each * c_each + c;
  return (t * c_each + c) * filters + k;
}

void conv_loops_pack(const ampc_conv *d, int64_t first, int64_t filters, const float *plain,
                     float *packed)
{
  int64_t taps = conv_taps(d), c_each = d->c / d->groups;
  for (int64_t k = 0; k < filters; k++)
    for (int64_t t = 0; t < taps; t++)
      for (int64_t c = 0; c < c_each; c++)
        packed[packed_at(d, d->k, first + k, c, t)] = plain[(k * taps + t) * c_each + c];
}

void conv_loops_unpack(const ampc_conv *d, int64_t filters, const float *packed, float *plain)
{
  int64_t taps = conv_taps(d), c_each = d->c / d->groups;
  for (int64_t k = 0; k < filters; k++)
    for (int64_t t = 0; t < taps; t++)
      for (int64_t c = 0; c < c_each; c++)
        plain[(k * taps + t) * c_each + c] = packed[packed_at(d, filters, k, c, t)];
}

/* ---- one pair of lines ----------------------------------------------------------------------- */

static inline void add_products(const float *restrict a, const float *restrict b,
                                float *restrict sum, int64_t n)
{
  for (int64_t i = 0; i < n; i++) sum[i] += a[i] * b[i];
}

static inline bool is_depthwise(const Lines *l)
{
  return l->c_each == 1 && l->k_each == 1;
}

/* Adds a tap by one matrix product for each group. */
static void group_lines(const Lines *l)
{
  const LoopProduct all[] = {[AMPC_CONV_FORWARD] = {l->n, l->k_each, l->c_each, l->x, l->w,
                                                    l->x_step, 1, l->k, 1, l->y, l->y_step, true},
                             [AMPC_CONV_DATA] = {l->n, l->c_each, l->k_each, l->y, l->w, l->y_step,
                                                 1, l->c, 1, l->x, l->x_step, true},
                             [AMPC_CONV_WEIGHT] = {l->c_each, l->k_each, l->n, l->x, l->y, 1,
                                                   l->x_step, l->y_step, 1, l->w, l->k, true}};
  for (int64_t g = 0; g < l->d->groups; g++) {
    LoopProduct p = all[l->d->kind];
    bool data = l->d->kind == AMPC_CONV_DATA;
    p.a += g * (data ? l->k_each : l->c_each);
    p.b += g * (data ? l->c_each : l->k_each);
    p.c += g * (data ? l->c_each : l->k_each);
    product_loops_run(&p);
  }
}

static inline __attribute__((always_inline)) void forward_lines(const Lines *l)
{
  for (int64_t i = 0; i < l->n; i++) {
    const float *x = l->x + i * l->x_step;
    float *y = l->y + i * l->y_step;
    add_products(x, l->w, y, l->k);
  }
}

static inline __attribute__((always_inline)) void data_lines(const Lines *l)
{
  for (int64_t i = 0; i < l->n; i++) {
    const float *y = l->y + i * l->y_step;
    float *x = l->x + i * l->x_step;
    add_products(y, l->w, x, l->c);
  }
}

/* Adds a line to the weight gradient of channels [begin, begin + BLOCK), summed in registers. */
static inline __attribute__((always_inline)) void add_block(const Lines *l, int64_t begin)
{
  float sum[BLOCK] = {0};
  for (int64_t i = 0; i < l->n; i++)
    add_products(l->x + i * l->x_step + begin, l->y + i * l->y_step + begin, sum, BLOCK);
  for (int64_t c = 0; c < BLOCK; c++) l->w[begin + c] += sum[c];
}

static inline __attribute__((always_inline)) void weight_lines(const Lines *l)
{
  int64_t whole = l->k / BLOCK * BLOCK;
  for (int64_t begin = 0; begin < whole; begin += BLOCK) add_block(l, begin);
  for (int64_t i = 0; i < l->n; i++) {
    const float *x = l->x + i * l->x_step, *y = l->y + i * l->y_step;
    add_products(x + whole, y + whole, l->w + whole, l->k - whole);
  }
}

/* ---- for the machine's vectors --------------------------------------------------------------- */

typedef void LinesFunction(const Lines *l);
typedef struct LinesFunctions {
  LinesFunction *kind[3]; /* by ampc_conv_kind */
} LinesFunctions;

#define LINES_FUNCTIONS(name, attribute)                                                           \
  attribute static void name##_forward(const Lines *l)                                             \
  {                                                                                                \
    forward_lines(l);                                                                              \
  }                                                                                                \
  attribute static void name##_data(const Lines *l)                                                \
  {                                                                                                \
    data_lines(l);                                                                                 \
  }                                                                                                \
  attribute static void name##_weight(const Lines *l)                                              \
  {                                                                                                \
    weight_lines(l);                                                                               \
  }                                                                                                \
  static const LinesFunctions name = {{name##_forward, name##_data, name##_weight}};

LINES_FUNCTIONS(any_machine, )
LINES_FUNCTIONS(for_v3, FOR_V3)
LINES_FUNCTIONS(for_v4, FOR_V4)

static const LinesFunctions *functions(void)
{
  int lanes = ampc_level()->lanes;
  return lanes == 16 ? &for_v4 : lanes == 8 ? &for_v3 : &any_machine;
}

/* ---- all pairs of lines ---------------------------------------------------------------------- */

/* One axis. If a convolution has fewer axes, the first ones have one pixel and one tap. */
typedef struct Axis {
  int64_t in, out, kernel, stride, pad, dilation;
} Axis;

static void set_axes(const ampc_conv *d, Axis *axis)
{
  for (int i = 0; i < AXES; i++) axis[i] = (Axis){1, 1, 1, 1, 0, 1};
  for (uint32_t i = 0; i < d->spatial; i++)
    axis[AXES - d->spatial + i] =
        (Axis){d->in[i], d->out[i], d->kernel[i], d->stride[i], d->pad[i], d->dilation[i]};
}

/* Finds the pixels [*out_begin, *out_end) of y along this axis for which the tap reads a pixel of
 * x, not padding. */
static void seeing(const Axis *a, int64_t tap, int64_t *out_begin, int64_t *out_end)
{
  int64_t shift = tap * a->dilation - a->pad; /* position that pixel 0 reads */
  int64_t begin = shift < 0 ? (-shift + a->stride - 1) / a->stride : 0;
  int64_t end = shift < a->in ? (a->in - 1 - shift) / a->stride + 1 : 0;
  *out_begin = begin;
  *out_end = end < a->out ? end : a->out;
}

typedef struct Walk {
  Axis axis[AXES];
  LinesFunction *add;
  Lines lines;
  float *x, *w, *y;
} Walk;

/* Adds all taps of the last axis for one pair of lines. `y_line`, `x_line`: their numbers among the
 * lines of all images. `first_tap`: the first of these taps. */
static void add_lines(const Walk *walk, int64_t y_line, int64_t x_line, int64_t first_tap)
{
  Lines l = walk->lines;
  const Axis *last = &walk->axis[AXES - 1];
  int64_t weights = l.k * l.c_each;
  for (int64_t t = 0; t < last->kernel; t++) {
    int64_t begin, end;
    seeing(last, t, &begin, &end);
    int64_t seen = begin * last->stride + t * last->dilation - last->pad;
    if (begin >= end) continue;
    l.n = end - begin;
    l.w = walk->w + (first_tap + t) * weights;
    l.x = walk->x + (x_line * last->in + seen) * l.c;
    l.y = walk->y + (y_line * last->out + begin) * l.k;
    walk->add(&l);
  }
}

/* Visits one line of y, at (i, j) of the first two axes of an image. */
static void walk_line(const Walk *walk, int64_t image, int64_t i, int64_t j)
{
  const Axis *a = walk->axis, *b = a + 1, *last = a + 2;
  int64_t y_line = (image * a->out + i) * b->out + j;
  for (int64_t s = 0; s < a->kernel; s++) {
    int64_t at = i * a->stride - a->pad + s * a->dilation;
    for (int64_t t = 0; t < b->kernel && at >= 0 && at < a->in; t++) {
      int64_t seen = j * b->stride - b->pad + t * b->dilation;
      if (seen < 0 || seen >= b->in) continue;
      add_lines(walk, y_line, (image * a->in + at) * b->in + seen,
                (s * b->kernel + t) * last->kernel);
    }
  }
}

/* Initializes the result with the bias or with zeros. */
static void clear(const Walk *walk, int64_t images, const float *bias)
{
  const ampc_conv *d = walk->lines.d;
  int64_t k = walk->lines.k, pixels = images * conv_out_pixels(d);
  if (d->kind == AMPC_CONV_DATA)
    memset(walk->x, 0, (size_t)(images * conv_in_elements(d)) * sizeof(float));
  else if (d->kind == AMPC_CONV_WEIGHT)
    memset(walk->w, 0, (size_t)(conv_taps(d) * k * walk->lines.c_each) * sizeof(float));
  else if (!bias)
    memset(walk->y, 0, (size_t)(pixels * k) * sizeof(float));
  else
    for (int64_t i = 0; i < pixels; i++) memcpy(walk->y + i * k, bias, (size_t)k * sizeof(float));
}

void conv_loops_run(const ampc_conv *d, int64_t images, int64_t filters, const ConvOperands *at)
{
  Walk walk = {.x = at->x, .w = at->w, .y = at->y};
  set_axes(d, walk.axis);
  walk.lines = (Lines){.d = d,
                       .c = d->c,
                       .k = filters,
                       .c_each = d->c / d->groups,
                       .k_each = filters / d->groups,
                       .x_step = walk.axis[AXES - 1].stride * d->c,
                       .y_step = filters};
  walk.add = is_depthwise(&walk.lines) ? functions()->kind[d->kind] : group_lines;
  clear(&walk, images, at->bias);
  for (int64_t n = 0; n < images; n++)
    for (int64_t i = 0; i < walk.axis[0].out; i++)
      for (int64_t j = 0; j < walk.axis[1].out; j++) walk_line(&walk, n, i, j);
}
