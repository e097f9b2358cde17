/* Ops with a frame of their own: templates/<op>.cu with its holes filled, and the kernels of
 * convolutions. templates/README.md says what holes and marks there are:
 *   GRID_LOOP($index, i, $count) {          becomes  GRID_LOOP(int, i, 4096) {
 *   @copy16      copy16[i] = to_f16(w);     stands only where the kernel has an argument copy16 */
#include "compiler/base/embedded.h"
#include "compiler/base/user_text.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/param_parts.h"
#include "compiler/graph/ranges.h"
#include "runtime/plan/conv_columns.h"
#include "runtime/plan/conv_sizes.h"
#include "kernel_parts.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>

typedef struct Template {
  Kernel *k;
  const Node *n;
  const char *file;               /* "templates/metric.cu" */
  const Convolution *convolution; /* whose columns these are, or NULL */
  ampc_conv_kind asked;           /* as planned; here a gradient of images is a convolution of dy */
  ConvColumns columns;            /* of it */
  int64_t count;                  /* elements that the kernel walks */
  WindowWalk windows;             /* of an op of windows */
  Chain chain;                    /* its input whose element i is at hand */
  LoopShape shape;                /* of that */
} Template;

static bool has_argument(const Template *t, const char *name, size_t n)
{
  for (uint32_t i = 0; i < t->k->args.n; i++) {
    const char *have = t->k->arg_names[i];
    if (strlen(have) == n && memcmp(have, name, n) == 0) return true;
  }
  return false;
}

static const Optimizer *own_optimizer(const Template *t)
{
  return &t->k->g->optimizers.at[attr_int(t->n, "optimizer")];
}

static const ParamGroup *own_group(const Template *t)
{
  return &own_optimizer(t)->groups.at[attr_int(t->n, "group")];
}

/* Each group's update kernel has a learning rate, and the state has room to show one: that of the
 * first group that has parameters. */
static bool is_first_group(const Template *t)
{
  const Optimizer *o = own_optimizer(t);
  uint32_t first = 0;
  while (!o->groups.at[first].count) first++;
  return attr_int(t->n, "group") == first;
}

/* Inputs of the signature that are present: `@weight` stands only where the op was given a
 * weight. */
static bool has_input(const Template *t, const char *name, size_t n)
{
  const OpSignature *sig = &op_of(t->n)->signature;
  for (uint32_t i = 0; i < sig->n_inputs; i++)
    if (is(name, n, sig->input[i].name)) return t->n->in[i].id != 0;
  return false;
}

/* Of updates: a flag that the group of parameters has, or a word of the optimizer's row. */
static bool is_chosen(const Template *t, const char *word, size_t n)
{
  uint32_t place;
  if (!attr_find(op_of(t->n), "group", &place)) return false;
  return optimizer_holds(own_optimizer(t), own_group(t), word, n);
}

/* Where a stride leaves pixels out, not all of x were seen. */
static bool is_strided(const Template *t)
{
  const ampc_conv *d = &t->convolution->desc;
  bool strided = false;
  for (uint32_t i = 0; i < d->spatial; i++) strided = strided || d->stride[i] > 1;
  return strided && t->asked == AMPC_CONV_DATA;
}

/* A result of an op of windows, which says by the name `argmax` what it is. */
static Value windows_result(const Template *t, bool argmax)
{
  for (uint32_t i = 0; i < t->k->group->n; i++) {
    const Node *n = ir_node(t->k->g, t->k->group->nodes[i]);
    uint32_t at;
    bool is_argmax = attr_find(op_of(n), "argmax", &at) && n->attr[at].i;
    if (op_has(n, T_windows) && is_argmax == argmax) return t->k->group->nodes[i];
  }
  return (Value){0};
}

/* The words that a marked line may begin with, see templates/README.md: flags, then names of
 * arguments and inputs. */
static bool holds(const Template *t, const char *word, size_t n)
{
  bool stands;
  if (op_has(t->n, T_views) && attention_holds(t->k, word, n, &stands)) return stands;
  if (is(word, n, "deep")) return t->convolution->desc.spatial == 3;
  if (is(word, n, "flat")) return t->convolution->desc.spatial < 3;
  if (is(word, n, "groups")) return t->convolution->desc.groups > 1;
  if (is(word, n, "taps")) return conv_taps(&t->convolution->desc) > 1;
  if (is(word, n, "vectors")) return t->columns.vector > 1;
  if (is(word, n, "depthwise")) return ampc_conv_is_depthwise(&t->convolution->desc);
  if (is(word, n, "grouped")) /* groups that are no depthwise convolution */
    return t->convolution->desc.groups > 1 && !ampc_conv_is_depthwise(&t->convolution->desc);
  if (is(word, n, "biased")) return t->convolution->desc.has_bias;
  if (is(word, n, "joined")) return t->columns.joined > 0;
  if (is(word, n, "accumulate")) return t->convolution->desc.accumulate;
  if (is(word, n, "back")) return t->asked == AMPC_CONV_DATA;
  if (is(word, n, "strided")) return is_strided(t);
  if (op_has(t->n, T_windows) && is(word, n, "argmax")) return windows_result(t, true).id != 0;
  if (op_has(t->n, T_windows) && is(word, n, "value")) return windows_result(t, false).id != 0;
  if (is(word, n, "integers")) return !dtype_is_float(ir_in(t->k->c, t->n, 0)->dtype);
  if (is(word, n, "ceil")) return attr_int(t->n, "ceil");
  if (is(word, n, "dilated")) return attr_int(t->n, "dil0") > 1 || attr_int(t->n, "dil1") > 1;
  if (is(word, n, "loss")) return t->k->g->metrics.at[attr_int(t->n, "metric")].is_loss;
  if (is(word, n, "first_group")) return is_first_group(t);
  if (is(word, n, "acts")) return attr_int(t->n, "acts");
  if (is(word, n, "added")) return t->n->place.space == AMPC_GRAD;
  if (is(word, n, "unscaled")) return !t->k->g->scaler.on;
  if (is(word, n, "replay")) return t->k->g->scaler.replay;
  if (is(word, n, "looks")) return attr_int(t->n, "looks");
  if (is(word, n, "scales")) return t->k->g->scaler.per_optimizer;
  if (is(word, n, "micro")) return t->k->g->blocks.at[t->n->block].accumulate > 1;
  return has_argument(t, word, n) || has_input(t, word, n) || is_chosen(t, word, n);
}

/* The text of $name for an input: its single value, or its element at i where it has several. */
static const char *input_value(const Template *t, uint32_t i)
{
  bool walked = ir_elements(ir_node(t->k->g, t->n->in[i])) > 1;
  Operand o = load_operand(t->k, t->n->in[i], walked ? "i" : "0");
  if (op_has(t->n, T_assigns)) return stored(t->k, ir_node(t->k->g, t->n->in[i])->dtype, o.text);
  return is_along(t->n) ? o.text : as_real(t->k, o).text;
}

static const char *number_text(const Template *t, long long v)
{
  return arena_printf(t->k->c->arena, "%lld", v);
}

/* Results that blocks leave, one each: the op's own, or those that it joins. */
static int64_t partials_of(const Template *t)
{
  return op_has(t->n, T_partials) ? t->n->dim[0] : ir_in(t->k->c, t->n, 0)->dim[0];
}

/* What is cut into so many parts: how many elements one has, a multiple of 16, the accumulators of
 * a reduction on the CPU. */
static int64_t part_size(const Template *t)
{
  int64_t n = partials_of(t), part = (t->count + n - 1) / n;
  return (part + 15) / 16 * 16;
}

/* Sizes of pools and their like: $h $w $c of the image, $oh $ow of its windows. A gradient has the
 * image as its result and the windows as its input. */
static const char *image_text(const Template *t, const char *word, size_t n)
{
  bool back = op_of(t->n)->gradient == grad_none;
  const Node *in = ir_node(t->k->g, t->n->in[0]);
  assert(t->n->layout == LAYOUT_channels_last && in->layout == LAYOUT_channels_last);
  ImageDims d = ir_image_dims(back ? t->n : in), of = ir_image_dims(back ? in : t->n);
  if (is(word, n, "c")) return number_text(t, d.c);
  if (is(word, n, "h")) return number_text(t, d.size[0]);
  if (is(word, n, "w")) return number_text(t, d.size[1]);
  if (is(word, n, "oh")) return number_text(t, of.size[0]);
  if (is(word, n, "ow")) return number_text(t, of.size[1]);
  if (is(word, n, "pixels")) return number_text(t, d.n * ir_pixels(&d));
  if (is(word, n, "windows")) return number_text(t, of.n * ir_pixels(&of));
  return NULL;
}

static const char *windows_result_text(const Template *t, Value v, const char *word, size_t n)
{
  const Kernel *k = t->k;
  uint32_t argument = pointer_of(k, v);
  if (is(word, n, "out")) return k->arg_names[argument];
  if (is(word, n, "type")) return element_type(&k->args.at[argument]);
  return stored(k, ir_node(k->g, v)->dtype, "result");
}

/* Of an op of windows: $vector; $value_out, $value_type, $value_result and the same of argmax;
 * $tile0 and $tile1, $tiles of all images, $tiles_h $tiles_w of one; $reach0, how many windows
 * before the last one the first lies that touches a tile. */
static const char *windows_text(const Template *t, const char *word, size_t n)
{
  const WindowWalk *w = &t->windows;
  if (is(word, n, "vector")) return number_text(t, w->vector);
  if (n > 6 && memcmp(word, "value_", 6) == 0)
    return windows_result_text(t, windows_result(t, false), word + 6, n - 6);
  if (n > 7 && memcmp(word, "argmax_", 7) == 0)
    return windows_result_text(t, windows_result(t, true), word + 7, n - 7);
  if (is(word, n, "tiles")) return number_text(t, ir_image_dims(t->n).n * w->all[0] * w->all[1]);
  if (is(word, n, "tiles_h")) return number_text(t, w->all[0]);
  if (is(word, n, "tiles_w")) return number_text(t, w->all[1]);
  for (uint32_t i = 0; i < 2; i++) {
    if (is(word, n, i ? "tile1" : "tile0")) return number_text(t, w->tile[i]);
    if (!is(word, n, i ? "reach1" : "reach0")) continue;
    int64_t kernel = attr_int(t->n, i ? "kernel1" : "kernel0");
    int64_t span = (kernel - 1) * attr_int(t->n, i ? "dil1" : "dil0");
    return number_text(t, span / attr_int(t->n, i ? "stride1" : "stride0"));
  }
  return NULL;
}

/* Columns have the type of the images, which are moved as they are. */
static const char *columns_type(ampc_dtype type)
{
  return type == AMPC_F16 ? "f16" : type == AMPC_BF16 ? "bf16" : "real";
}

/* "28 * 28": pixels of an image, or taps. A convolution over one axis is written as one over two,
 * the first of size 1. */
static const char *sizes_text(const Template *t, const int64_t *size)
{
  const ampc_conv *d = &t->convolution->desc;
  const char *text = d->spatial == 1 ? "1 * " : "";
  for (uint32_t i = 0; i < d->spatial; i++)
    text = arena_printf(t->k->c->arena, "%s%s%lld", text, i ? " * " : "", (long long)size[i]);
  return text;
}

static const char axis_names[] = "dhw";

/* $h, $kh, $oh, $stride_h, $pad_h, $dil_h: a number for an axis, which the last letter names. */
static const char *axis_text(const Template *t, const char *word, size_t n)
{
  const ampc_conv *d = &t->convolution->desc;
  const struct {
    const char *prefix;
    const int64_t *value;
    int64_t absent; /* the value along an axis that the images lack */
  } kinds[] = {{"", d->in, 1},      {"k", d->kernel, 1},
               {"o", d->out, 1},    {"stride_", d->stride, 1},
               {"pad_", d->pad, 0}, {"dil_", d->dilation, 1}};
  const char *axis = strchr(axis_names, word[n - 1]);
  if (!axis) return NULL;
  int64_t missing = AMPC_MAX_SPATIAL - d->spatial, i = axis - axis_names - missing;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    if (is(word, n - 1, kinds[k].prefix))
      return number_text(t, i < 0 ? kinds[k].absent : kinds[k].value[i]);
  return NULL;
}

/* The place along axis i of what `name` counts in row-major order: "at / 28", "tap % 3". */
static const char *place_text(const Template *t, const char *name, const int64_t *size, uint32_t i)
{
  Arena *a = t->k->c->arena;
  uint32_t axes = t->convolution->desc.spatial;
  const char *text = name;
  if (i + 1 < axes) text = arena_printf(a, "%s / %lld", name, (long long)size[axes - 1]);
  if (i + 2 < axes)
    text = arena_printf(a, "%s / (%lld * %lld)", name, (long long)size[1], (long long)size[2]);
  return i ? arena_printf(a, "%s %% %lld", text, (long long)size[i]) : text;
}

/* "at / 28 * 2 - 1 + tap / 3": along an axis, the pixel that a tap sees from pixel `at`; of a
 * gradient of images the other way round, not yet divided by the stride. */
static const char *seen_text(const Template *t, const char *axis)
{
  const ampc_conv *d = &t->convolution->desc;
  Arena *a = t->k->c->arena;
  int64_t place = strchr(axis_names, *axis) - axis_names,
          i = place - (AMPC_MAX_SPATIAL - d->spatial);
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

/* What is read, weights, the result, and the bias; of a gradient of weights images, dy, partial
 * sums and the result. */
static const char *whole_arguments(const Template *t)
{
  Arena *a = t->k->c->arena;
  const ampc_conv *d = &t->convolution->desc;
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

static const char *columns_arguments(const Template *t)
{
  if (t->columns.whole) return whole_arguments(t);
  const char *type = columns_type(t->convolution->desc.x_type);
  const char *text = arena_printf(t->k->c->arena,
                                  "const %s *__restrict__ x, %s *__restrict__ columns", type, type);
  if (t->asked != AMPC_CONV_DATA) return text;
  type = columns_type(t->convolution->desc.w_type);
  return arena_printf(t->k->c->arena, "%s, const %s *__restrict__ w, %s *__restrict__ turned", text,
                      type, type);
}

/* "from_f16", "to_bf16"; nothing where numbers lie as they are. */
static const char *conversion_text(const Template *t, const char *what, ampc_dtype type)
{
  if (type == AMPC_F32) return "";
  return arena_printf(t->k->c->arena, "%s_%s", what, columns_type(type));
}

/* $from_x, $to_y, ...; rows and columns of what whole convolutions walk: Note [whole]. */
static const char *whole_text(const Template *t, const char *word, size_t n)
{
  const ampc_conv *d = &t->convolution->desc;
  const ConvColumns *s = &t->columns;
  bool depthwise = ampc_conv_is_depthwise(d);
  int64_t row = depthwise ? d->k : d->k / d->groups, pixels = d->n * conv_out_pixels(d);
  if (is(word, n, "from_x")) return conversion_text(t, "from", d->x_type);
  if (is(word, n, "from_w")) return conversion_text(t, "from", d->w_type);
  if (is(word, n, "from_y")) return conversion_text(t, "from", d->y_type);
  if (is(word, n, "from_bias")) return conversion_text(t, "from", d->bias_type);
  if (is(word, n, "to_y")) return conversion_text(t, "to", d->y_type);
  if (is(word, n, "to_w")) return conversion_text(t, "to", d->w_type);
  if (is(word, n, "x_type")) return columns_type(d->x_type);
  if (is(word, n, "y_type")) return columns_type(d->y_type);
  if (is(word, n, "channel")) /* of those that the thread's `of` counts */
    return d->c == d->groups
               ? "0"
               : arena_printf(t->k->c->arena, "of %% %lld", (long long)(d->c / d->groups));
  if (is(word, n, "row")) return number_text(t, row);
  if (is(word, n, "each")) return number_text(t, s->each);
  if (is(word, n, "rows")) return number_text(t, pixels / s->each * d->k / row);
  if (is(word, n, "pixels")) return number_text(t, pixels);
  if (is(word, n, "k")) return number_text(t, d->k);
  if (is(word, n, "sum_rows")) return number_text(t, s->sums * conv_weights(d) / row);
  if (is(word, n, "part_rows")) return number_text(t, conv_weights(d) / row);
  if (is(word, n, "part_pixels")) return number_text(t, s->pixels);
  if (is(word, n, "sums")) return number_text(t, s->sums);
  if (is(word, n, "join")) return number_text(t, s->join);
  if (is(word, n, "joined")) return number_text(t, s->joined);
  if (is(word, n, "join_elements")) return number_text(t, s->joined * conv_weights(d));
  if (is(word, n, "sums_elements")) return number_text(t, s->sums * conv_weights(d));
  if (is(word, n, "last_sums")) return number_text(t, s->joined ? s->joined : s->sums);
  return NULL;
}

static const char *columns_text(const Template *t, const char *word, size_t n)
{
  const ampc_conv *d = &t->convolution->desc;
  if (is(word, n, "name")) return kernel_name(t->k->c, t->k->index);
  if (is(word, n, "arguments")) return columns_arguments(t);
  if (is(word, n, "type")) return columns_type(d->x_type);
  if (is(word, n, "vector")) return number_text(t, t->columns.vector);
  if (is(word, n, "c")) return number_text(t, d->c);
  if (is(word, n, "channels")) return number_text(t, d->c / d->groups);
  if (is(word, n, "filters")) return number_text(t, d->k / d->groups);
  if (is(word, n, "groups")) return number_text(t, d->groups);
  if (is(word, n, "weights")) return number_text(t, conv_weights(d));
  if (is(word, n, "cells")) return number_text(t, t->count / (d->c / d->groups));
  if (is(word, n, "taps")) return sizes_text(t, d->kernel);
  if (is(word, n, "out_pixels")) return sizes_text(t, d->out);
  if (n == 6 && memcmp(word, "seen_", 5) == 0) return seen_text(t, word + 5);
  const char *whole = t->columns.whole ? whole_text(t, word, n) : NULL;
  return whole ? whole : axis_text(t, word, n);
}

static const char *attr_text(const Template *t, uint32_t i)
{
  bool number = op_of(t->n)->signature.attr[i].kind == ATTR_float;
  return number ? real_text(t->k, t->n->attr[i].f) : number_text(t, t->n->attr[i].i);
}

/* Of ops that walk a group by its parameters: $parts, $params, and $part, the elements of one. */
static const char *parts_text(const Template *t, const char *word, size_t n)
{
  uint32_t place;
  if (!attr_find(op_of(t->n), "group", &place)) return NULL;
  ParamParts parts =
      param_parts(t->k->g, attr_int(t->n, "optimizer"), (uint32_t)attr_int(t->n, "group"));
  if (is(word, n, "parts")) return number_text(t, parts.n);
  if (is(word, n, "params")) return number_text(t, parts.params);
  if (is(word, n, "part")) return number_text(t, parts.size);
  return NULL;
}

/* The text for $word: words that every template knows, then inputs, then attributes of the op. */
static const char *hole_text(const Template *t, const char *word, size_t n)
{
  const Kernel *k = t->k;
  const char *column = t->convolution ? columns_text(t, word, n) : NULL;
  if (column) return column;
  if (is(word, n, "name")) return kernel_name(k->c, k->index);
  if (is(word, n, "arguments")) return argument_list(k);
  if (is(word, n, "index")) return k->index_type;
  const char *attention = op_has(t->n, T_views) ? attention_text(k, word, n) : NULL;
  if (attention) return attention;
  if (is(word, n, "count")) return number_text(t, t->count);
  if (is(word, n, "samples")) return number_text(t, attr_int(t->n, "samples"));
  const char *parts = parts_text(t, word, n);
  if (parts) return parts;
  if (is(word, n, "optimizers")) return number_text(t, k->g->optimizers.n);
  if (is(word, n, "partials")) return number_text(t, partials_of(t));
  if (is(word, n, "part")) return number_text(t, part_size(t));
  if (is(word, n, "fields")) return number_text(t, RANGE_FIELDS);
  if (is(word, n, "out")) return pointer_name(k, k->group->anchor);
  if (is(word, n, "result")) return stored(k, t->n->dtype, "result");
  const char *size = op_image_inputs(op_of(t->n)) ? image_text(t, word, n) : NULL;
  if (!size) size = pick_text(k, t->n, word, n);
  if (size) return size;
  const char *along = along_text(k, t->n, word, n);
  if (along) return along;
  bool windows = op_has(t->n, T_windows);
  const char *walk = windows ? windows_text(t, word, n) : NULL;
  if (walk) return walk;
  const OpSignature *sig = &op_of(t->n)->signature;
  for (uint32_t i = 0; i < sig->n_inputs; i++)
    if (is(word, n, sig->input[i].name))
      return windows ? windows_value(k, &t->chain, i) : input_value(t, i);
  for (uint32_t i = 0; i < sig->n_attrs; i++)
    if (is(word, n, sig->attr[i].name)) return attr_text(t, i);
  const char *what = arena_printf(k->c->arena, "nothing fills $%.*s of %s", (int)n, word, t->file);
  kernel_bug(k, k->group->anchor, what);
}

static size_t word_length(const char *s, const char *end)
{
  size_t n = 0;
  while (s + n < end && (isalnum((unsigned char)s[n]) || s[n] == '_')) n++;
  return n;
}

/* `$operands x` and `$values x` in an op of windows: lines of their own, see kernel_windows.c. */
static bool put_operands(Template *t, const char *s, const char *end)
{
  Kernel *k = t->k;
  const OpSignature *sig = &op_of(t->n)->signature;
  const char *from = s;
  while (s < end && *s == ' ') s++;
  size_t n = *s == '$' ? word_length(s + 1, end) : 0;
  bool operands = is(s + 1, n, "operands");
  if (!operands && !is(s + 1, n, "values")) return false;
  const char *name = s + n + 2;
  int outside = k->p->indent;
  uint32_t input = 0;
  while (!is(name, (size_t)(end - name), sig->input[input].name)) input++;
  k->p->indent = (int)(s - from) / 2 + (k->is_part ? outside - 1 : 0);
  if (operands)
    windows_put_operands(k, &t->chain, &t->shape, input, t->windows.vector);
  else
    windows_put_values(&t->chain);
  k->p->indent = outside;
  return true;
}

static void put_parameter(const Parameter *p, int64_t elements, int64_t first_part, void *data)
{
  const Template *t = data;
  int64_t at = p->offset - own_group(t)->first;
  EMIT(t->k->p, "    %lld, %lld, %lld, // %s\n", (long long)first_part, (long long)at,
       (long long)(at + elements), comment_text(t->k->c->arena, p->path, strlen(p->path), 60));
}

/* `$parameters`, a line of its own: of each parameter of the group the first of its parts, its
 * first element and the one behind its last; then the number of parts. */
static bool put_parameters(Template *t, const char *s, const char *end)
{
  while (s < end && *s == ' ') s++;
  if (*s != '$' || !is(s + 1, (size_t)(end - s) - 1, "parameters")) return false;
  int64_t optimizer = attr_int(t->n, "optimizer"), group = attr_int(t->n, "group");
  ParamParts parts = param_parts(t->k->g, optimizer, (uint32_t)group);
  param_parts_each(t->k->g, optimizer, (uint32_t)group, &parts, put_parameter, t);
  EMIT(t->k->p, "    %lld\n", (long long)parts.n);
  return true;
}

/* One line of a template: its mark decides whether it stands, its holes are filled. */
static void put_line(Template *t, uint32_t number, const char *s, const char *end)
{
  if (put_operands(t, s, end) || put_parameters(t, s, end)) return;
  while (*s == '@') { /* @word and @!word: the line stands where all of them hold */
    bool wanted = s[1] != '!';
    s += wanted ? 1 : 2;
    size_t n = word_length(s, end);
    if (holds(t, s, n) != wanted) return;
    s += n;
  }
  Text line;
  text_init(&line, t->k->c->arena);
  for (int i = 1; t->k->is_part && i < t->k->p->indent; i++) text_puts(&line, "  ");
  while (s < end) {
    size_t n = *s == '$' ? word_length(s + 1, end) : 0;
    if (n)
      text_puts(&line, hole_text(t, s + 1, n));
    else
      text_add(&line, s, 1);
    s += 1 + n;
  }
  if (strncmp(line.at, "__global__", 10) == 0) /* a long list of arguments */
    printer_wrap(t->k->p, t->file, (int)number, "    ", "%s\n", line.at);
  else {
    const char *text = fold_line(t->k, line.at);
    printer_text(t->k->p, t->file, number, text, strlen(text));
  }
  if (!line.n) EMIT(t->k->p, "\n");
}

/* The kernel's name and its braces, which a part of a launch does not have. */
static bool is_frame_line(const char *s, const char *end)
{
  return end > s && (*s == '{' || *s == '}' || *s == '_');
}

/* Elements that the frame's loop over i has; most templates have loops of their own. */
static int64_t walked(const Template *t)
{
  int64_t range = node_range(t->k->g, t->n);
  if (range >= 0) return range;
  if (op_has(t->n, T_running) || t->n->op == OP_statistics || t->n->op == OP_check_index ||
      t->n->op == OP_ranges)
    return ir_elements(ir_node(t->k->g, t->n->in[0]));
  return 1;
}

/* The template without the comment that it opens with: the kernel has its own header. */
static void put_template(Template *t, const char *name)
{
  const EmbeddedFile *file = embedded_find(name);
  assert(file);
  t->file = arena_printf(t->k->c->arena, "templates/%s", name);
  uint32_t number = 1;
  bool head = true;
  for (const char *s = file->text, *end = s + file->size; s < end; number++) {
    const char *stop = memchr(s, '\n', (size_t)(end - s));
    if (!stop) stop = end;
    if (!head && !(t->k->is_part && is_frame_line(s, stop))) put_line(t, number, s, stop);
    if (head && stop - s >= 2 && memcmp(stop - 2, "*/", 2) == 0) head = false;
    s = stop + 1;
  }
}

/* By name, as it is or as a hole ($out); an input as its own hole: lr_at is $lr. */
bool template_uses(const Kernel *k, const char *name)
{
  const char *op = op_of(ir_node(k->g, k->group->anchor))->name;
  const EmbeddedFile *file = embedded_find(arena_printf(k->c->arena, "%s.cu", op));
  size_t n = strlen(name), input = n > 3 && strcmp(name + n - 3, "_at") == 0 ? n - 3 : 0;
  for (const char *s = file->text, *end = s + file->size; s < end; s++) {
    size_t hole = *s == '$', size = word_length(s + hole, end);
    if (size == (hole && input ? input : n) && memcmp(s + hole, name, size) == 0) return true;
    s += hole + size - (size > 0);
  }
  return false;
}

void emit_file(Kernel *k)
{
  Template t = {.k = k, .n = ir_node(k->g, k->group->anchor)};
  t.count = walked(&t);
  if (op_has(t.n, T_windows)) t.windows = window_walk(k->c, k->group);
  put_template(&t, arena_printf(k->c->arena, "%s.cu", op_of(t.n)->name));
}

void emit_columns(Kernel *k, const Convolution *v)
{
  bool real64 = k->c->options.real64;
  Convolution of_columns = *v;
  ampc_conv *d = &of_columns.desc;
  *d = ampc_conv_of_columns(&v->desc);
  Template t = {.k = k,
                .n = ir_node(k->g, k->group->anchor),
                .convolution = &of_columns,
                .asked = v->desc.kind,
                .columns = ampc_conv_columns(&v->desc, real64),
                .count = ampc_conv_kernel_elements(&v->desc, real64)};
  bool large = d->n * conv_in_elements(d) > INT_LIMIT || conv_weights(d) > INT_LIMIT ||
               d->n * conv_out_pixels(d) * d->c * conv_taps(d) > INT_LIMIT;
  k->index_type = large ? "long long" : "int";
  put_template(&t, !t.columns.whole              ? "im2col.cu"
                   : t.asked == AMPC_CONV_WEIGHT ? "conv_whole_weight.cu"
                                                 : "conv_whole.cu");
}
