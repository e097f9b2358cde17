/* The kernels between images and columns (templates/im2col.cu, col2im.cu) over 1, 2 and 3 axes,
 * against plain loops. Their text is that of CUDA, compiled as C; numbers are small integers, so
 * every type and order of sums gives the same. */
#include "check.h"
#include <dlfcn.h>
#include "compiler/driver.h"
#include "compiler/emit/emit.h"
#include "compiler/emit/kernel_parts.h"
#include "compiler/graph/ir.h"
#include "runner/jit/jit.h"
#include "runtime/base/convert.h"
#include "runtime/plan/conv_columns.h"
#include "runtime/plan/conv_sizes.h"

static const char job[] = "model net = Conv2d(2, 3, kernel_size=3)\n"
                          "infer f(x: f32[1, 2, 5, 5]) { return net(x) }\n";

/* A compiled job for CUDA and its one convolution, whose sizes the cases replace. */
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
    if (group_is_columns(s.c, i)) s.group = i;
  MUST(s.group);
  return s;
}

static const char *type_text(ampc_dtype t)
{
  return t == AMPC_F32 ? "real" : ampc_dtype_name(t);
}

/* The kernel of a convolution of these sizes, as a library that the CPU runs. */
static void *build(Stand *s, const ampc_conv *d, const char **out_name)
{
  Compile *c = s->c;
  Convolution v = convolution_of(c, s->group);
  v.desc = *d;
  Text kernel, unit;
  Printer p;
  text_init(&kernel, c->arena);
  text_init(&unit, c->arena);
  printer_begin(&p, c, &kernel);
  Kernel k = {.p = &p, .c = c, .g = c->graph, .index = s->group};
  k.group = &k.g->groups.at[s->group];
  const char *name = kernel_name(c, s->group);
  emit_columns(&k, &v);
  bool data = d->kind == AMPC_CONV_DATA;
  text_printf(&kernel,
              "static void %s_thunk(void *const *a, unsigned block, unsigned n_blocks)\n{\n"
              "  block_index = block;\n  block_count = n_blocks;\n"
              "  %s((const %s *)a[0], (%s *)a[1]);\n}\n",
              name, name, data ? "real" : type_text(d->x_type), type_text(d->x_type));
  const char *target = c->options.target;
  c->options.target = "cpu";
  emit_unit(c, &kernel, &name, 1, &unit);
  c->options.target = target;
  void *library;
  MUST(jit_open(&unit, &name, 1, &library) == AMPC_OK);
  *out_name = name;
  return library;
}

/* The pixel of x that tap `tap` sees from pixel `out` of y; -1: padding. By coordinates, with the
 * axes in front filled up. */
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

/* What the kernel must write for input `from`. */
static void expect(const ampc_conv *d, const double *from, double *to)
{
  int64_t taps = conv_taps(d), outs = conv_out_pixels(d), ins = conv_in_pixels(d);
  for (int64_t row = 0; row < d->n * outs; row++)
    for (int64_t c = 0; c < d->c; c++)
      for (int64_t tap = 0; tap < taps; tap++) {
        int64_t column = (row * d->c + c) * taps + tap, pixel = sees(d, row % outs, tap);
        int64_t image = (row / outs * ins + pixel) * d->c + c;
        if (d->kind != AMPC_CONV_DATA)
          to[column] = pixel < 0 ? 0 : from[image];
        else if (pixel >= 0)
          to[image] += from[column];
      }
}

static void check_kernel(Stand *s, ampc_conv d)
{
  for (uint32_t i = 0; i < d.spatial; i++)
    d.out[i] = (d.in[i] + 2 * d.pad[i] - d.dilation[i] * (d.kernel[i] - 1) - 1) / d.stride[i] + 1;
  ConvColumns columns = ampc_conv_columns(&d, false);
  bool data = d.kind == AMPC_CONV_DATA;
  int64_t images = d.n * conv_in_elements(&d);
  int64_t cells = d.n * conv_out_pixels(&d) * d.c * conv_taps(&d);
  int64_t n_from = data ? cells : images, n_to = data ? images : cells;
  ampc_dtype from_type = data ? columns.type : d.x_type, to_type = data ? d.x_type : columns.type;
  MUST(!columns.direct && columns.parts == 1);
  double *numbers = calloc((size_t)n_from, sizeof *numbers);
  double *want = calloc((size_t)n_to, sizeof *want);
  char *from = calloc((size_t)n_from, 4), *to = calloc((size_t)n_to, 4);
  MUST(numbers && want && from && to);
  for (int64_t i = 0; i < n_from; i++) {
    numbers[i] = small_number(i);
    number_store(from_type, false, from, i, numbers[i]);
  }
  expect(&d, numbers, want);
  const char *name;
  void *library = build(s, &d, &name);
  ampc_cpu_kernel *run = jit_find(library, name);
  MUST(run);
  for (unsigned b = 0; b < 3; b++) run((void *const[]){from, to}, b, 3);
  int64_t wrong = 0;
  for (int64_t i = 0; i < n_to; i++) wrong += number_load(to_type, false, to, i) != want[i];
  CHECK_MSG(wrong == 0, "kind %d, %u axes, %s: %lld of %lld elements are wrong", d.kind, d.spatial,
            ampc_dtype_name(d.x_type), (long long)wrong, (long long)n_to);
  dlclose(library);
  free(numbers);
  free(want);
  free(from);
  free(to);
}

/* n, c, k, groups, spatial, in, kernel, out (see check_kernel), stride, pad, dilation */
static const ampc_conv shapes[] = {
    {.n = 3, 5, 2, 1, 1, {17}, {4}, {0}, {3}, {2}, {2}},
    {.n = 2, 3, 4, 1, 2, {7, 6}, {3, 2}, {0}, {2, 1}, {1, 0}, {1, 2}},
    {.n = 2, 3, 4, 1, 3, {5, 7, 6}, {2, 3, 3}, {0}, {2, 1, 3}, {1, 0, 2}, {3, 2, 1}},
    {.n = 1, 4, 4, 2, 3, {3, 2, 4}, {3, 1, 2}, {0}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}},
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
  compile_destroy(s.c);
  return check_done();
}
