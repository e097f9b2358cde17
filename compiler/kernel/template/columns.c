/* The texts that replace words in the templates of convolutions (im2col.cu, conv_whole.cu,
 * conv_whole_weight.cu: see words.def), and the kernels of convolutions. */
#include "template.h"
#include "runtime/plan/conv_sizes.h"

/* True if this is a gradient of images with a stride. Then not every tap falls on a pixel of dy. */
bool is_strided(const Template *t)
{
  const ampc_conv *d = t->conv;
  bool strided = false;
  for (uint32_t i = 0; i < d->spatial; i++) strided = strided || d->stride[i] > 1;
  return strided && t->asked == AMPC_CONV_DATA;
}

/* Returns the C type of the elements in memory. im2col copies images unchanged, so its columns have
 * the type of the images. */
const char *columns_type(ampc_dtype type)
{
  return ampc_type_of(type)->kernel;
}

/* Returns "28 * 28": the number of pixels of an image, or of taps. A convolution over one axis is
 * printed as one over two, the first of size 1. */
const char *sizes_text(const Template *t, const int64_t *size)
{
  const ampc_conv *d = t->conv;
  const char *text = d->spatial == 1 ? "1 * " : "";
  for (uint32_t i = 0; i < d->spatial; i++)
    text = arena_printf(t->k->c->arena, "%s%s%lld", text, i ? " * " : "", (long long)size[i]);
  return text;
}

/* Returns the index of an axis. `axis` counts from the last one, which is 1. The result is below 0
 * if images lack this axis. */
static int axis_place(const ampc_conv *d, uint32_t axis)
{
  return (int)d->spatial - (int)axis;
}

int64_t axis_size(const Template *t, const int64_t *size, uint32_t axis)
{
  int i = axis_place(t->conv, axis);
  return i < 0 ? 1 : size[i];
}

/* Returns the position along axis i of `name`, a row-major position: "at / 28", "tap % 3". */
static const char *place_text(const Template *t, const char *name, const int64_t *size, uint32_t i)
{
  Arena *a = t->k->c->arena;
  uint32_t axes = t->conv->spatial;
  const char *text = name;
  if (i + 1 < axes) text = arena_printf(a, "%s / %lld", name, (long long)size[axes - 1]);
  if (i + 2 < axes)
    text = arena_printf(a, "%s / (%lld * %lld)", name, (long long)size[1], (long long)size[2]);
  return i ? arena_printf(a, "%s %% %lld", text, (long long)size[i]) : text;
}

/* Returns "at / 28 * 2 - 1 + tap / 3": the pixel along an axis that a tap reads for pixel `at` of
 * the result. For a gradient of images this is the pixel of dy, not yet divided by the stride. */
const char *seen_text(const Template *t, uint32_t axis)
{
  const ampc_conv *d = t->conv;
  Arena *a = t->k->c->arena;
  int i = axis_place(d, axis);
  bool back = t->asked == AMPC_CONV_DATA;
  if (i < 0) return "0";
  const char *text = place_text(t, "at", d->out, (uint32_t)i);
  if (!back && d->stride[i] > 1) text = arena_printf(a, "%s * %lld", text, (long long)d->stride[i]);
  if (d->pad[i]) text = arena_printf(a, "%s %c %lld", text, back ? '+' : '-', (long long)d->pad[i]);
  if (d->kernel[i] == 1) return text;
  text = arena_printf(a, "%s %c %s", text, back ? '-' : '+',
                      place_text(t, "tap", d->kernel, (uint32_t)i));
  return d->dilation[i] == 1 ? text : arena_printf(a, "%s * %lld", text, (long long)d->dilation[i]);
}

/* Returns the parameters of the kernel: the input, the weights, the result and the bias. For a
 * gradient of weights: the images, dy, the partial sums and the result. */
const char *whole_arguments(const Template *t)
{
  Arena *a = t->k->c->arena;
  const ampc_conv *d = t->conv;
  const char *x = columns_type(d->x_type), *y = columns_type(d->y_type);
  const char *w = columns_type(d->w_type);
  if (t->asked == AMPC_CONV_WEIGHT)
    return arena_printf(a,
                        "const %s *__restrict__ x, const %s *__restrict__ dy, "
                        "real *__restrict__ sums, %s *__restrict__ dw",
                        x, y, w);
  const char *text = arena_printf(
      a, "const %s *__restrict__ x, const %s *__restrict__ w, %s *__restrict__ y", x, w, y);
  if (!d->has_bias) return text;
  return arena_printf(a, "%s, const %s *__restrict__ bias", text, columns_type(d->bias_type));
}

const char *columns_arguments(const Template *t)
{
  const char *type = columns_type(t->conv->x_type);
  const char *text = arena_printf(t->k->c->arena,
                                  "const %s *__restrict__ x, %s *__restrict__ columns", type, type);
  if (t->asked != AMPC_CONV_DATA) return text;
  type = columns_type(t->conv->w_type);
  return arena_printf(t->k->c->arena, "%s, const %s *__restrict__ w, %s *__restrict__ turned", text,
                      type, type);
}

const char *channel_text(const Template *t)
{
  const ampc_conv *d = t->conv;
  if (d->c == d->groups) return "0";
  return arena_printf(t->k->c->arena, "of %% %lld", (long long)(d->c / d->groups));
}

int64_t whole_row(const ampc_conv *d)
{
  return ampc_conv_is_depthwise(d) ? d->k : d->k / d->groups;
}

int64_t whole_pixels(const ampc_conv *d)
{
  return d->n * conv_out_pixels(d);
}

/* ---- the kernels ---- */

const char *const columns_file[COLUMNS_FILES] = {"im2col.cu", "conv_whole.cu",
                                                 "conv_whole_weight.cu"};

void emit_columns(Kernel *k, const ampc_conv *asked)
{
  bool real64 = k->c->options.real64;
  const ampc_conv d = ampc_conv_of_columns(asked);
  Template t = {.k = k,
                .n = ir_node(k->g, k->group->anchor),
                .conv = &d,
                .asked = asked->kind,
                .columns = ampc_conv_columns(asked, real64),
                .count = ampc_conv_kernel_elements(asked, real64)};
  bool large = d.n * conv_in_elements(&d) > INT_LIMIT || conv_weights(&d) > INT_LIMIT ||
               d.n * conv_out_pixels(&d) * d.c * conv_taps(&d) > INT_LIMIT;
  k->index_type = large ? "long long" : "int";
  uint32_t file = t.columns.whole ? 1 + (t.asked == AMPC_CONV_WEIGHT) : 0;
  put_template(&t, embedded_find(columns_file[file]));
}
