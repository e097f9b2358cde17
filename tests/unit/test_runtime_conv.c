/* Convolutions on the CPU: all three kinds in every type, against a plain loop in double. */
#include <math.h>
#include "check.h"
#include "runner/selftest/number.h"
#include "runtime/base/convert.h"
#include "runtime/cpu/conv_loops.h"
#include "runtime/cpu/cpu.h"
#include "runtime/plan/conv_sizes.h"

typedef struct Array {
  char *bytes;
  int64_t elements;
} Array;

typedef struct Operands {
  Array x, w, y, bias;
} Operands;

static Pool *one, *two;
static GemmCache *products_one, *products_two, *products_real64;
static ConvCache *cache_one, *cache_two, *cache_real64;
static uint32_t random_state = 1;

static double random_number(void)
{
  random_state = random_state * 1664525u + 1013904223u;
  return (double)(random_state >> 8) * 0x1p-23 - 1;
}

static Array array(ampc_dtype t, bool real64, int64_t elements)
{
  Array a = {calloc((size_t)elements, sizeof(double)), elements};
  MUST(a.bytes);
  for (int64_t i = 0; i < elements; i++) number_store(t, real64, a.bytes, i, random_number());
  return a;
}

/* ---- the reference ---- */

/* Returns the elements as the convolution reads them, in double. */
static double *values(const ampc_conv *d, ampc_dtype t, bool real64, const Array *a)
{
  double *v = malloc((size_t)a->elements * sizeof *v);
  MUST(v);
  for (int64_t i = 0; i < a->elements; i++) {
    v[i] = number_load(t, real64, a->bytes, i);
    float f = (float)v[i];
    if (d->tf32 && t == AMPC_F32 && !real64) convert_tf32(&f, &f, 1);
    if (!real64) v[i] = (double)f;
  }
  return v;
}

typedef struct Sums { /* the result, and the sum of the magnitudes of its terms */
  double *x, *w, *y, *sum, *size;
  int64_t terms;
} Sums;

/* Adds the products of `n` channels; x, w and y are the indices of the first one. Each kind has a
 * plain loop of its own, because the test spends most of its time here. */
static void add_channels(const ampc_conv *d, Sums *s, int64_t x, int64_t w, int64_t y, int64_t n)
{
  if (d->kind == AMPC_CONV_FORWARD) {
    double sum = 0, size = 0;
    for (int64_t c = 0; c < n; c++) {
      double product = s->x[x + c] * s->w[w + c];
      sum += product, size += fabs(product);
    }
    s->sum[y] += sum, s->size[y] += size;
    return;
  }
  double dy = s->y[y];
  for (int64_t c = 0; c < n; c++) {
    bool data = d->kind == AMPC_CONV_DATA;
    double product = dy * (data ? s->w[w + c] : s->x[x + c]);
    int64_t to = data ? x + c : w + c;
    s->sum[to] += product, s->size[to] += fabs(product);
  }
}

/* Advances to the next index of a box of these sizes, in row-major order. False after the last. */
static bool advance(uint32_t n, const int64_t *size, int64_t *index)
{
  for (uint32_t i = n; i-- > 0; index[i] = 0)
    if (++index[i] < size[i]) return true;
  return false;
}

/* Sets *out to the pixel of x at o * stride - pad + t * dilation. False if that is outside. */
static bool find_pixel(const ampc_conv *d, const int64_t *o, const int64_t *t, int64_t *out)
{
  *out = 0;
  for (uint32_t i = 0; i < d->spatial; i++) {
    int64_t at = o[i] * d->stride[i] - d->pad[i] + t[i] * d->dilation[i];
    if (at < 0 || at >= d->in[i]) return false;
    *out = *out * d->in[i] + at;
  }
  return true;
}

/* Adds all products of filter k at pixel `o`, which is pixel number `pixel` of image n of y. */
static void add_pixel(const ampc_conv *d, Sums *s, int64_t n, const int64_t *o, int64_t pixel,
                      int64_t k)
{
  int64_t per_group = d->c / d->groups, first = k / (d->k / d->groups) * per_group;
  int64_t t[AMPC_MAX_SPATIAL] = {0}, tap = 0, y = (n * conv_out_pixels(d) + pixel) * d->k + k;
  do {
    int64_t at;
    if (find_pixel(d, o, t, &at))
      add_channels(d, s, (n * conv_in_pixels(d) + at) * d->c + first,
                   (k * conv_taps(d) + tap) * per_group, y, per_group);
    tap++;
  } while (advance(d->spatial, d->kernel, t));
}

static void add_image(const ampc_conv *d, Sums *s, int64_t n)
{
  int64_t o[AMPC_MAX_SPATIAL] = {0}, pixel = 0;
  do {
    for (int64_t k = 0; k < d->k; k++) add_pixel(d, s, n, o, pixel, k);
    pixel++;
  } while (advance(d->spatial, d->out, o));
}

static Sums reference(const ampc_conv *d, bool real64, const Operands *o, const Array *result)
{
  Sums s = {.x = values(d, d->x_type, real64, &o->x),
            .w = values(d, d->w_type, real64, &o->w),
            .y = values(d, d->y_type, real64, &o->y),
            .sum = calloc((size_t)result->elements, sizeof(double)),
            .size = calloc((size_t)result->elements, sizeof(double))};
  MUST(s.sum && s.size);
  for (int64_t n = 0; n < d->n; n++) add_image(d, &s, n);
  s.terms = d->kind == AMPC_CONV_FORWARD ? d->c / d->groups * conv_taps(d)
            : d->kind == AMPC_CONV_DATA  ? d->k / d->groups * conv_taps(d)
                                         : d->n * conv_out_pixels(d);
  return s;
}

/* ---- one convolution ---- */

static double unit(ampc_dtype t, bool real64)
{
  return t == AMPC_F16 ? 0x1p-11 : t == AMPC_BF16 ? 0x1p-8 : real64 ? 0x1p-53 : 0x1p-24;
}

static const char *axes_text(const ampc_conv *d, const int64_t *v, char *room, size_t size)
{
  size_t at = 0;
  for (uint32_t i = 0; i < d->spatial; i++)
    at += (size_t)snprintf(room + at, size - at, "%s%d", i ? "x" : "", (int)v[i]);
  return room;
}
#define AXES(d, field) axes_text(d, (d)->field, (char[64]){0}, 64)

static void compare(const ampc_conv *d, bool real64, const Operands *o, const Array *before,
                    const Array *result, ampc_dtype type)
{
  Sums s = reference(d, real64, o, result);
  double worst = 0;
  for (int64_t i = 0; i < result->elements; i++) {
    double want = s.sum[i];
    if (d->has_bias) want += number_load(d->bias_type, real64, o->bias.bytes, i % d->k);
    if (d->accumulate) want += number_load(AMPC_F32, real64, before->bytes, i);
    double bound = (s.size[i] + 2) * sqrt((double)s.terms + 4) * unit(AMPC_F32, real64) +
                   fabs(want) * unit(type, real64);
    if (type == AMPC_F16) bound += 0x1p-25; /* subnormal */
    double off = fabs(number_load(type, real64, result->bytes, i) - want) / bound;
    worst = number_worse(worst, off);
  }
  CHECK_MSG(
      worst <= 1,
      "kind %d %s %s %s n %d c %d k %d groups %d in %s kernel %s stride %s pad %s dilation %s "
      "add %d bias %d tf32 %d real64 %d: %g of the bound",
      d->kind, ampc_dtype_name(d->x_type), ampc_dtype_name(d->w_type), ampc_dtype_name(d->y_type),
      (int)d->n, (int)d->c, (int)d->k, (int)d->groups, AXES(d, in), AXES(d, kernel),
      AXES(d, stride), AXES(d, pad), AXES(d, dilation), d->accumulate, d->has_bias, d->tf32, real64,
      worst);
  free(s.x);
  free(s.w);
  free(s.y);
  free(s.sum);
  free(s.size);
}

static Array copy_of(const Array *a)
{
  Array b = {malloc((size_t)a->elements * sizeof(double)), a->elements};
  MUST(b.bytes);
  memcpy(b.bytes, a->bytes, (size_t)a->elements * sizeof(double));
  return b;
}

static void call(ConvCache *cache, const ampc_conv *d, const Operands *o)
{
  size_t bytes = (size_t)d->workspace;
  char *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
  MUST(workspace);
  memset(workspace, 0xff, bytes + 64); /* NaN; the last 64 bytes must stay */
  CHECK_MSG(cpu_conv(cache, d,
                     &(ConvOperands){o->x.bytes, o->w.bytes, d->has_bias ? o->bias.bytes : NULL,
                                     o->y.bytes, workspace}) == AMPC_OK,
            "%s", ampc_last_error());
  for (size_t i = 0; i < 64; i++) CHECK(workspace[bytes + i] == (char)0xff);
  free(workspace);
}

/* As call, but y begins where the workspace ends, as it may in a plan. */
static void call_beside(ConvCache *cache, const ampc_conv *d, const Operands *o)
{
  size_t bytes = (size_t)d->workspace, y = (size_t)o->y.elements * sizeof(double);
  char *workspace = aligned_alloc(64, (bytes + y + 63) / 64 * 64);
  MUST(workspace);
  memset(workspace, 0xff, bytes);
  memcpy(workspace + bytes, o->y.bytes, y);
  CHECK_MSG(cpu_conv(cache, d,
                     &(ConvOperands){o->x.bytes, o->w.bytes, d->has_bias ? o->bias.bytes : NULL,
                                     workspace + bytes, workspace}) == AMPC_OK,
            "%s", ampc_last_error());
  memcpy(o->y.bytes, workspace + bytes, y);
  free(workspace);
}

/* Computes the convolution by ampc's own loops, which the runtime uses if oneDNN has only reference
 * code: at once, or with the weights in two slices. */
static void by_loops(const ampc_conv *d, const Operands *o, int64_t slices, Array *result)
{
  int64_t filters = d->k / slices, plain = conv_weights(d) / slices;
  float *w = (float *)(void *)o->w.bytes, *packed = calloc((size_t)conv_weights(d), sizeof *packed);
  MUST(packed);
  for (int64_t s = 0; s < slices && d->kind != AMPC_CONV_WEIGHT; s++)
    conv_loops_pack(d, s * filters, filters, w + s * plain, packed);
  conv_loops_run(d, d->n, d->k,
                 &(ConvOperands){.x = o->x.bytes,
                                 .w = packed,
                                 .bias = d->has_bias ? o->bias.bytes : NULL,
                                 .y = o->y.bytes});
  if (d->kind == AMPC_CONV_WEIGHT) conv_loops_unpack(d, d->k, packed, w);
  compare(d, false, o, NULL, result, AMPC_F32);
  free(packed);
}

/* True for small convolutions: the reference takes most of the time. */
static bool suits_loops(const ampc_conv *d, bool real64)
{
  bool few = d->n * conv_out_pixels(d) * conv_weights(d) < 1 << 20;
  return few && !real64 && !d->tf32 && !d->accumulate && d->x_type == AMPC_F32 &&
         d->w_type == AMPC_F32 && d->y_type == AMPC_F32 && d->bias_type == AMPC_F32;
}

static void run(ampc_conv d, bool real64)
{
  for (uint32_t i = 0; i < d.spatial; i++)
    d.out[i] = (d.in[i] + 2 * d.pad[i] - d.dilation[i] * (d.kernel[i] - 1) - 1) / d.stride[i] + 1;
  d.workspace = ampc_conv_workspace_cpu(&d, real64);
  Operands o = {array(d.x_type, real64, d.n * conv_in_elements(&d)),
                array(d.w_type, real64, conv_weights(&d)),
                array(d.y_type, real64, d.n * conv_out_elements(&d)),
                array(d.bias_type, real64, d.k)};
  Array *result = d.kind == AMPC_CONV_FORWARD ? &o.y : d.kind == AMPC_CONV_DATA ? &o.x : &o.w;
  ampc_dtype type = d.kind == AMPC_CONV_FORWARD ? d.y_type
                    : d.kind == AMPC_CONV_DATA  ? d.x_type
                                                : d.w_type;
  Array before = copy_of(result);
  call(real64 ? cache_real64 : cache_one, &d, &o);
  compare(&d, real64, &o, &before, result, type);
  Array first = *result;
  if (!real64) { /* again on two threads and beside the workspace: the bits must be equal */
    *result = copy_of(&before);
    call_beside(cache_two, &d, &o);
    CHECK(memcmp(first.bytes, result->bytes, (size_t)(first.elements * ampc_dtype_size(type))) ==
          0);
    free(first.bytes);
  }
  if (suits_loops(&d, real64)) by_loops(&d, &o, 1, result);
  if (suits_loops(&d, real64) && d.groups == 1 && d.k % 2 == 0) by_loops(&d, &o, 2, result);
  free(before.bytes);
  free(o.x.bytes);
  free(o.w.bytes);
  free(o.y.bytes);
  free(o.bias.bytes);
}

static void run_kinds(ampc_conv d, bool real64)
{
  for (int kind = 0; kind < 3; kind++) {
    ampc_conv e = d;
    e.kind = (ampc_conv_kind)kind;
    e.has_bias = d.has_bias && kind == AMPC_CONV_FORWARD;
    run(e, real64);
    e.accumulate = kind == AMPC_CONV_WEIGHT && e.w_type == AMPC_F32;
    if (e.accumulate) run(e, real64);
  }
}

/* ---- cases ---- */

/* n, c, k, groups, spatial, in, kernel, out (see run), stride, pad, dilation (0: 1) */
static const ampc_conv shapes[] = {
    {.n = 1, 1, 1, 1, 2, {1, 1}, {1, 1}, {0}, {1, 1}, {0}, {0}},
    {.n = 37, 1, 5, 1, 2, {9, 7}, {3, 3}, {0}, {1, 1}, {1, 1}, {0}, .has_bias = true},
    {.n = 33, 16, 32, 1, 2, {8, 8}, {3, 3}, {0}, {1, 1}, {1, 1}, {0}},
    {.n = 5, 17, 19, 1, 2, {11, 10}, {3, 2}, {0}, {2, 3}, {1, 0}, {0}, .has_bias = true},
    {.n = 3, 6, 10, 2, 2, {12, 13}, {3, 5}, {0}, {1, 2}, {2, 3}, {2, 3}, .has_bias = true},
    {.n = 4, 24, 24, 24, 2, {7, 6}, {3, 3}, {0}, {1, 1}, {1, 1}, {0}},
    {.n = 2, 20, 40, 20, 2, {7, 7}, {5, 5}, {0}, {2, 2}, {2, 2}, {0}, .has_bias = true},
    {.n = 6, 64, 30, 1, 2, {5, 4}, {1, 1}, {0}, {1, 1}, {0}, {0}, .has_bias = true},
    {.n = 2, 8, 8, 1, 2, {6, 6}, {2, 2}, {0}, {4, 4}, {0}, {0}},
    {.n = 2, 3, 4, 1, 2, {3, 3}, {3, 3}, {0}, {1, 1}, {4, 4}, {0}}, /* rows that are padding only */
    {.n = 2, 70, 70, 70, 2, {9, 8}, {5, 5}, {0}, {1, 2}, {4, 2}, {2}},
    {.n = 2, 15, 3, 1, 2, {5, 6}, {1, 1}, {0}, {1, 1}, {0}, {0}},   /* an odd number of filters */
    {.n = 2, 4, 1, 1, 2, {1, 1}, {3, 3}, {0}, {2, 2}, {1, 1}, {0}}, /* one pixel, padded */
    /* 1x1 with many weights: a product of x; in groups; with a stride, so that x is no matrix */
    {.n = 2, 400, 330, 1, 2, {2, 1}, {1, 1}, {0}, {1, 1}, {0}, {0}, .has_bias = true},
    {.n = 2, 724, 728, 2, 2, {1, 1}, {1, 1}, {0}, {1, 1}, {0}, {0}, .has_bias = true},
    {.n = 2, 400, 330, 1, 2, {3, 1}, {1, 1}, {0}, {2, 1}, {0}, {0}},
    /* one axis: sequences */
    {.n = 3, 5, 7, 1, 1, {23}, {4}, {0}, {3}, {2}, {2}, .has_bias = true},
    {.n = 35, 16, 32, 2, 1, {17}, {3}, {0}, {1}, {1}, {0}},
    {.n = 3, 70, 70, 70, 1, {19}, {5}, {0}, {2}, {2}, {0}, .has_bias = true},
    /* three axes: volumes */
    {.n = 2,
     6,
     10,
     2,
     3,
     {5, 7, 6},
     {2, 3, 3},
     {0},
     {2, 1, 3},
     {1, 0, 2},
     {3, 2, 1},
     .has_bias = true},
    {.n = 3, 17, 19, 1, 3, {4, 3, 5}, {3, 1, 3}, {0}, {1, 2, 1}, {1, 0, 1}, {0}},
    {.n = 5, 12, 12, 12, 3, {3, 5, 4}, {3, 3, 3}, {0}, {1, 1, 1}, {1, 1, 1}, {0}, .has_bias = true},
};

enum { ODD = 11, ONE_PIXEL, POINTWISE }; /* indices into shapes */

static ampc_conv dilated(ampc_conv d)
{
  for (uint32_t i = 0; i < d.spatial; i++)
    if (d.dilation[i] == 0) d.dilation[i] = 1;
  return d;
}

static void every_shape(void)
{
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    run_kinds(dilated(shapes[i]), false);
    run_kinds(dilated(shapes[i]), true);
  }
}

static void every_type(void)
{
  static const ampc_dtype types[] = {AMPC_F32, AMPC_F16, AMPC_BF16};
  static const size_t which[] = {1, 3, 4, 5, ODD, ONE_PIXEL};
  for (size_t i = 0; i < sizeof which / sizeof *which; i++)
    for (size_t t = 0; t < 54; t++) {
      ampc_conv d = dilated(shapes[which[i]]);
      d.x_type = types[t % 3];
      d.w_type = types[t / 3 % 3];
      d.y_type = types[t / 9 % 3];
      d.bias_type = types[(t + i) % 3];
      d.tf32 = t >= 27;
      bool any32 = d.x_type == AMPC_F32 || d.w_type == AMPC_F32 || d.y_type == AMPC_F32;
      if (!d.tf32 || any32) run_kinds(d, false);
    }
}

/* Tests shapes over one and three axes. every_type covers mixed types, whose code is the same. */
static void other_axes(void)
{
  static const ampc_dtype types[] = {AMPC_F32, AMPC_F16, AMPC_BF16};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int t = 0; t < 3 && shapes[i].spatial != 2; t++) {
      ampc_conv d = dilated(shapes[i]);
      d.x_type = d.y_type = d.w_type = d.bias_type = types[t];
      d.tf32 = t == 0;
      run_kinds(d, false);
      d.w_type = AMPC_F32; /* for the weight gradient */
      if (t > 0) run_kinds(d, false);
    }
}

/* Tests many weights and few pixels; a smaller last share (Note [shares]); lanes with several. */
static void large(void)
{
  ampc_conv heavy = {.n = 2,
                     .c = 250,
                     .k = 260,
                     .groups = 1,
                     .spatial = 2,
                     .in = {3, 1},
                     .kernel = {3, 3},
                     .stride = {1, 1},
                     .pad = {1, 1},
                     .dilation = {1, 1},
                     .has_bias = true};
  ampc_conv wide = {.n = 83,
                    .c = 32,
                    .k = 16,
                    .groups = 1,
                    .spatial = 2,
                    .in = {17, 16},
                    .kernel = {1, 2},
                    .stride = {1, 1},
                    .dilation = {1, 1}};
  ampc_conv volumes = {.n = 2, /* volumes with many weights and few pixels: a matrix product */
                       .c = 140,
                       .k = 160,
                       .groups = 1,
                       .spatial = 3,
                       .in = {3, 2, 4},
                       .kernel = {3, 3, 3},
                       .stride = {2, 1, 2},
                       .pad = {1, 1, 1},
                       .dilation = {1, 1, 1},
                       .has_bias = true};
  ampc_conv in_groups = heavy;
  in_groups.n = 1, in_groups.c = 520, in_groups.k = 508, in_groups.groups = 2;
  for (int t = 0; t < 3; t++) {
    ampc_dtype type = t == 0 ? AMPC_F32 : t == 1 ? AMPC_F16 : AMPC_BF16;
    ampc_conv all[] = {heavy, wide, in_groups, volumes, dilated(shapes[POINTWISE])};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
      all[i].x_type = all[i].y_type = all[i].bias_type = all[i].w_type = type;
      run_kinds(all[i], false);
      all[i].w_type = AMPC_F32; /* for the weight gradient */
      if (type != AMPC_F32) run_kinds(all[i], false);
    }
  }
}

/* Tests weights so large that they are processed in slices, over two shares (Note [shares]). Most
 * taps read only padding, which keeps the reference fast. */
static void sliced(void)
{
  ampc_conv d = {.n = 42,
                 .c = 112,
                 .k = 256,
                 .groups = 1,
                 .spatial = 2,
                 .in = {1, 17},
                 .kernel = {39, 1},
                 .stride = {1, 1},
                 .pad = {19, 0},
                 .dilation = {1, 1}};
  for (int t = 0; t < 3; t++) {
    d.x_type = d.y_type = d.w_type = t == 0 ? AMPC_F32 : t == 1 ? AMPC_F16 : AMPC_BF16;
    run_kinds(d, false);
    if (t == 0) continue;
    ampc_conv gradient = d;
    gradient.kind = AMPC_CONV_WEIGHT;
    gradient.w_type = AMPC_F32;
    run(gradient, false);
    gradient.accumulate = true;
    run(gradient, false);
  }
}

/* Tests that sums are rounded once: in f16, 1 + 2^-11 + 2^-11 exceeds 1 only if they are. */
static void one_rounding(void)
{
  ampc_conv d = {.n = 1,
                 .c = 1,
                 .k = 1,
                 .groups = 1,
                 .spatial = 2,
                 .in = {1, 2},
                 .kernel = {1, 2},
                 .out = {1, 1},
                 .stride = {1, 1},
                 .dilation = {1, 1},
                 .has_bias = true,
                 .x_type = AMPC_F16,
                 .w_type = AMPC_F16,
                 .y_type = AMPC_F16,
                 .bias_type = AMPC_F16};
  d.workspace = ampc_conv_workspace_cpu(&d, false);
  uint16_t x[2], w[2], bias, y;
  for (int i = 0; i < 2; i++) {
    number_store(AMPC_F16, false, x, i, i ? 0x1p-11 : 1);
    number_store(AMPC_F16, false, w, i, 1);
  }
  number_store(AMPC_F16, false, &bias, 0, 0x1p-11);
  void *workspace = aligned_alloc(64, (size_t)(d.workspace + 63) / 64 * 64);
  CHECK(cpu_conv(cache_one, &d, &(ConvOperands){x, w, &bias, &y, workspace}) == AMPC_OK);
  CHECK(number_load(AMPC_F16, false, &y, 0) == 1 + 0x1p-10);
  free(workspace);
}

static void refused(ampc_conv d, const char *why)
{
  float x = 1, w = 1, y = 0;
  CHECK(cpu_conv(cache_one, &d, &(ConvOperands){&x, &w, NULL, &y, NULL}) == AMPC_RUN_FAILED);
  CHECK_MSG(strstr(ampc_last_error(), why), "%s", ampc_last_error());
}

static void refusals(void)
{
  ampc_conv d = {.n = 1,
                 .c = 1,
                 .k = 1,
                 .groups = 1,
                 .spatial = 2,
                 .in = {1, 1},
                 .kernel = {1, 1},
                 .out = {1, 1},
                 .stride = {1, 1},
                 .dilation = {1, 1}};
  ampc_conv bad = d;
  refused(bad, "0 bytes of workspace");
  bad.x_type = AMPC_I32;
  refused(bad, "no convolution of i32 by f32 to f32");
  bad = d, bad.out[0] = 2;
  refused(bad, "broken plan");
  bad = d, bad.groups = 2;
  refused(bad, "broken plan");
  bad = d, bad.spatial = 0;
  refused(bad, "broken plan");
  bad = d, bad.spatial = 4;
  refused(bad, "over 4 dimensions");
  bad = d, bad.dilation[1] = 0;
  refused(bad, "broken plan");
  bad = d, bad.accumulate = true;
  refused(bad, "only a weight gradient");
  bad = d, bad.kind = AMPC_CONV_DATA, bad.has_bias = true;
  refused(bad, "only a forward convolution");
}

/* Tests that a second request creates nothing new, and that scratch memory is counted. */
static void kept(void)
{
  ampc_conv d = dilated(shapes[2]);
  memcpy(d.out, d.in, sizeof d.out);
  d.workspace = ampc_conv_workspace_cpu(&d, false);
  ConvCache *cache = conv_cache_create(two, products_two, false);
  CHECK(conv_cache_bytes(cache) == 0);
  CHECK(cpu_conv_prepare(cache, &d) == AMPC_OK);
  int64_t bytes = conv_cache_bytes(cache);
  CHECK(cpu_conv_prepare(cache, &d) == AMPC_OK);
  CHECK(conv_cache_bytes(cache) == bytes);
  conv_cache_free(cache);
}

/* By oneDNN, or by loops of our own. */
static void all(bool own)
{
  products_one = gemm_cache_create(one, false, own);
  products_two = gemm_cache_create(two, false, own);
  products_real64 = gemm_cache_create(two, true, own);
  MUST(products_one && products_two && products_real64);
  cache_one = conv_cache_create(one, products_one, false);
  cache_two = conv_cache_create(two, products_two, false);
  cache_real64 = conv_cache_create(two, products_real64, true);
  MUST(cache_one && cache_two && cache_real64);
  every_shape();
  every_type();
  other_axes();
  large();
  sliced();
  one_rounding();
  refusals();
  kept();
  conv_cache_free(cache_one);
  conv_cache_free(cache_two);
  conv_cache_free(cache_real64);
  gemm_cache_free(products_one);
  gemm_cache_free(products_two);
  gemm_cache_free(products_real64);
}

int main(void)
{
  one = pool_create(1);
  two = pool_create(2);
  MUST(one && two);
  all(false);
  all(true);
  pool_free(one);
  pool_free(two);
  return check_done();
}
