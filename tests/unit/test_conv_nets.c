/* The convolutions of common nets: forward and both gradients, in three types, for several kinds of
 * processor. oneDNN must compute none of them with its reference code, and the results must match
 * sums in double.
 *
 * The implementation is queried at the sizes of the nets. Results are compared on smaller images,
 * because the image size does not decide the implementation, and only for some elements. */
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"
#include "runtime/base/convert.h"
#include "runtime/cpu/cpu.h"
#include "runtime/plan/conv_sizes.h"

enum { BATCH = 2, PIXELS = 9, SAMPLES = 24, NUMBERS = 5 << 19, OPERAND = 1013 };

/* Pixels of an image on each side, channels, filters, taps on each side, stride, groups. Each shape
 * is listed under the first net that contains it. Images of one pixel come from
 * squeeze-and-excitation. */
typedef struct NetConv {
  int64_t size, c, k, taps, stride, groups;
} NetConv;

static const NetConv convolutions[] = {
    /* resnet50 */
    {224, 3, 64, 7, 2, 1},
    {56, 64, 64, 1, 1, 1},
    {56, 64, 64, 3, 1, 1},
    {56, 64, 256, 1, 1, 1},
    {56, 256, 64, 1, 1, 1},
    {56, 128, 128, 3, 2, 1},
    {28, 128, 512, 1, 1, 1},
    {56, 256, 512, 1, 2, 1},
    {28, 512, 128, 1, 1, 1},
    {28, 128, 128, 3, 1, 1},
    {28, 256, 256, 3, 2, 1},
    {14, 256, 1024, 1, 1, 1},
    {28, 512, 1024, 1, 2, 1},
    {14, 1024, 256, 1, 1, 1},
    {14, 256, 256, 3, 1, 1},
    {14, 512, 512, 3, 2, 1},
    {7, 512, 2048, 1, 1, 1},
    {14, 1024, 2048, 1, 2, 1},
    {7, 2048, 512, 1, 1, 1},
    {7, 512, 512, 3, 1, 1},
    /* resnext50 */
    {56, 64, 128, 1, 1, 1},
    {56, 128, 128, 3, 1, 32},
    {56, 128, 256, 1, 1, 1},
    {56, 256, 128, 1, 1, 1},
    {56, 256, 256, 1, 1, 1},
    {56, 256, 256, 3, 2, 32},
    {28, 256, 512, 1, 1, 1},
    {28, 512, 256, 1, 1, 1},
    {28, 256, 256, 3, 1, 32},
    {28, 512, 512, 1, 1, 1},
    {28, 512, 512, 3, 2, 32},
    {14, 512, 1024, 1, 1, 1},
    {14, 1024, 512, 1, 1, 1},
    {14, 512, 512, 3, 1, 32},
    {14, 1024, 1024, 1, 1, 1},
    {14, 1024, 1024, 3, 2, 32},
    {7, 1024, 2048, 1, 1, 1},
    {7, 2048, 1024, 1, 1, 1},
    {7, 1024, 1024, 3, 1, 32},
    /* efficientnet_b0 */
    {224, 3, 32, 3, 2, 1},
    {112, 32, 32, 3, 1, 32},
    {1, 32, 8, 1, 1, 1},
    {1, 8, 32, 1, 1, 1},
    {112, 32, 16, 1, 1, 1},
    {112, 16, 96, 1, 1, 1},
    {112, 96, 96, 3, 2, 96},
    {1, 96, 4, 1, 1, 1},
    {1, 4, 96, 1, 1, 1},
    {56, 96, 24, 1, 1, 1},
    {56, 24, 144, 1, 1, 1},
    {56, 144, 144, 3, 1, 144},
    {1, 144, 6, 1, 1, 1},
    {1, 6, 144, 1, 1, 1},
    {56, 144, 24, 1, 1, 1},
    {56, 144, 144, 5, 2, 144},
    {28, 144, 40, 1, 1, 1},
    {28, 40, 240, 1, 1, 1},
    {28, 240, 240, 5, 1, 240},
    {1, 240, 10, 1, 1, 1},
    {1, 10, 240, 1, 1, 1},
    {28, 240, 40, 1, 1, 1},
    {28, 240, 240, 3, 2, 240},
    {14, 240, 80, 1, 1, 1},
    {14, 80, 480, 1, 1, 1},
    {14, 480, 480, 3, 1, 480},
    {1, 480, 20, 1, 1, 1},
    {1, 20, 480, 1, 1, 1},
    {14, 480, 80, 1, 1, 1},
    {14, 480, 480, 5, 1, 480},
    {14, 480, 112, 1, 1, 1},
    {14, 112, 672, 1, 1, 1},
    {14, 672, 672, 5, 1, 672},
    {1, 672, 28, 1, 1, 1},
    {1, 28, 672, 1, 1, 1},
    {14, 672, 112, 1, 1, 1},
    {14, 672, 672, 5, 2, 672},
    {7, 672, 192, 1, 1, 1},
    {7, 192, 1152, 1, 1, 1},
    {7, 1152, 1152, 5, 1, 1152},
    {1, 1152, 48, 1, 1, 1},
    {1, 48, 1152, 1, 1, 1},
    {7, 1152, 192, 1, 1, 1},
    {7, 1152, 1152, 3, 1, 1152},
    {7, 1152, 320, 1, 1, 1},
    {7, 320, 1280, 1, 1, 1},
    /* mobilenet_v2 */
    {56, 144, 144, 3, 2, 144},
    {28, 144, 32, 1, 1, 1},
    {28, 32, 192, 1, 1, 1},
    {28, 192, 192, 3, 1, 192},
    {28, 192, 32, 1, 1, 1},
    {28, 192, 192, 3, 2, 192},
    {14, 192, 64, 1, 1, 1},
    {14, 64, 384, 1, 1, 1},
    {14, 384, 384, 3, 1, 384},
    {14, 384, 64, 1, 1, 1},
    {14, 384, 96, 1, 1, 1},
    {14, 96, 576, 1, 1, 1},
    {14, 576, 576, 3, 1, 576},
    {14, 576, 96, 1, 1, 1},
    {14, 576, 576, 3, 2, 576},
    {7, 576, 160, 1, 1, 1},
    {7, 160, 960, 1, 1, 1},
    {7, 960, 960, 3, 1, 960},
    {7, 960, 160, 1, 1, 1},
    {7, 960, 320, 1, 1, 1},
    /* mobilenet_v3_large */
    {224, 3, 16, 3, 2, 1},
    {112, 16, 16, 3, 1, 16},
    {112, 16, 16, 1, 1, 1},
    {112, 16, 64, 1, 1, 1},
    {112, 64, 64, 3, 2, 64},
    {56, 64, 24, 1, 1, 1},
    {56, 24, 72, 1, 1, 1},
    {56, 72, 72, 3, 1, 72},
    {56, 72, 24, 1, 1, 1},
    {56, 72, 72, 5, 2, 72},
    {1, 72, 24, 1, 1, 1},
    {1, 24, 72, 1, 1, 1},
    {28, 72, 40, 1, 1, 1},
    {28, 40, 120, 1, 1, 1},
    {28, 120, 120, 5, 1, 120},
    {1, 120, 32, 1, 1, 1},
    {1, 32, 120, 1, 1, 1},
    {28, 120, 40, 1, 1, 1},
    {14, 80, 200, 1, 1, 1},
    {14, 200, 200, 3, 1, 200},
    {14, 200, 80, 1, 1, 1},
    {14, 80, 184, 1, 1, 1},
    {14, 184, 184, 3, 1, 184},
    {14, 184, 80, 1, 1, 1},
    {1, 480, 120, 1, 1, 1},
    {1, 120, 480, 1, 1, 1},
    {14, 672, 672, 3, 1, 672},
    {1, 672, 168, 1, 1, 1},
    {1, 168, 672, 1, 1, 1},
    {7, 672, 160, 1, 1, 1},
    {7, 960, 960, 5, 1, 960},
    {1, 960, 240, 1, 1, 1},
    {1, 240, 960, 1, 1, 1},
    /* mobilenet_v3_small */
    {112, 16, 16, 3, 2, 16},
    {1, 16, 8, 1, 1, 1},
    {1, 8, 16, 1, 1, 1},
    {56, 16, 16, 1, 1, 1},
    {56, 16, 72, 1, 1, 1},
    {56, 72, 72, 3, 2, 72},
    {28, 72, 24, 1, 1, 1},
    {28, 24, 88, 1, 1, 1},
    {28, 88, 88, 3, 1, 88},
    {28, 88, 24, 1, 1, 1},
    {28, 24, 96, 1, 1, 1},
    {28, 96, 96, 5, 2, 96},
    {1, 96, 24, 1, 1, 1},
    {1, 24, 96, 1, 1, 1},
    {14, 96, 40, 1, 1, 1},
    {14, 40, 240, 1, 1, 1},
    {14, 240, 240, 5, 1, 240},
    {1, 240, 64, 1, 1, 1},
    {1, 64, 240, 1, 1, 1},
    {14, 240, 40, 1, 1, 1},
    {14, 40, 120, 1, 1, 1},
    {14, 120, 120, 5, 1, 120},
    {14, 120, 48, 1, 1, 1},
    {14, 48, 144, 1, 1, 1},
    {14, 144, 144, 5, 1, 144},
    {1, 144, 40, 1, 1, 1},
    {1, 40, 144, 1, 1, 1},
    {14, 144, 48, 1, 1, 1},
    {14, 48, 288, 1, 1, 1},
    {14, 288, 288, 5, 2, 288},
    {1, 288, 72, 1, 1, 1},
    {1, 72, 288, 1, 1, 1},
    {7, 288, 96, 1, 1, 1},
    {7, 96, 576, 1, 1, 1},
    {7, 576, 576, 5, 1, 576},
    {1, 576, 144, 1, 1, 1},
    {1, 144, 576, 1, 1, 1},
    {7, 576, 96, 1, 1, 1},
    /* shapes of none of these nets: filters of 7x7 and 9x9, channels that fill no vector, two
     * filters for each channel, odd groups */
    {28, 96, 96, 7, 1, 96},
    {28, 33, 33, 9, 2, 33},
    {28, 7, 7, 5, 1, 7},
    {28, 20, 40, 5, 1, 20},
    {28, 40, 40, 3, 1, 8},
    {28, 17, 19, 3, 2, 1},
    {28, 100, 100, 3, 1, 10},
};
enum { CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

static const ampc_dtype types[] = {AMPC_F32, AMPC_BF16, AMPC_F16};

static Pool *pool;
static GemmCache *products;
static char *numbers[3]; /* NUMBERS values of each type; the operands are ranges of them */

static ampc_conv conv_of(const NetConv *v, int64_t size, ampc_conv_kind kind, ampc_dtype type)
{
  int64_t pad = v->taps / 2, out = (size + 2 * pad - v->taps) / v->stride + 1;
  bool weight = kind == AMPC_CONV_WEIGHT;
  ampc_conv d = {.kind = kind,
                 .n = BATCH,
                 .c = v->c,
                 .k = v->k,
                 .groups = v->groups,
                 .spatial = 2,
                 .in = {size, size},
                 .kernel = {v->taps, v->taps},
                 .out = {out, out},
                 .stride = {v->stride, v->stride},
                 .pad = {pad, pad},
                 .dilation = {1, 1},
                 .accumulate = weight,
                 .x_type = type,
                 .w_type = weight ? AMPC_F32 : type,
                 .y_type = type};
  d.workspace = ampc_conv_workspace_cpu(&d, false);
  return d;
}

static const char *conv_text(const ampc_conv *d)
{
  static const char *const kinds[] = {"forward", "data", "weight"};
  static char text[128];
  snprintf(text, sizeof text, "%s of %s, %dx%d pixels, %d to %d channels, %d taps, groups %d",
           kinds[d->kind], ampc_dtype_name(d->x_type), (int)d->in[0], (int)d->in[1], (int)d->c,
           (int)d->k, (int)d->kernel[0], (int)d->groups);
  return text;
}

/* ---- implementations ------------------------------------------------------------------------- */

/* Expects ampc's loops for depthwise convolutions; on x86-64 code that oneDNN generates for
 * others. */
static bool is_quick(const ampc_conv *d, const char *name)
{
#if defined __x86_64__
  if (d->groups == 1 && strcmp(name, "loops") == 0) return false;
#endif
  bool one_each = d->groups == d->c && d->groups == d->k;
  return strncmp(name, "ref", 3) != 0 && !(one_each && strstr(name, "gemm"));
}

static void implementations(ConvCache *cache, const NetConv *v)
{
  for (int t = 0; t < 3; t++)
    for (int kind = 0; kind < 3; kind++) {
      ampc_conv d = conv_of(v, v->size, (ampc_conv_kind)kind, types[t]);
      const char *name;
      CHECK_MSG(cpu_conv_implementation(cache, &d, &name) == AMPC_OK, "%s", ampc_last_error());
      CHECK_MSG(is_quick(&d, name), "%s: by %s", conv_text(&d), name);
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

typedef struct Operands {
  ampc_conv d;
  const char *x, *w, *y; /* the test does not read the one that is the result */
  int type;              /* type of the operands: an index into types */
} Operands;

typedef struct Sum { /* a sum of products, and the sum of their magnitudes */
  double value, size;
  int64_t terms;
} Sum;

static void add(const Operands *o, Sum *s, const char *a, int64_t i, const char *b, int64_t j)
{
  double product =
      number_load(types[o->type], false, a, i) * number_load(types[o->type], false, b, j);
  s->value += product;
  s->size += fabs(product);
  s->terms++;
}

/* Adds the products of pixel x and pixel y, which `tap` connects. `c` and `k` give the channels of
 * the result's element; a channel that the result lacks is summed over. */
static void add_pair(const Operands *o, Sum *s, int64_t x, int64_t y, int64_t tap, int64_t c,
                     int64_t k)
{
  const ampc_conv *d = &o->d;
  int64_t c_each = d->c / d->groups, k_each = d->k / d->groups, taps = conv_taps(d);
  int64_t first_c = (d->kind == AMPC_CONV_FORWARD ? k / k_each : c / c_each) * c_each;
  int64_t first_k = first_c / c_each * k_each;
  if (d->kind == AMPC_CONV_FORWARD)
    for (int64_t i = 0; i < c_each; i++)
      add(o, s, o->x, x * d->c + first_c + i, o->w, (k * taps + tap) * c_each + i);
  else if (d->kind == AMPC_CONV_DATA)
    for (int64_t j = 0; j < k_each; j++)
      add(o, s, o->y, y * d->k + first_k + j, o->w,
          ((first_k + j) * taps + tap) * c_each + c - first_c);
  else
    add(o, s, o->x, x * d->c + c, o->y, y * d->k + k);
}

/* Returns element `at` of the result: the sum over all pairs of pixels that contribute to it. */
static Sum reference(const Operands *o, int64_t at)
{
  const ampc_conv *d = &o->d;
  int64_t c_each = d->c / d->groups, taps = conv_taps(d), n_x = d->in[0], n_y = d->out[0];
  bool forward = d->kind == AMPC_CONV_FORWARD, data = d->kind == AMPC_CONV_DATA;
  int64_t k = forward ? at % d->k : at / taps / c_each;
  int64_t c = data ? at % d->c : k / (d->k / d->groups) * c_each + at % c_each;
  Sum s = {0};
  for (int64_t y = 0; y < d->n * n_y * n_y; y++)
    for (int64_t tap = 0; tap < taps; tap++) {
      int64_t row = y / n_y % n_y * d->stride[0] - d->pad[0] + tap / d->kernel[1];
      int64_t column = y % n_y * d->stride[1] - d->pad[1] + tap % d->kernel[1];
      int64_t x = (y / (n_y * n_y) * n_x + row) * n_x + column;
      bool inside = row >= 0 && row < n_x && column >= 0 && column < n_x;
      bool meets = forward ? y == at / d->k : data ? x == at / d->c : tap == at / c_each % taps;
      if (inside && meets) add_pair(o, &s, x, y, tap, c, k);
    }
  return s;
}

static double unit(ampc_dtype t)
{
  return t == AMPC_F16 ? 0x1p-11 : t == AMPC_BF16 ? 0x1p-8 : 0x1p-24;
}

/* Compares with the bound of an f32 sum, rounded once. `accumulate` adds to a result of 1. */
static void compare(const Operands *o, ampc_dtype type, const char *result, int64_t elements)
{
  for (int64_t i = 0; i < SAMPLES; i++) {
    int64_t at = i == 0 ? elements - 1 : i * 7919 * 104729 % elements;
    Sum s = reference(o, at);
    double want = s.value + o->d.accumulate, got = number_load(type, false, result, at);
    double bound = (s.size + 2) * sqrt((double)s.terms + 4) * 0x1p-24 + fabs(want) * unit(type);
    if (type == AMPC_F16) bound += 0x1p-25; /* subnormal */
    CHECK_MSG(fabs(got - want) <= bound, "%s: element %d is %g instead of %g", conv_text(&o->d),
              (int)at, got, want);
  }
}

/* Runs the convolution. `result` has space for NUMBERS values of any type. */
static void run(ConvCache *cache, const ampc_conv *d, int type, char *result)
{
  int64_t size = ampc_dtype_size(types[type]);
  Operands o = {.d = *d, .type = type};
  o.x = numbers[type], o.w = o.x + OPERAND * size, o.y = o.w + OPERAND * size;
  bool forward = d->kind == AMPC_CONV_FORWARD, data = d->kind == AMPC_CONV_DATA;
  int64_t elements = forward ? d->n * conv_out_elements(d)
                     : data  ? d->n * conv_in_elements(d)
                             : conv_weights(d);
  for (int64_t i = 0; d->accumulate && i < elements; i++) ((float *)(void *)result)[i] = 1;
  if (!d->accumulate) memset(result, 0xff, (size_t)(elements * size)); /* NaN */
  void *workspace = aligned_alloc(64, (size_t)d->workspace + 64);
  MUST(workspace);
  ampc_status status =
      cpu_conv(cache, d,
               &(ConvOperands){data ? result : (char *)o.x, forward || data ? (char *)o.w : result,
                               NULL, forward ? result : (char *)o.y, workspace});
  CHECK_MSG(status == AMPC_OK, "%s", ampc_last_error());
  compare(&o, d->kind == AMPC_CONV_WEIGHT ? AMPC_F32 : types[type], result, elements);
  free(workspace);
}

static void compare_numbers(ConvCache *cache, const NetConv *v, char *result)
{
  int64_t size = v->size < PIXELS ? v->size : PIXELS;
  for (int t = 0; t < 3; t++)
    for (int kind = 0; kind < 3; kind++) {
      ampc_conv d = conv_of(v, size, (ampc_conv_kind)kind, types[t]);
      run(cache, &d, t, result);
    }
}

/* ---- processors ------------------------------------------------------------------------------ */

static void make_numbers(void)
{
  uint32_t state = 1;
  for (int t = 0; t < 3; t++) MUST(numbers[t] = malloc((size_t)NUMBERS * sizeof(float)));
  for (int64_t i = 0; i < NUMBERS; i++) {
    state = state * 1664525u + 1013904223u;
    float number = (float)(state >> 8) * 0x1p-23f - 1;
    for (int t = 0; t < 3; t++) number_store(types[t], false, numbers[t], i, (double)number);
  }
}

/* Checks every step-th shape on this machine, with instruction sets limited to `isa`. */
static int check_all(dnnl_cpu_isa_t isa, size_t step)
{
  MUST(isa == dnnl_cpu_isa_all || dnnl_set_max_cpu_isa(isa) == dnnl_success);
  make_numbers();
  char *result = malloc((size_t)NUMBERS * sizeof(float));
  pool = pool_create(2);
  products = gemm_cache_create(pool, false, false);
  MUST(result && pool && products);
  for (size_t i = 0; i < CONVOLUTIONS; i += step) {
    ConvCache *cache = conv_cache_create(pool, products, false); /* its primitives take memory */
    MUST(cache);
    implementations(cache, &convolutions[i]);
    compare_numbers(cache, &convolutions[i], result);
    conv_cache_free(cache);
  }
  gemm_cache_free(products);
  pool_free(pool);
  for (int t = 0; t < 3; t++) free(numbers[t]);
  free(result);
  return check_done();
}

/* Runs each kind of processor in a process of its own: oneDNN detects the processor once. On Arm it
 * does not pretend to have another one. */
int main(void)
{
  static const dnnl_cpu_isa_t kinds[] = {
    dnnl_cpu_isa_all,
#if defined __x86_64__
    dnnl_cpu_isa_avx512_core,
    dnnl_cpu_isa_avx2,
    dnnl_cpu_isa_sse41,
#endif
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) return check_all(kinds[i], i == 0 ? 1 : 5);
    int status;
    MUST(waitpid(child, &status, 0) == child);
    CHECK_MSG(status == 0, "processor %d: status %d", (int)i, status);
  }
  return check_done();
}
