/* Gradient rules of images and channels: convolutions, pools, batch norm. */
#include "gradient.h"
#include <string.h>

/* A gradient op with the attributes that it shares with the forward node (strides, padding, ..) and
 * two sizes that its inputs do not determine: with stride 2 images of 7x7 and 8x8 give the same
 * windows. */
static Value sized(Back *b, OpKind op, const Value *in, uint32_t n, NamedAttr h, NamedAttr w)
{
  const NamedAttr *shared = ir_shared_attrs(b->c, &b->n, op);
  NamedAttr attrs[MAX_ATTR + 3];
  uint32_t count = 0;
  for (; shared->name; shared++)
    if (strcmp(shared->name, h.name) != 0 && strcmp(shared->name, w.name) != 0)
      attrs[count++] = *shared;
  attrs[count++] = h;
  attrs[count++] = w;
  attrs[count] = (NamedAttr){NULL, {0}};
  return ir_append(b->c, &b->at, op, in, n, attrs);
}

static Value sized_image(Back *b, OpKind op, const Value *in, uint32_t n, ImageDims d)
{
  return sized(b, op, in, n, (NamedAttr){"h", {.i = d.h}}, (NamedAttr){"w", {.i = d.w}});
}

static Value sized_kernel(Back *b, const Value *in, const Node *weight)
{
  return sized(b, OP_conv2d_weight, in, 2, (NamedAttr){"kh", {.i = weight->dim[2]}},
               (NamedAttr){"kw", {.i = weight->dim[3]}});
}

/* The sum over axis 1 of parts[values, parts, channels], for value `index`: f32 [channels]. See
 * Note [channels] in ops.def. */
static Value total(Back *b, Value parts, int64_t index)
{
  return ir_append(b->c, &b->at, OP_channel_total, &parts, 1, ATTRS({"value", {.i = index}}));
}

/* The sum of all elements of each channel of x [n, c, h, w]: rules run before pass layout, so the
 * channels are axis 1. */
static Value channel_sum(Back *b, Value x)
{
  const NamedAttr *channel = ATTRS({"channel", {.i = 1}});
  return total(b, ir_append(b->c, &b->at, OP_channel_sums, &x, 1, channel), 0);
}

/* ---- convolutions ---- */

/* dx moves dy back through the kernel (a transposed convolution), dweight correlates dy with x,
 * dbias is the sum of dy over a channel. */
void grad_conv2d(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value x = b.n.in[0], weight = b.n.in[1];
  ImageDims d = ir_image_dims(back_in(&b, 0));
  Node kernel = *back_in(&b, 1);
  out_dx[0] = sized_image(&b, OP_conv2d_data, (Value[]){dy, weight}, 2, d);
  out_dx[1] = sized_kernel(&b, (Value[]){dy, x}, &kernel);
  if (b.n.in[2].id) out_dx[2] = channel_sum(&b, dy);
}

/* The forward node is itself a transposed convolution, of ConvTranspose2d: x [n, out, h, w] becomes
 * larger images. So the plain convolution of dy is dx, and in dweight x and dy have changed
 * places. */
void grad_conv2d_data(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value x = b.n.in[0], weight = b.n.in[1];
  Node kernel = *back_in(&b, 1);
  out_dx[0] = back_like(&b, OP_conv2d, (Value[]){dy, weight, {0}}, 3);
  out_dx[1] = sized_kernel(&b, (Value[]){x, dy}, &kernel);
}

/* ---- batch norm ---- */

typedef struct NormSums { /* the gradients of bias and weight */
  Value dy, dyx;
} NormSums;

/* With z = (x - mean) rstd: sum of dy and of dy z, each [channels]. */
static NormSums norm_sums(Back *b)
{
  const Value *in = b->n.in;
  Value parts = back_like(b, OP_batch_norm_sums, (Value[]){b->dy, in[0], in[1], in[2]}, 4);
  return (NormSums){total(b, parts, 0), total(b, parts, 1)};
}

/* y = z weight + bias, z = (x - mean) rstd, and mean and rstd are those of x. With `rows` elements
 * a channel:
 *   dx = rstd weight (dy - sum(dy) / rows - z sum(dy z) / rows)
 * That is the whole gradient, what goes through mean and rstd included: so those two inputs get
 * none. */
void grad_batch_norm(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  const Value *in = b.n.in;
  int64_t channel = attr_int(&b.n, "channel");
  NormSums s = norm_sums(&b);
  double rows = (double)(ir_elements(&b.n) / b.n.dim[channel]);
  Value all[] = {dy, in[0], in[1], in[2], in[3], s.dy, s.dyx};
  out_dx[0] = ir_append(c, &b.at, OP_batch_norm_backward, all, 7,
                        ATTRS({"channel", {.i = channel}}, {"share", {.f = 1 / rows}}));
  if (in[3].id) out_dx[3] = s.dyx;
  if (in[4].id) out_dx[4] = s.dy;
}

/* v [c] as [1, c, 1, ..], so that it meets images elementwise. */
static Value along_channels(Back *b, Value v)
{
  int64_t dim[MAX_RANK], channel = attr_int(&b->n, "channel");
  for (uint32_t i = 0; i < b->n.rank; i++) dim[i] = i == channel ? b->n.dim[i] : 1;
  return ir_reshape(b->c, &b->at, v, dim, b->n.rank);
}

/* As batch norm, but mean and rstd are stored numbers that do not depend on x: dx = dy rstd
 * weight. */
void grad_batch_norm_eval(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  const Value *in = b.n.in;
  Value slope = in[3].id ? back_mul(&b, in[2], in[3]) : in[2];
  out_dx[0] = back_mul(&b, dy, along_channels(&b, slope));
  if (!in[3].id && !in[4].id) return;
  NormSums s = norm_sums(&b);
  if (in[3].id) out_dx[3] = s.dyx;
  if (in[4].id) out_dx[4] = s.dy;
}

/* ---- pools ---- */

/* Backward looks for each window's greatest element in x again: indices are not stored. */
void grad_max_pool2d(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  out_dx[0] = back_like(&b, OP_max_pool2d_backward, (Value[]){dy, b.n.in[0]}, 2);
}

void grad_avg_pool2d(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  ImageDims d = ir_image_dims(back_in(&b, 0));
  out_dx[0] = sized_image(&b, OP_avg_pool2d_backward, &dy, 1, d);
}

void grad_adaptive_avg_pool2d(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  ImageDims d = ir_image_dims(back_in(&b, 0));
  out_dx[0] = sized_image(&b, OP_adaptive_avg_pool2d_backward, &dy, 1, d);
}

void grad_interpolate_nearest(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  out_dx[0] = back_like(&b, OP_interpolate_nearest_backward, &dy, 1);
}
