/* Gradient rules of images and channels: convolutions, pools, batch norm. */
#include "gradient.h"
#include <string.h>

typedef const char *SizeName(uint32_t spatial, uint32_t axis);

/* The attributes of a gradient op that hold the size of its result. */
typedef struct Sizes {
  SizeName *name;
  uint32_t spatial;
  const int64_t *size;
} Sizes;

static bool names_size(const Sizes *s, const char *attr)
{
  for (uint32_t i = 0; i < s->spatial; i++)
    if (strcmp(s->name(s->spatial, i), attr) == 0) return true;
  return false;
}

/* Appends a gradient op with the attributes that it shares with the forward node (strides, padding,
 * ..), and with the sizes `s` of its result. The inputs do not determine these: with stride 2,
 * images of 7x7 and 8x8 have equally many windows. */
static Value sized(Back *b, OpKind op, const Value *in, uint32_t n, Sizes s)
{
  const NamedAttr *shared = ir_shared_attrs(b->c, &b->n, op);
  NamedAttr attrs[MAX_ATTR + AMPC_MAX_SPATIAL + 1];
  uint32_t count = 0;
  for (; shared->name; shared++)
    if (!names_size(&s, shared->name)) attrs[count++] = *shared;
  for (uint32_t i = 0; i < s.spatial; i++)
    attrs[count++] = (NamedAttr){s.name(s.spatial, i), {.i = s.size[i]}};
  attrs[count] = (NamedAttr){NULL, {0}};
  return ir_append(b->c, &b->at, op, in, n, attrs);
}

/* Appends a gradient op whose result has the image sizes of input 0. */
static Value sized_image(Back *b, OpKind op, const Value *in, uint32_t n)
{
  ImageDims d = ir_image_dims(back_in(b, 0));
  return sized(b, op, in, n, (Sizes){rule_image_size, d.spatial, d.size});
}

/* Sums parts [parts, channels] to f32 [channels]: Note [channels] in ops.def. */
static Value total(Back *b, Value parts)
{
  return ir_reduce(b->c, &b->at, OP_sum, parts, 1, false);
}

/* Sums each channel of x [n, c, h, w]. Rules run before pass layout, so channels are axis 1. */
static Value channel_sum(Back *b, Value x)
{
  const NamedAttr *channel = ATTRS({"channel", {.i = 1}});
  if (!(b->c->graph->facts & IR_TYPED)) /* for grad(), which needs an op with a gradient */
    return ir_reduce(b->c, &b->at, OP_sum, x, ((1ull << b->n.rank) - 1) & ~2ull, false);
  return total(b, ir_append(b->c, &b->at, OP_channel_sums, &x, 1, channel));
}

/* ---- convolutions: row `x` of the table has gradient rows `x_data` and `x_weight` ---- */

static OpKind forward_op(const Back *b)
{
  const char *name = op_of(&b->n)->name, *end = strrchr(name, '_');
  return end ? op_named(arena_strndup(b->c->arena, name, (size_t)(end - name))) : b->n.op;
}

static OpKind gradient_op(const Back *b, const char *suffix)
{
  return op_named(arena_printf(b->c->arena, "%s%s", op_row(forward_op(b))->name, suffix));
}

static Value weight_gradient(Back *b, const Value *in, const Node *weight)
{
  Sizes kernel = {rule_kernel_size, weight->rank - 2u, weight->dim + 2};
  return sized(b, gradient_op(b, "_weight"), in, 2, kernel);
}

/* dx is the transposed convolution of dy, dweight correlates dy with x, and dbias is the sum of dy
 * over each channel. */
void grad_conv(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value x = b.n.in[0], weight = b.n.in[1];
  Node kernel = *back_in(&b, 1);
  out_dx[0] = sized_image(&b, gradient_op(&b, "_data"), (Value[]){dy, weight}, 2);
  out_dx[1] = weight_gradient(&b, (Value[]){dy, x}, &kernel);
  if (b.n.in[2].id) out_dx[2] = channel_sum(&b, dy);
}

/* The forward node is a transposed convolution (ConvTranspose2d), which turns x [n, out, h, w] into
 * larger images. So dx is the plain convolution of dy, and dweight is that of grad_conv with x and
 * dy swapped. */
void grad_conv_data(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value x = b.n.in[0], weight = b.n.in[1];
  Node kernel = *back_in(&b, 1);
  out_dx[0] = back_like(&b, forward_op(&b), (Value[]){dy, weight, {0}}, 3);
  out_dx[1] = weight_gradient(&b, (Value[]){x, dy}, &kernel);
}

/* The forward node computes a weight's gradient, which is linear in dy and in x: that of dy is the
 * convolution with dz as weight, that of x the transposed convolution of dy with it. */
void grad_conv_weight(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  ImageDims d = ir_image_dims(back_in(&b, 1));
  out_dx[0] = back_like(&b, forward_op(&b), (Value[]){b.n.in[1], dy, {0}}, 3);
  out_dx[1] = sized(&b, gradient_op(&b, "_data"), (Value[]){b.n.in[0], dy}, 2,
                    (Sizes){rule_image_size, d.spatial, d.size});
}

/* ---- batch norm ---- */

typedef struct NormSums { /* dy: gradient of the bias; dyx: of the weight */
  Value dy, dyx;
} NormSums;

/* Returns the sums of dy and of dy z, each [channels], with z = (x - mean) rstd. */
static NormSums norm_sums(Back *b)
{
  const Value *in = b->n.in;
  const NamedAttr *channel = ATTRS({"channel", {.i = attr_int(&b->n, "channel")}});
  Value sums = ir_append(b->c, &b->at, OP_channel_sums, &b->dy, 1, channel);
  Value products = back_like(b, OP_channel_products, (Value[]){b->dy, in[0], in[1], in[2]}, 4);
  return (NormSums){total(b, sums), total(b, products)};
}

/* y = z weight + bias with z = (x - mean) rstd, where mean and rstd are those of x. With `rows`
 * elements per channel:
 *   dx = rstd weight (dy - sum(dy) / rows - z sum(dy z) / rows)
 * If mean and rstd are those of all members, so are the sums and `rows`. This is the whole gradient
 * and includes the paths through mean and rstd, so these two inputs get no gradient. */
void grad_batch_norm(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  const Value *in = b.n.in;
  int64_t channel = attr_int(&b.n, "channel");
  NormSums s = norm_sums(&b);
  double share = 1 / (double)(ir_elements(&b.n) / b.n.dim[channel]);
  Value all[] = {dy, in[0], in[1], in[2], in[3], s.dy, s.dyx};
  if (attr_int(&b.n, "sync")) {
    const BlockInfo *block = &c->graph->blocks.at[b.n.block];
    share *= block->idle ? 0 : (double)block->batch / (double)block->whole;
    all[5] = ir_unary(c, &b.at, OP_member_sum, s.dy);
    all[6] = ir_unary(c, &b.at, OP_member_sum, s.dyx);
  }
  out_dx[0] = ir_append(c, &b.at, OP_batch_norm_backward, all, 7,
                        ATTRS({"channel", {.i = channel}}, {"share", {.f = share}}));
  if (in[3].id) out_dx[3] = s.dyx;
  if (in[4].id) out_dx[4] = s.dy;
}

Value back_channels(Back *b, Value v)
{
  int64_t dim[MAX_RANK], channel = attr_int(&b->n, "channel");
  for (uint32_t i = 0; i < b->n.rank; i++) dim[i] = i == channel ? b->n.dim[i] : 1;
  return ir_reshape(b->c, &b->at, v, dim, b->n.rank);
}

/* In batch_norm_eval, mean and rstd do not depend on x. With s = rstd weight:
 *   dx = dy s, dmean = -s sum(dy), drstd = weight sum(dy (x - mean)) = weight sum(dy z) / rstd
 * The statistics are usually Buffers; then dmean and drstd are removed later. The rule computes in
 * f32, even if x, the weight or a statistic has 16 bits. */
void grad_batch_norm_eval(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  const Value *in = b.n.in;
  Value slope = back_wide(&b, in[2]);
  if (in[3].id) slope = back_mul(&b, slope, back_wide(&b, in[3]));
  Value channels = back_channels(&b, slope);
  out_dx[0] = back_mul(&b, back_wide(&b, dy), channels);
  NormSums s = norm_sums(&b);
  out_dx[1] = back_unary(&b, OP_neg, back_mul(&b, slope, s.dy));
  Value moved = in[3].id ? back_mul(&b, back_wide(&b, in[3]), s.dyx) : s.dyx;
  out_dx[2] = back_binary(&b, OP_div, moved, back_wide(&b, in[2]));
  if (in[3].id) out_dx[3] = s.dyx;
  if (in[4].id) out_dx[4] = s.dy;
}

/* ---- pools ---- */

/* Backward keeps this index, usually one byte, instead of x, which has several bytes. */
Value back_greatest(Back *b)
{
  NamedAttr attrs[MAX_ATTR + 1];
  uint32_t n = 0;
  for (const NamedAttr *a = ir_shared_attrs(b->c, &b->n, OP_max_pool2d); a->name; a++)
    if (strcmp(a->name, "argmax") != 0) attrs[n++] = *a;
  attrs[n++] = (NamedAttr){"argmax", {.i = 1}};
  attrs[n] = (NamedAttr){NULL, {0}};
  return ir_append(b->c, &b->at, OP_max_pool2d, b->n.in, 1, attrs);
}

RULE(grad_max_pool2d, sized_image(b, OP_max_pool2d_backward, (Value[]){dy, back_greatest(b)}, 2))

RULE(grad_avg_pool2d, sized_image(b, OP_avg_pool2d_backward, &dy, 1))

RULE(grad_adaptive_avg_pool2d, sized_image(b, OP_adaptive_avg_pool2d_backward, &dy, 1))

RULE(grad_resample, sized_image(b, OP_resample_backward, &dy, 1))

static const char *result_size(uint32_t spatial, uint32_t axis)
{
  (void)spatial;
  return axis ? "ow" : "oh";
}

/* The ops NAME_backward of pools and interpolations are linear: the gradient of dy is NAME. */
void grad_image_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  OpKind op = forward_op(&b);
  ImageDims d = ir_image_dims(back_in(&b, 0));
  uint32_t at, spatial = attr_find(op_row(op), "oh", &at) ? d.spatial : 0;
  out_dx[0] = sized(&b, op, &dy, 1, (Sizes){result_size, spatial, d.size});
}
