/* Shape rules of images and channels: convolutions, pools, batch norm. They read images in either
 * layout and set the layout of their input, so they hold before and after pass layout. */
#include "rules.h"
#include "compiler/graph/columns.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>
#include "common/number.h"

/* ---- shared ---- */

/* The names of an image's axes in messages. */
static const char *const axes_text[] = {"", "w", "h, w", "d, h, w"};

/* Suggests how to add the missing axis. A convolution knows its channels from its weight [out,
 * in / groups, ..]. If the size of the first axis is the number of channels, the batch axis is
 * missing. */
static void help_axis(Compile *c, const Node *n, const Node *x)
{
  bool convolves = op_of(n)->tmpl == TMPL_conv && !op_has(n, T_gives_image | T_gives_weight);
  int64_t channels = convolves ? ir_in(c, n, 1)->dim[1] : 0;
  if (__builtin_mul_overflow(channels, convolves ? attr_int(n, "groups") : 1, &channels))
    channels = 0;
  if (convolves && x->dim[0] == channels)
    diag_help(c, "`unsqueeze(0)` makes a batch of one image");
  else if (channels == 1)
    diag_help(c, "`unsqueeze(1)` adds the channel axis");
  else
    diag_help(c, "`unsqueeze(0)` adds the axis n, `unsqueeze(1)` the axis c");
}

static bool need_images(Compile *c, const Node *n, uint32_t i, uint32_t spatial)
{
  const Node *x = ir_in(c, n, i);
  if (!rule_need_float(c, n, i)) return false;
  if (x->rank == 2 + spatial) return true;
  diag_error(c, E311, n->span, "%s needs images [n, c, %s] as %s, got %s", op_of(n)->name,
             axes_text[spatial], op_of(n)->signature.input[i].name, ir_type_text(c, x));
  if (x->rank == 1 + spatial) help_axis(c, n, x);
  return diag_note(c, x->span, "it gets its shape here");
}

/* Sets images of sizes d, with the type and layout of `like`. */
static bool set_images(Compile *c, Node *n, const Node *like, ImageDims d)
{
  n->dtype = like->dtype;
  n->layout = like->layout;
  int64_t dim[MAX_RANK];
  uint32_t rank = ir_set_image_dims(&d, (Layout)n->layout, dim);
  return rule_set_dims(c, n, rank, dim);
}

/* Returns the language's argument for an attribute of one axis: "stride" for stride0. */
static const char *argument_name(const char *attr)
{
  static const char *const names[][2] = {{"stride", "stride"},      {"pad", "padding"},
                                         {"dil", "dilation"},       {"kernel", "kernel_size"},
                                         {"scale", "scale_factor"}, {"oh", "output_size"},
                                         {"ow", "output_size"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strncmp(attr, names[i][0], strlen(names[i][0])) == 0) return names[i][1];
  return attr;
}

/* Strides, dilations, kernels and scales must be at least 1, padding at least 0. */
static bool check_attrs(Compile *c, const Node *n)
{
  const OpSignature *sig = &op_of(n)->signature;
  for (uint32_t i = 0; i < sig->n_attrs; i++) {
    const char *name = sig->attr[i].name;
    bool from_zero =
        strncmp(name, "pad", 3) == 0 || strcmp(name, "divisor") == 0 || strcmp(name, "ceil") == 0;
    char range[AMPC_RANGE_ROOM];
    int64_t value = n->attr[i].i, least = from_zero ? 0 : 1;
    bool whole = sig->attr[i].kind != ATTR_bool && sig->attr[i].kind != ATTR_float;
    if (!whole || (value >= least && value <= INT32_MAX)) continue;
    return diag_error(c, E311, n->span, "`%s` of %s is %lld; it must be %s", argument_name(name),
                      op_of(n)->name, (long long)value, ampc_range_text(range, least, INT32_MAX));
  }
  return true;
}

/* stride0, pad0, dil0 belong to the first axis of an image, stride1, .. to the next. The caller
 * passes the kernel's size, because it is an attribute of pools but a size of the weight in
 * convolutions. */
Window rule_window(const Node *n, uint32_t axis, int64_t kernel)
{
  static const char *const names[AMPC_MAX_SPATIAL][3] = {
      {"stride0", "pad0", "dil0"}, {"stride1", "pad1", "dil1"}, {"stride2", "pad2", "dil2"}};
  uint32_t dilation, ceil;
  bool dilates = attr_find(op_of(n), names[axis][2], &dilation); /* average pools have none */
  bool pools = attr_find(op_of(n), "ceil", &ceil);
  return (Window){kernel, attr_int(n, names[axis][0]), attr_int(n, names[axis][1]),
                  dilates ? n->attr[dilation].i : 1, pools && n->attr[ceil].i};
}

/* Returns the number of windows that fit into `size` pixels and their padding: 28 for size 28,
 * kernel 5, pad 2, stride 1. `ceil` adds a window if it begins before the padding at the end. */
static int64_t count_windows(int64_t size, Window w)
{
  int64_t span;
  if (__builtin_mul_overflow(w.dilation, w.kernel - 1, &span) ||
      __builtin_add_overflow(span, 1, &span))
    return 0;
  int64_t room = size + 2 * w.pad - span;
  if (room < 0) return 0;
  bool more = w.ceil && room % w.stride && (room / w.stride + 1) * w.stride < size + w.pad;
  return room / w.stride + 1 + more;
}

static const char *sizes_text(Compile *c, const int64_t *size, uint32_t n) /* "28x28" */
{
  const char *text = "";
  for (uint32_t i = 0; i < n; i++)
    text = arena_printf(c->arena, "%s%s%lld", text, i ? "x" : "", (long long)size[i]);
  return text;
}

/* Replaces the sizes of images x in d by the sizes of the result. Returns false after a message. */
static bool windows_fit(Compile *c, const Node *n, const Node *x, const Window *w, ImageDims *d)
{
  int64_t count[AMPC_MAX_SPATIAL], kernel[AMPC_MAX_SPATIAL], pad[AMPC_MAX_SPATIAL];
  bool fit = true;
  for (uint32_t i = 0; i < d->spatial; i++) {
    kernel[i] = w[i].kernel;
    pad[i] = w[i].pad;
    count[i] = count_windows(d->size[i], w[i]);
    fit = fit && count[i];
  }
  if (fit) {
    memcpy(d->size, count, d->spatial * sizeof *count);
    return true;
  }
  diag_error(c, E311, n->span, "the %s kernel of %s does not fit images of %s, padding %s",
             sizes_text(c, kernel, d->spatial), op_of(n)->name, sizes_text(c, d->size, d->spatial),
             sizes_text(c, pad, d->spatial));
  return diag_note(c, x->span, "the images get their shape here");
}

/* True if a convolution or pool with these windows turns images of size x into images of size y. */
static bool windows_make(const ImageDims *x, const Window *w, const ImageDims *y)
{
  bool make = x->n == y->n;
  for (uint32_t i = 0; i < x->spatial; i++)
    make = make && count_windows(x->size[i], w[i]) == y->size[i];
  return make;
}

/* ---- convolutions: over 2 or 3 axes ---- */

/* Returns the number of image axes of a convolution, which has a stride for each of them. */
static uint32_t spatial_of(const Node *n)
{
  static const char *const strides[] = {"stride0", "stride1", "stride2"};
  uint32_t count = 0, at;
  while (count < AMPC_MAX_SPATIAL && attr_find(op_of(n), strides[count], &at)) count++;
  return count;
}

const char *rule_image_size(uint32_t spatial, uint32_t axis)
{
  static const char *const names[] = {"d", "h", "w"};
  return names[AMPC_MAX_SPATIAL - spatial + axis];
}

const char *rule_kernel_size(uint32_t spatial, uint32_t axis)
{
  static const char *const names[] = {"kd", "kh", "kw"};
  return names[AMPC_MAX_SPATIAL - spatial + axis];
}

static void weight_windows(const Node *n, const Node *weight, Window *w)
{
  ImageDims d = ir_image_dims(weight);
  for (uint32_t i = 0; i < d.spatial; i++) w[i] = rule_window(n, i, d.size[i]);
}

static bool check_weight(Compile *c, const Node *n, const Node *w)
{
  int64_t groups = attr_int(n, "groups");
  uint32_t spatial = spatial_of(n);
  if (w->rank != 2 + spatial)
    return diag_error(c, E311, n->span, "the weight of %s is [out, in / groups, %s], got %s",
                      op_of(n)->name, axes_text[spatial], ir_dims_text(c, w));
  if (w->dim[0] % groups == 0) return true;
  return diag_error(c, E311, n->span, "%lld groups of %s do not divide %lld output channels",
                    (long long)groups, op_of(n)->name, (long long)w->dim[0]);
}

/* Suggests a line for a weight with the wrong channels: `conv1 = Conv2d(1, ..)` for `conv1.weight`.
 * Only a weight that is a parameter of a module has such a name. */
static void help_channels(Compile *c, const Node *w, int64_t channels)
{
  while (w->op == OP_cast) w = ir_in(c, w, 0);
  if (w->op != OP_param) return;
  const char *path = c->graph->params.at[attr_int(w, "index")].path, *dot = strrchr(path, '.');
  if (!dot || strcmp(dot, ".weight") != 0) return;
  const char *name = dot;
  while (name > path && name[-1] != '.') name--;
  bool numbered = isdigit((unsigned char)*name); /* a layer of a list or a Sequential */
  diag_help(c, "`%.*s%sConv%ud(%lld, ...)`", numbered ? 0 : (int)(dot - path), path,
            numbered ? "" : " = ", w->rank - 2u, (long long)channels);
}

/* Suggests a permute for images whose last axis has the channels. Then axis 1 is a height, which is
 * larger than the number of channels. */
static bool help_channels_last(Compile *c, const Node *x, int64_t channels)
{
  if (x->dim[x->rank - 1] != channels || x->dim[1] <= channels) return false;
  Text axes = text_new(c->arena);
  for (int i = 1; i < x->rank - 1; i++) text_printf(&axes, ", %d", i);
  diag_help(c, "the channels are the last axis: write `.permute(0, %d%s)` behind the images",
            x->rank - 1, axes.at);
  return true;
}

static bool check_channels(Compile *c, const Node *n, const Node *x, const Node *w)
{
  int64_t want = ir_image_dims(w).c * attr_int(n, "groups"), have = ir_image_dims(x).c;
  if (want == have) return true;
  diag_error(c, E302, n->span, "%s expects %lld input channel%s, got %lld: %s", op_of(n)->name,
             (long long)want, want == 1 ? "" : "s", (long long)have, ir_type_text(c, x));
  if (!help_channels_last(c, x, want)) help_channels(c, w, have);
  diag_note(c, w->span, "the weight is [out, in / groups, %s] = %s", axes_text[spatial_of(n)],
            ir_dims_text(c, w));
  return diag_note(c, x->span, "the images get their shape here");
}

/* Images [n, c, in..] with a weight [out, c / groups, kernel..] become [n, out, windows..]. */
bool shape_conv(Compile *c, Node *n)
{
  if (!check_attrs(c, n) || !need_images(c, n, 0, spatial_of(n)) || !rule_need_float(c, n, 1))
    return false;
  const Node *x = ir_in(c, n, 0), *w = ir_in(c, n, 1), *bias = ir_in(c, n, 2);
  if (!check_weight(c, n, w) || !check_channels(c, n, x, w)) return false;
  if (n->in[2].id && (bias->rank != 1 || bias->dim[0] != w->dim[0]))
    return diag_error(c, E311, n->span, "the bias of %s with weight %s is [%lld], got %s",
                      op_of(n)->name, ir_dims_text(c, w), (long long)w->dim[0],
                      ir_dims_text(c, bias));
  ImageDims d = ir_image_dims(x);
  Window windows[AMPC_MAX_SPATIAL];
  weight_windows(n, w, windows);
  if (!windows_fit(c, n, x, windows, &d)) return false;
  d.c = w->dim[0];
  return set_images(c, n, x, d) && (n->dtype = op_common_type(c, n), true);
}

/* dy [n, out, windows..] becomes images [n, c, in..] with the sizes in the attributes. A
 * convolution of such images must have the shape of dy. This always holds in gradients, but not for
 * every transposed convolution that a user writes. */
bool shape_conv_data(Compile *c, Node *n)
{
  if (!need_images(c, n, 0, spatial_of(n)) || !rule_need_float(c, n, 1) || !check_attrs(c, n))
    return false;
  const Node *dy = ir_in(c, n, 0), *w = ir_in(c, n, 1);
  if (!check_weight(c, n, w)) return false;
  ImageDims d = ir_image_dims(dy), x = d;
  x.c = ir_image_dims(w).c * attr_int(n, "groups");
  for (uint32_t i = 0; i < x.spatial; i++) x.size[i] = attr_int(n, rule_image_size(x.spatial, i));
  if (d.c != w->dim[0]) {
    diag_error(c, E302, n->span,
               "a transposed convolution expects %lld input channels, got %lld: %s",
               (long long)w->dim[0], (long long)d.c, ir_type_text(c, dy));
    return diag_note(c, w->span, "the weight is %s", ir_dims_text(c, w));
  }
  Window windows[AMPC_MAX_SPATIAL];
  weight_windows(n, w, windows);
  if (!windows_make(&x, windows, &d))
    return diag_error(c, E311, n->span, "no convolution computes %s from images of %s",
                      ir_dims_text(c, dy), sizes_text(c, x.size, x.spatial));
  return set_images(c, n, dy, x) && (n->dtype = op_common_type(c, n), true);
}

/* dy [n, out, windows..] and x [n, c, in..] have a weight gradient [out, c / groups, kernel..]. */
bool shape_conv_weight(Compile *c, Node *n)
{
  uint32_t spatial = spatial_of(n);
  if (!need_images(c, n, 0, spatial) || !need_images(c, n, 1, spatial) || !check_attrs(c, n))
    return false;
  const Node *dy = ir_in(c, n, 0), *x = ir_in(c, n, 1);
  int64_t groups = attr_int(n, "groups");
  ImageDims d = ir_image_dims(dy), from = ir_image_dims(x);
  ImageDims w = {d.c, from.c / groups, spatial, {0}};
  Window windows[AMPC_MAX_SPATIAL];
  for (uint32_t i = 0; i < spatial; i++) {
    w.size[i] = attr_int(n, rule_kernel_size(spatial, i));
    windows[i] = rule_window(n, i, w.size[i]);
  }
  if (from.c % groups || d.c % groups || !windows_make(&from, windows, &d))
    return diag_error(c, E311, n->span, "no convolution computes %s from %s", ir_dims_text(c, dy),
                      ir_dims_text(c, x));
  return set_images(c, n, x, w) && (n->dtype = op_common_type(c, n), true);
}

/* ---- channels ---- */

/* Checks input 0 of batch norm: any tensor with a channel axis, such as [n, c] or [n, c, h, w]. */
static bool need_channels(Compile *c, const Node *n)
{
  const Node *x = ir_in(c, n, 0);
  if (!rule_need_float(c, n, 0)) return false;
  int64_t channel = attr_int(n, "channel");
  if (x->rank > 1 && channel >= 0 && channel < x->rank) return true;
  return diag_error(c, E311, n->span, "%s needs a tensor [n, c, ..], got %s", op_of(n)->name,
                    ir_type_text(c, x));
}

static bool check_channel_vector(Compile *c, const Node *n, uint32_t i)
{
  const Node *x = ir_in(c, n, 0), *v = ir_in(c, n, i);
  int64_t channels = x->dim[attr_int(n, "channel")];
  if (!n->in[i].id || (v->rank == 1 && v->dim[0] == channels)) return true;
  diag_error(c, E311, n->span, "%s of %lld channels, %s, needs %s [%lld], got %s", op_of(n)->name,
             (long long)channels, ir_type_text(c, x), op_of(n)->signature.input[i].name,
             (long long)channels, ir_dims_text(c, v));
  return diag_note(c, v->span, "this one");
}

/* The inputs of forward are x and vectors with a number for each channel. Backward has dy, in the
 * shape of x, before x. The result has the shape of x. */
bool shape_batch_norm(Compile *c, Node *n)
{
  if (!need_channels(c, n)) return false;
  const Node *x = ir_in(c, n, 0);
  bool backward = n->op == OP_batch_norm_backward;
  if (backward && !ir_same_dims(x, ir_in(c, n, 1)))
    return diag_error(c, E311, n->span, "batch_norm_backward of %s and %s", ir_dims_text(c, x),
                      ir_dims_text(c, ir_in(c, n, 1)));
  for (uint32_t i = backward ? 2 : 1; i < n->n_in; i++)
    if (!check_channel_vector(c, n, i)) return false;
  rule_like(n, x, x->dtype);
  n->layout = x->layout;
  return true;
}

/* The result is [parts, channels], always in f32, because rounding the parts to 16 bits would lose
 * precision. */
bool shape_channel_parts(Compile *c, Node *n)
{
  if (!need_channels(c, n)) return false;
  const Node *x = ir_in(c, n, 0);
  int64_t channels = x->dim[attr_int(n, "channel")];
  for (uint32_t i = 2; i < n->n_in; i++)
    if (!check_channel_vector(c, n, i)) return false;
  n->dtype = AMPC_F32;
  int64_t rows = channels ? ir_elements(x) / channels : 0;
  return rule_set_dims(c, n, 2, (int64_t[]){column_parts(rows, channels), channels});
}

/* Turns [parts, channels] into [channels]. */
bool shape_channel_join(Compile *c, Node *n)
{
  const Node *parts = ir_in(c, n, 0);
  assert(parts->rank == 2);
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, 1, &parts->dim[1]);
}

/* ---- pools: over two axes ---- */

enum { POOL_AXES = 2 };

static void pool_windows(const Node *n, Window *w)
{
  for (uint32_t i = 0; i < POOL_AXES; i++)
    w[i] = rule_window(n, i, attr_int(n, i ? "kernel1" : "kernel0"));
}

/* Rejects padding of more than half the kernel: a window could contain only padding. */
bool shape_pool2d(Compile *c, Node *n)
{
  if (!need_images(c, n, 0, POOL_AXES) || !check_attrs(c, n)) return false;
  const Node *x = ir_in(c, n, 0);
  ImageDims d = ir_image_dims(x);
  Window w[POOL_AXES];
  pool_windows(n, w);
  for (uint32_t i = 0; i < POOL_AXES; i++) {
    if (2 * w[i].pad <= w[i].kernel) continue;
    return diag_error(c, E311, n->span,
                      "%s pads %lld on each side; the maximum is half of the kernel size %lld",
                      op_of(n)->name, (long long)w[i].pad, (long long)w[i].kernel);
  }
  if (!windows_fit(c, n, x, w, &d) || !set_images(c, n, x, d)) return false;
  uint32_t argmax;
  if (attr_find(op_of(n), "argmax", &argmax) && n->attr[argmax].i)
    n->dtype = w[0].kernel * w[1].kernel <= UINT8_MAX + 1 ? AMPC_U8 : AMPC_I32;
  return true;
}

/* The result has the image size in the attributes h and w. */
bool shape_pool2d_backward(Compile *c, Node *n)
{
  if (!need_images(c, n, 0, POOL_AXES) || !check_attrs(c, n)) return false;
  const Node *dy = ir_in(c, n, 0);
  ImageDims d = ir_image_dims(dy), x = d;
  x.size[0] = attr_int(n, "h");
  x.size[1] = attr_int(n, "w");
  Window w[POOL_AXES];
  pool_windows(n, w);
  if (windows_make(&x, w, &d)) return set_images(c, n, dy, x);
  return diag_error(c, E311, n->span, "no pool computes %s from images of %s", ir_dims_text(c, dy),
                    sizes_text(c, x.size, x.spatial));
}

/* In forward and backward, the attributes hold the size of the result. */
bool shape_adaptive_pool2d(Compile *c, Node *n)
{
  if (!need_images(c, n, 0, POOL_AXES) || !check_attrs(c, n)) return false;
  const Node *x = ir_in(c, n, 0);
  ImageDims d = ir_image_dims(x);
  uint32_t at;
  bool forward = attr_find(op_of(n), "oh", &at);
  d.size[0] = attr_int(n, forward ? "oh" : "h");
  d.size[1] = attr_int(n, forward ? "ow" : "w");
  return set_images(c, n, x, d);
}

bool shape_interpolate(Compile *c, Node *n)
{
  if (!need_images(c, n, 0, POOL_AXES) || !check_attrs(c, n)) return false;
  const Node *x = ir_in(c, n, 0);
  ImageDims d = ir_image_dims(x);
  int64_t s = attr_int(n, "scale0"), t = attr_int(n, "scale1");
  if (n->op == OP_interpolate_nearest) {
    if (__builtin_mul_overflow(d.size[0], s, &d.size[0])) d.size[0] = INT64_MAX;
    if (__builtin_mul_overflow(d.size[1], t, &d.size[1])) d.size[1] = INT64_MAX;
    return set_images(c, n, x, d); /* rejects sizes that are too large */
  }
  if (d.size[0] % s || d.size[1] % t)
    return diag_error(c, E311, n->span, "interpolation by %lldx%lld does not make %s", (long long)s,
                      (long long)t, ir_dims_text(c, x));
  d.size[0] /= s;
  d.size[1] /= t;
  return set_images(c, n, x, d);
}
