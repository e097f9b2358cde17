/* The kernels of convolutions on CUDA, over 1, 2 and 3 axes, against plain loops: the kernels that
 * gather the columns of images (templates/im2col.cu), and those that compute a whole convolution
 * (conv_whole*.cu). The test compiles their CUDA text as C. All numbers are small integers, so
 * every type and every order of summation gives the same result. */
#include "check.h"
#include <dlfcn.h>
#include "compiler/driver.h"
#include "compiler/kernel/kernels.h"
#include "compiler/kernel/kernel_parts.h"
#include "compiler/graph/ir.h"
#include "runner/jit/jit.h"
#include "runtime/base/convert.h"
#include "runtime/plan/conv_columns.h"
#include "runtime/plan/conv_sizes.h"

static const char job[] = "model net = Conv2d(2, 3, kernel_size=3)\n"
                          "infer f(x: f32[1, 2, 5, 5]) { return net(x) }\n";

/* A job compiled for CUDA, and its one convolution. Each case replaces the convolution's sizes. */
typedef struct Stand {
  Compile *c;
  uint32_t group;
} Stand;

static Stand stand_open(void)
{
  Options options = {.input = "a.amp", .target = "sm_80", .optimize = 2, .error_limit = 20};
  Stand s = {.c = compile_create(&options)};
  MUST(compile_text(s.c, "a.amp", job, strlen(job)));
  const Graph *g = s.c->graph;
  for (uint32_t i = 1; i < g->groups.n; i++)
    if (command_of(g, i)->columns) s.group = i;
  MUST(s.group);
  return s;
}

/* Builds the kernel of a convolution of these sizes as a library that runs on the CPU. */
static void *build(Stand *s, const ampc_conv *d, const char **out_name)
{
  Compile *c = s->c;
  Text kernel, unit;
  Printer p;
  text_init(&kernel, c->arena);
  text_init(&unit, c->arena);
  printer_begin(&p, c, &kernel);
  Kernel k = kernel_of(&p, s->group);
  const char *name = k.name;
  emit_columns(&k, d);
  text_printf(&kernel,
              "static void %s_thunk(void *const *a, unsigned block, unsigned n_blocks)\n{\n"
              "  block_index = block;\n  block_count = n_blocks;\n  %s(",
              name, name);
  for (uint32_t i = 0; i < ampc_conv_kernel_args(d); i++)
    text_printf(&kernel, "%sa[%u]", i ? ", " : "", i);
  text_puts(&kernel, ");\n}\n");
  const char *target = c->options.target;
  c->options.target = "cpu";
  emit_unit(c, &kernel, &name, 1, &unit);
  c->options.target = target;
  void *library;
  MUST(jit_open(&unit, "native", &name, 1, &library) == AMPC_OK);
  *out_name = name;
  return library;
}

/* Returns the pixel of x that tap `tap` reads for pixel `out` of y; -1: padding. Computed from
 * coordinates; missing leading axes have size 1. */
static int64_t sees(const ampc_conv *d, int64_t out, int64_t tap)
{
  int64_t size[3] = {1, 1, 1}, at[3] = {0, 0, 0};
  for (int i = (int)d->spatial - 1; i >= 0; i--) {
    int64_t o = out % d->out[i], t = tap % d->kernel[i];
    out /= d->out[i], tap /= d->kernel[i];
    size[i] = d->in[i];
    at[i] = o * d->stride[i] + t * d->dilation[i] - d->pad[i];
    if (at[i] < 0 || at[i] >= size[i]) return -1;
  }
  return (at[0] * size[1] + at[1]) * size[2] + at[2];
}

static double small_number(int64_t i)
{
  return (double)(i * 7 % 13 - 6);
}

/* Computes the columns that the kernel must gather: of the images x, or of dy for the gradient by
 * images. For dy each row looks for the pixel of y that reads this pixel of x by this tap. */
static void expect_columns(const ampc_conv *d, const double *from, double *to)
{
  bool data = d->kind == AMPC_CONV_DATA;
  int64_t taps = conv_taps(d), outs = conv_out_pixels(d), ins = conv_in_pixels(d);
  int64_t channels = data ? d->k : d->c, each = channels / d->groups, rows = data ? ins : outs;
  for (int64_t row = 0; row < d->n * rows; row++)
    for (int64_t tap = 0; tap < taps; tap++) {
      int64_t pixel = -1, image = row / rows, at = row % rows;
      if (!data) pixel = sees(d, at, tap);
      for (int64_t y = 0; data && y < outs; y++)
        if (sees(d, y, tap) == at) pixel = y;
      int64_t source = (image * (data ? outs : ins) + pixel) * channels;
      for (int64_t c = 0; c < channels; c++)
        to[((row * d->groups + c / each) * taps + tap) * each + c % each] =
            pixel < 0 ? 0 : from[source + c];
    }
}

/* Transposes weights [group, k, tap, c] to [group, c, tap, k]. */
static void expect_turned(const ampc_conv *d, const double *from, double *to)
{
  int64_t taps = conv_taps(d), k_each = d->k / d->groups, c_each = d->c / d->groups;
  for (int64_t k = 0; k < d->k; k++)
    for (int64_t t = 0; t < taps; t++)
      for (int64_t c = 0; c < c_each; c++)
        to[((k / k_each * c_each + c) * taps + t) * k_each + k % k_each] =
            from[(k * taps + t) * c_each + c];
}

typedef struct Array { /* the bytes that the kernel gets, and their values as doubles */
  char *bytes;
  double *numbers;
  int64_t n;
} Array;

static Array array(ampc_dtype type, int64_t n)
{
  Array a = {calloc((size_t)n + 1, 4), calloc((size_t)n + 1, sizeof(double)), n};
  MUST(a.bytes && a.numbers);
  for (int64_t i = 0; i < n; i++) {
    a.numbers[i] = small_number(i);
    number_store(type, false, a.bytes, i, a.numbers[i]);
  }
  return a;
}

static void free_arrays(Array *a, int n)
{
  for (int i = 0; i < n; i++) {
    free(a[i].bytes);
    free(a[i].numbers);
  }
}

static void compare(const ampc_conv *d, const char *what, const Array *got)
{
  int64_t wrong = 0;
  for (int64_t i = 0; i < got->n; i++)
    wrong += number_load(d->x_type, false, got->bytes, i) != got->numbers[i];
  CHECK_MSG(wrong == 0,
            "kind %d, %u axes, %d channels, %s: %lld of %lld elements of the %s are wrong", d->kind,
            d->spatial, (int)d->c, ampc_dtype_name(d->x_type), (long long)wrong, (long long)got->n,
            what);
}

static void set_out(ampc_conv *d)
{
  for (uint32_t i = 0; i < d->spatial; i++)
    d->out[i] =
        (d->in[i] + 2 * d->pad[i] - d->dilation[i] * (d->kernel[i] - 1) - 1) / d->stride[i] + 1;
}

static void check_kernel(Stand *s, ampc_conv d)
{
  set_out(&d);
  ConvColumns columns = ampc_conv_columns(&d, false);
  bool data = d.kind == AMPC_CONV_DATA;
  MUST(!columns.direct && columns.parts == 1);
  int64_t rows = d.n * (data ? conv_in_pixels(&d) : conv_out_pixels(&d));
  Array a[] = {array(d.x_type, d.n * (data ? conv_out_elements(&d) : conv_in_elements(&d))),
               array(d.x_type, rows * (data ? d.k : d.c) * conv_taps(&d)),
               array(d.x_type, conv_weights(&d)), array(d.x_type, conv_weights(&d))};
  expect_columns(&d, a[0].numbers, a[1].numbers);
  expect_turned(&d, a[2].numbers, a[3].numbers);
  const char *name;
  void *library = build(s, &d, &name);
  ampc_cpu_kernel *run = jit_find(library, name);
  MUST(run);
  void *const args[] = {a[0].bytes, a[1].bytes, a[2].bytes, a[3].bytes};
  for (unsigned b = 0; b < 3; b++) run(args, b, 3);
  compare(&d, "columns", &a[1]);
  if (data) compare(&d, "weights", &a[3]);
  dlclose(library);
  free_arrays(a, 4);
}

/* ---- whole convolutions ---- */

/* Computes the result `to` of one kind of convolution from the two other arrays. */
static void expect_whole(const ampc_conv *d, const double *x, const double *w, const double *y,
                         const double *bias, double *to)
{
  int64_t taps = conv_taps(d), outs = conv_out_pixels(d), ins = conv_in_pixels(d);
  int64_t k_each = d->k / d->groups, c_each = d->c / d->groups;
  int64_t n = d->kind == AMPC_CONV_FORWARD ? d->n * outs * d->k : d->n * ins * d->c;
  if (d->kind == AMPC_CONV_FORWARD)
    for (int64_t i = 0; i < n; i++) to[i] = d->has_bias ? bias[i % d->k] : 0;
  else if (d->kind == AMPC_CONV_DATA)
    for (int64_t i = 0; i < n; i++) to[i] = 0;
  else if (!d->accumulate)
    for (int64_t i = 0; i < conv_weights(d); i++) to[i] = 0;
  for (int64_t out = 0; out < d->n * outs; out++)
    for (int64_t tap = 0; tap < taps; tap++) {
      int64_t in = sees(d, out % outs, tap);
      if (in < 0) continue;
      in += out / outs * ins;
      for (int64_t k = 0; k < d->k; k++)
        for (int64_t c = 0; c < c_each; c++) {
          int64_t ix = in * d->c + k / k_each * c_each + c, iw = (k * taps + tap) * c_each + c;
          int64_t iy = out * d->k + k;
          if (d->kind == AMPC_CONV_FORWARD) to[iy] += x[ix] * w[iw];
          if (d->kind == AMPC_CONV_DATA) to[ix] += y[iy] * w[iw];
          if (d->kind == AMPC_CONV_WEIGHT) to[iw] += x[ix] * y[iy];
        }
    }
}

/* Rounds the sums, which are exact integers, to the type. */
static void round_to(ampc_dtype type, const Array *a)
{
  char number[8];
  for (int64_t i = 0; i < a->n; i++) {
    number_store(type, false, number, 0, a->numbers[i]);
    a->numbers[i] = number_load(type, false, number, 0);
  }
}

static void check_whole(Stand *s, ampc_conv d)
{
  set_out(&d);
  ConvColumns t = ampc_conv_columns(&d, false);
  MUST(t.whole);
  Array x = array(d.x_type, d.n * conv_in_elements(&d)), w = array(d.w_type, conv_weights(&d));
  Array y = array(d.y_type, d.n * conv_out_elements(&d)), bias = array(d.bias_type, d.k);
  Array sums = array(AMPC_F32, t.bytes / 4 + 1);
  Array *result = d.kind == AMPC_CONV_FORWARD ? &y : d.kind == AMPC_CONV_DATA ? &x : &w;
  ampc_dtype type = result == &y ? d.y_type : result == &x ? d.x_type : d.w_type;
  expect_whole(&d, x.numbers, w.numbers, y.numbers, bias.numbers, result->numbers);
  round_to(type, result);
  const char *name;
  void *library = build(s, &d, &name);
  ampc_cpu_kernel *run = jit_find(library, name);
  MUST(run);
  for (int pass = 0; pass < ampc_conv_passes(&d, &t); pass++) {
    void *forward[] = {x.bytes, w.bytes, y.bytes, bias.bytes};
    void *data[] = {y.bytes, w.bytes, x.bytes, NULL};
    void *weight[] = {x.bytes, y.bytes, sums.bytes, w.bytes};
    void **args = d.kind == AMPC_CONV_FORWARD ? forward : d.kind == AMPC_CONV_DATA ? data : weight;
    ampc_conv_pass(&d, &t, pass, args);
    for (unsigned b = 0; b < 3; b++) run(args, b, 3);
  }
  int64_t wrong = 0;
  for (int64_t i = 0; i < result->n; i++)
    wrong += number_load(type, false, result->bytes, i) != result->numbers[i];
  CHECK_MSG(wrong == 0, "whole, kind %d, %u axes, %d channels in %d groups, %s: %lld of %lld wrong",
            d.kind, d.spatial, (int)d.c, (int)d.groups, ampc_dtype_name(type), (long long)wrong,
            (long long)result->n);
  dlclose(library);
  free_arrays((Array[]){x, w, y, bias, sums}, 5);
}

/* Sizes in the order of `shapes`: stems, depthwise convolutions with and without vectors, groups;
 * sums of one, of a few and of many parts. */
static const ampc_conv whole_shapes[] = {
    {.n = 3, 5, 2, 1, 1, {17}, {4}, {0}, {3}, {2}, {2}},
    {.n = 2, 1, 8, 1, 2, {9, 8}, {3, 5}, {0}, {1, 2}, {1, 2}, {1, 1}},
    {.n = 40, 3, 4, 1, 2, {11, 7}, {3, 2}, {0}, {2, 1}, {1, 0}, {1, 2}},
    {.n = 2, 1, 5, 1, 3, {5, 7, 6}, {2, 3, 3}, {0}, {2, 1, 3}, {1, 0, 2}, {3, 2, 1}},
    {.n = 2, 16, 16, 16, 2, {6, 5}, {3, 3}, {0}, {1, 1}, {1, 1}, {1, 1}},
    {.n = 3, 7, 7, 7, 2, {9, 9}, {7, 7}, {0}, {2, 3}, {3, 3}, {1, 1}},
    {.n = 2, 6, 12, 6, 1, {19}, {5}, {0}, {2}, {1}, {2}},
    {.n = 1, 4, 6, 2, 3, {3, 4, 4}, {3, 1, 2}, {0}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}},
    {.n = 5, 12, 8, 4, 2, {5, 7}, {3, 2}, {0}, {2, 3}, {1, 1}, {1, 2}},
};

static void check_whole_shapes(Stand *s)
{
  static const ampc_dtype types[] = {AMPC_F16, AMPC_F32, AMPC_BF16};
  for (size_t i = 0; i < sizeof whole_shapes / sizeof *whole_shapes; i++)
    for (int kind = AMPC_CONV_FORWARD; kind <= AMPC_CONV_WEIGHT; kind++)
      for (int more = 0; more < 2; more++) { /* `more`: a bias, or sums added to f32 */
        ampc_conv d = whole_shapes[i];
        if (kind == AMPC_CONV_DATA && more) continue;
        d.kind = (ampc_conv_kind)kind;
        d.x_type = d.w_type = d.y_type = d.bias_type = types[(i + (size_t)kind) % 3];
        d.has_bias = kind == AMPC_CONV_FORWARD && more;
        d.accumulate = kind == AMPC_CONV_WEIGHT && more;
        if (d.accumulate) d.w_type = AMPC_F32;
        check_whole(s, d);
      }
}

/* n, c, k, groups, spatial, in, kernel, out (see check_kernel), stride, pad, dilation */
static const ampc_conv shapes[] = {
    {.n = 3, 9, 2, 1, 1, {17}, {4}, {0}, {3}, {2}, {2}},
    {.n = 2, 7, 4, 1, 2, {7, 6}, {3, 2}, {0}, {2, 1}, {1, 0}, {1, 2}},
    {.n = 2, 3, 4, 1, 3, {5, 7, 6}, {2, 3, 3}, {0}, {2, 1, 3}, {1, 0, 2}, {3, 2, 1}},
    {.n = 1, 12, 4, 2, 3, {3, 2, 4}, {3, 1, 2}, {0}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}},
    /* vectors of 8, 4 and 2 channels, with and without groups */
    {.n = 2, 16, 8, 1, 2, {6, 5}, {3, 3}, {0}, {1, 1}, {1, 1}, {1, 1}},
    {.n = 2, 16, 32, 2, 2, {5, 7}, {3, 2}, {0}, {2, 3}, {1, 1}, {1, 2}},
    {.n = 3, 12, 4, 1, 1, {9}, {3}, {0}, {2}, {1}, {1}},
    {.n = 1, 12, 20, 2, 3, {4, 3, 5}, {2, 2, 3}, {0}, {1, 2, 2}, {1, 1, 0}, {1, 1, 1}},
};

int main(void)
{
  static const ampc_dtype types[] = {AMPC_F32, AMPC_F16, AMPC_BF16};
  Stand s = stand_open();
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int t = 0; t < 3; t++)
      for (int kind = AMPC_CONV_FORWARD; kind <= AMPC_CONV_DATA; kind++) {
        ampc_conv d = shapes[i];
        d.kind = (ampc_conv_kind)kind;
        d.x_type = d.w_type = d.y_type = types[t];
        check_kernel(&s, d);
      }
  check_whole_shapes(&s);
  compile_destroy(s.c);
  return check_done();
}
