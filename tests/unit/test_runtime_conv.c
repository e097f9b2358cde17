/* Convolutions on the CPU, all three kinds in every type, against a plain loop in double. */
#include <math.h>
#include "check.h"
#include "runtime/base/convert.h"
#include "runtime/cpu/cpu.h"

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

/* ---- the reference ----------------------------------------------------------------------------
 */

/* As the convolution sees them. */
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

typedef struct Sums { /* of the result, and of the magnitudes of what was added */
  double *x, *w, *y, *sum, *size;
  int64_t terms;
} Sums;

/* The products of `n` channels: x, w and y say where the first of them lies. A plain loop of its
 * own for each kind, as nearly all the time of this test goes here. */
static void add_channels(const ampc_conv *d, Sums *s, int64_t x, int64_t w, int64_t y, int64_t n)
{
  int64_t taps = d->kh * d->kw; /* from a channel of a filter to the next */
  if (d->kind == AMPC_CONV_FORWARD) {
    double sum = 0, size = 0;
    for (int64_t c = 0; c < n; c++) {
      double product = s->x[x + c] * s->w[w + c * taps];
      sum += product, size += fabs(product);
    }
    s->sum[y] += sum, s->size[y] += size;
    return;
  }
  double dy = s->y[y];
  for (int64_t c = 0; c < n; c++) {
    bool data = d->kind == AMPC_CONV_DATA;
    double product = dy * (data ? s->w[w + c * taps] : s->x[x + c]);
    int64_t to = data ? x + c : w + c * taps;
    s->sum[to] += product, s->size[to] += fabs(product);
  }
}

/* All products that belong to pixel (oy, ox) and filter k of image n. */
static void add_pixel(const ampc_conv *d, Sums *s, int64_t n, int64_t k, int64_t oy, int64_t ox)
{
  int64_t per_group = d->c / d->groups, first = k / (d->k / d->groups) * per_group;
  int64_t y = ((n * d->oh + oy) * d->ow + ox) * d->k + k;
  for (int64_t i = 0; i < d->kh; i++)
    for (int64_t j = 0; j < d->kw; j++) {
      int64_t iy = oy * d->stride[0] - d->pad[0] + i * d->dilation[0];
      int64_t ix = ox * d->stride[1] - d->pad[1] + j * d->dilation[1];
      if (iy < 0 || iy >= d->h || ix < 0 || ix >= d->w) continue;
      add_channels(d, s, ((n * d->h + iy) * d->w + ix) * d->c + first,
                   (k * per_group * d->kh + i) * d->kw + j, y, per_group);
    }
}

static Sums reference(const ampc_conv *d, bool real64, const Operands *o, const Array *result)
{
  Sums s = {.x = values(d, d->x_type, real64, &o->x),
            .w = values(d, d->w_type, real64, &o->w),
            .y = values(d, d->y_type, real64, &o->y),
            .sum = calloc((size_t)result->elements, sizeof(double)),
            .size = calloc((size_t)result->elements, sizeof(double))};
  MUST(s.sum && s.size);
  for (int64_t n = 0; n < d->n; n++)
    for (int64_t oy = 0; oy < d->oh; oy++)
      for (int64_t ox = 0; ox < d->ow; ox++)
        for (int64_t k = 0; k < d->k; k++) add_pixel(d, &s, n, k, oy, ox);
  s.terms = d->kind == AMPC_CONV_FORWARD ? d->c / d->groups * d->kh * d->kw
            : d->kind == AMPC_CONV_DATA  ? d->k / d->groups * d->kh * d->kw
                                         : d->n * d->oh * d->ow;
  return s;
}

/* ---- one convolution ----------------------------------------------------------------------------
 */

static double unit(ampc_dtype t, bool real64)
{
  return t == AMPC_F16 ? 0x1p-11 : t == AMPC_BF16 ? 0x1p-8 : real64 ? 0x1p-53 : 0x1p-24;
}

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
    worst = off > worst || isnan(off) ? off : worst;
  }
  CHECK_MSG(worst <= 1,
            "kind %d %s %s %s n %d %dx%d c %d k %d %dx%d groups %d stride %d %d pad %d %d dilation "
            "%d %d add %d bias %d tf32 %d real64 %d: %g of the bound",
            d->kind, ampc_dtype_name(d->x_type), ampc_dtype_name(d->w_type),
            ampc_dtype_name(d->y_type), (int)d->n, (int)d->h, (int)d->w, (int)d->c, (int)d->k,
            (int)d->kh, (int)d->kw, (int)d->groups, (int)d->stride[0], (int)d->stride[1],
            (int)d->pad[0], (int)d->pad[1], (int)d->dilation[0], (int)d->dilation[1], d->accumulate,
            d->has_bias, d->tf32, real64, worst);
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
  memset(workspace, 0xff, bytes + 64); /* NaN; and the last 64 bytes must stay */
  CHECK_MSG(cpu_conv(cache, d, o->x.bytes, o->w.bytes, d->has_bias ? o->bias.bytes : NULL,
                     o->y.bytes, workspace) == AMPC_OK,
            "%s", ampc_last_error());
  for (size_t i = 0; i < 64; i++) CHECK(workspace[bytes + i] == (char)0xff);
  free(workspace);
}

static void run(ampc_conv d, bool real64)
{
  d.oh = (d.h + 2 * d.pad[0] - d.dilation[0] * (d.kh - 1) - 1) / d.stride[0] + 1;
  d.ow = (d.w + 2 * d.pad[1] - d.dilation[1] * (d.kw - 1) - 1) / d.stride[1] + 1;
  d.workspace = ampc_conv_workspace_cpu(&d, real64);
  Operands o = {array(d.x_type, real64, d.n * d.h * d.w * d.c),
                array(d.w_type, real64, d.k * (d.c / d.groups) * d.kh * d.kw),
                array(d.y_type, real64, d.n * d.oh * d.ow * d.k), array(d.bias_type, real64, d.k)};
  Array *result = d.kind == AMPC_CONV_FORWARD ? &o.y : d.kind == AMPC_CONV_DATA ? &o.x : &o.w;
  ampc_dtype type = d.kind == AMPC_CONV_FORWARD ? d.y_type
                    : d.kind == AMPC_CONV_DATA  ? d.x_type
                                                : d.w_type;
  Array before = copy_of(result);
  call(real64 ? cache_real64 : cache_one, &d, &o);
  compare(&d, real64, &o, &before, result, type);
  Array first = *result;
  if (!real64) { /* again on two threads, which must give the same bits */
    *result = copy_of(&before);
    call(cache_two, &d, &o);
    CHECK(memcmp(first.bytes, result->bytes, (size_t)(first.elements * ampc_dtype_size(type))) ==
          0);
    free(first.bytes);
  }
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

/* ---- cases --------------------------------------------------------------------------------------
 */

static const ampc_conv shapes[] = {
    {.n = 1, .h = 1, .w = 1, .c = 1, .k = 1, .kh = 1, .kw = 1, .groups = 1, .stride = {1, 1}},
    {.n = 37,
     .h = 9,
     .w = 7,
     .c = 1,
     .k = 5,
     .kh = 3,
     .kw = 3,
     .groups = 1,
     .stride = {1, 1},
     .pad = {1, 1},
     .has_bias = true},
    {.n = 33,
     .h = 8,
     .w = 8,
     .c = 16,
     .k = 32,
     .kh = 3,
     .kw = 3,
     .groups = 1,
     .stride = {1, 1},
     .pad = {1, 1}},
    {.n = 5,
     .h = 11,
     .w = 10,
     .c = 17,
     .k = 19,
     .kh = 3,
     .kw = 2,
     .groups = 1,
     .stride = {2, 3},
     .pad = {1, 0},
     .has_bias = true},
    {.n = 3,
     .h = 12,
     .w = 13,
     .c = 6,
     .k = 10,
     .kh = 3,
     .kw = 5,
     .groups = 2,
     .stride = {1, 2},
     .pad = {2, 3},
     .dilation = {2, 3},
     .has_bias = true},
    {.n = 4,
     .h = 7,
     .w = 6,
     .c = 24,
     .k = 24,
     .kh = 3,
     .kw = 3,
     .groups = 24,
     .stride = {1, 1},
     .pad = {1, 1}},
    {.n = 2,
     .h = 7,
     .w = 7,
     .c = 20,
     .k = 40,
     .kh = 5,
     .kw = 5,
     .groups = 20,
     .stride = {2, 2},
     .pad = {2, 2},
     .has_bias = true},
    {.n = 6,
     .h = 5,
     .w = 4,
     .c = 64,
     .k = 30,
     .kh = 1,
     .kw = 1,
     .groups = 1,
     .stride = {1, 1},
     .has_bias = true},
    {.n = 2, .h = 6, .w = 6, .c = 8, .k = 8, .kh = 2, .kw = 2, .groups = 1, .stride = {4, 4}},
    {.n = 2,
     .h = 3,
     .w = 3,
     .c = 3,
     .k = 4,
     .kh = 3,
     .kw = 3,
     .groups = 1,
     .stride = {1, 1},
     .pad = {4, 4}}, /* rows of padding alone */
};

static ampc_conv dilated(ampc_conv d)
{
  for (int i = 0; i < 2; i++)
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
  static const size_t which[] = {1, 3, 4, 5};
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

/* Many weights and few pixels; shares that do not fill; lanes with several shares. */
static void large(void)
{
  ampc_conv heavy = {.n = 2,
                     .h = 3,
                     .w = 1,
                     .c = 250,
                     .k = 260,
                     .kh = 3,
                     .kw = 3,
                     .groups = 1,
                     .stride = {1, 1},
                     .pad = {1, 1},
                     .dilation = {1, 1},
                     .has_bias = true};
  ampc_conv wide = {.n = 83,
                    .h = 17,
                    .w = 16,
                    .c = 32,
                    .k = 16,
                    .kh = 1,
                    .kw = 2,
                    .groups = 1,
                    .stride = {1, 1},
                    .dilation = {1, 1}};
  ampc_conv in_groups = heavy;
  in_groups.n = 1, in_groups.c = 520, in_groups.k = 508, in_groups.groups = 2;
  for (int t = 0; t < 3; t++) {
    ampc_dtype type = t == 0 ? AMPC_F32 : t == 1 ? AMPC_F16 : AMPC_BF16;
    ampc_conv all[] = {heavy, wide, in_groups};
    for (int i = 0; i < 3; i++) {
      all[i].x_type = all[i].y_type = all[i].bias_type = all[i].w_type = type;
      run_kinds(all[i], false);
      all[i].w_type = AMPC_F32; /* of a gradient */
      if (type != AMPC_F32) run_kinds(all[i], false);
    }
  }
}

/* So many weights that they are handled in slices, over two shares. Most taps see padding alone,
 * which keeps the reference quick. */
static void sliced(void)
{
  ampc_conv d = {.n = 42,
                 .h = 1,
                 .w = 17,
                 .c = 112,
                 .k = 256,
                 .kh = 39,
                 .kw = 1,
                 .groups = 1,
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

/* Sums are rounded once: 1 + 2^-11 + 2^-11 is above 1 in f16 only if nothing in between is. */
static void one_rounding(void)
{
  ampc_conv d = {.n = 1,
                 .h = 1,
                 .w = 2,
                 .c = 1,
                 .k = 1,
                 .kh = 1,
                 .kw = 2,
                 .oh = 1,
                 .ow = 1,
                 .groups = 1,
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
  CHECK(cpu_conv(cache_one, &d, x, w, &bias, &y, workspace) == AMPC_OK);
  CHECK(number_load(AMPC_F16, false, &y, 0) == 1 + 0x1p-10);
  free(workspace);
}

static void refused(ampc_conv d, const char *why)
{
  float x = 1, w = 1, y = 0;
  CHECK(cpu_conv(cache_one, &d, &x, &w, NULL, &y, NULL) == AMPC_RUN_FAILED);
  CHECK_MSG(strstr(ampc_last_error(), why), "%s", ampc_last_error());
}

static void refusals(void)
{
  ampc_conv d = {.n = 1,
                 .h = 1,
                 .w = 1,
                 .c = 1,
                 .k = 1,
                 .kh = 1,
                 .kw = 1,
                 .oh = 1,
                 .ow = 1,
                 .groups = 1,
                 .stride = {1, 1},
                 .dilation = {1, 1}};
  ampc_conv bad = d;
  refused(bad, "0 bytes of workspace");
  bad.x_type = AMPC_I32;
  refused(bad, "no convolution of i32 by f32 to f32");
  bad = d, bad.oh = 2;
  refused(bad, "broken plan");
  bad = d, bad.groups = 2;
  refused(bad, "broken plan");
  bad = d, bad.dilation[1] = 0;
  refused(bad, "broken plan");
  bad = d, bad.accumulate = true;
  refused(bad, "only a weight gradient");
  bad = d, bad.kind = AMPC_CONV_DATA, bad.has_bias = true;
  refused(bad, "only a forward convolution");
}

/* What is asked for again is not made again; scratch space is counted. */
static void kept(void)
{
  ampc_conv d = dilated(shapes[2]);
  d.oh = d.h, d.ow = d.w;
  d.workspace = ampc_conv_workspace_cpu(&d, false);
  ConvCache *cache = conv_cache_create(two, products_two, false);
  CHECK(conv_cache_bytes(cache) == 0);
  CHECK(cpu_conv_prepare(cache, &d) == AMPC_OK);
  int64_t bytes = conv_cache_bytes(cache);
  CHECK(cpu_conv_prepare(cache, &d) == AMPC_OK);
  CHECK(conv_cache_bytes(cache) == bytes);
  conv_cache_free(cache);
}

int main(void)
{
  one = pool_create(1);
  two = pool_create(2);
  MUST(one && two);
  products_one = gemm_cache_create(one, false);
  products_two = gemm_cache_create(two, false);
  products_real64 = gemm_cache_create(two, true);
  MUST(products_one && products_two && products_real64);
  cache_one = conv_cache_create(one, products_one, false);
  cache_two = conv_cache_create(two, products_two, false);
  cache_real64 = conv_cache_create(two, products_real64, true);
  MUST(cache_one && cache_two && cache_real64);
  every_shape();
  every_type();
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
  pool_free(one);
  pool_free(two);
  return check_done();
}
