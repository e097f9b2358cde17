/* Gradient rules of images and channels: convolutions, pools, batch norm. */
#include "gradient.h"
#include <string.h>

/* The op with the attributes of the forward node and one more pair after the first `shared`. */
static Value sized(Back *b, OpKind op, const Value *in, uint32_t n, uint32_t shared, int64_t h,
                   int64_t w)
{
  Attr attr[MAX_ATTR];
  memcpy(attr, b->n.attr, sizeof attr);
  attr[shared].i = h;
  attr[shared + 1].i = w;
  return ir_append(b->c, &b->at, op, in, n, attr);
}

/* Join value `index` of `parts`: f32, one a channel. */
static Value total(Back *b, Value parts, int64_t index)
{
  Attr attr[MAX_ATTR] = {{.i = index}, {.i = 1}};
  return ir_append(b->c, &b->at, OP_channel_total, &parts, 1, attr);
}

static Value channel_sum(Back *b, Value x)
{
  Attr channel[MAX_ATTR] = {{.i = 1}};
  return total(b, ir_append(b->c, &b->at, OP_channel_sums, &x, 1, channel), 0);
}

/* ---- convolutions -------------------------------------------------------------------------------
 */

void grad_conv2d(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value x = b.n.in[0], weight = b.n.in[1];
  ImageDims d = ir_image_dims(back_in(&b, 0));
  int64_t kh = back_in(&b, 1)->dim[2], kw = back_in(&b, 1)->dim[3];
  out_dx[0] = sized(&b, OP_conv2d_data, (Value[]){dy, weight}, 2, CONV_size, d.h, d.w);
  out_dx[1] = sized(&b, OP_conv2d_weight, (Value[]){dy, x}, 2, CONV_size, kh, kw);
  if (b.n.in[2].id) out_dx[2] = channel_sum(&b, dy);
}

/* Of a transposed convolution: the images that it makes are those that a convolution reads. */
void grad_conv2d_data(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value x = b.n.in[0], weight = b.n.in[1];
  int64_t kh = back_in(&b, 1)->dim[2], kw = back_in(&b, 1)->dim[3];
  out_dx[0] = back_like(&b, OP_conv2d, (Value[]){dy, weight, {0}}, 3);
  out_dx[1] = sized(&b, OP_conv2d_weight, (Value[]){x, dy}, 2, CONV_size, kh, kw);
}

/* ---- batch norm
 * -----------------------------------------------------------------------------------
 */

typedef struct NormSums { /* the gradients of bias and weight */
  Value dy, dyx;
} NormSums;

static NormSums norm_sums(Back *b)
{
  const Value *in = b->n.in;
  Value parts = back_like(b, OP_batch_norm_sums, (Value[]){b->dy, in[0], in[1], in[2]}, 4);
  return (NormSums){total(b, parts, 0), total(b, parts, 1)};
}

/* The whole gradient, that through mean and rstd included: those two get none. */
void grad_batch_norm(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  const Value *in = b.n.in;
  int64_t channel = b.n.attr[0].i;
  NormSums s = norm_sums(&b);
  double rows = (double)(ir_elements(&b.n) / b.n.dim[channel]);
  Attr attr[MAX_ATTR] = {{.i = channel}, {.f = 1 / rows}};
  Value all[] = {dy, in[0], in[1], in[2], in[3], s.dy, s.dyx};
  out_dx[0] = ir_append(c, &b.at, OP_batch_norm_backward, all, 7, attr);
  if (in[3].id) out_dx[3] = s.dyx;
  if (in[4].id) out_dx[4] = s.dy;
}

/* [c] as [1, c, 1, ..], to meet images elementwise. */
static Value along_channels(Back *b, Value v)
{
  int64_t dim[MAX_RANK];
  for (uint32_t i = 0; i < b->n.rank; i++) dim[i] = i == b->n.attr[0].i ? b->n.dim[i] : 1;
  return ir_reshape(b->c, &b->at, v, dim, b->n.rank);
}

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

/* ---- pools
 * ----------------------------------------------------------------------------------------
 */

void grad_max_pool2d(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  out_dx[0] = back_like(&b, OP_max_pool2d_backward, (Value[]){dy, b.n.in[0]}, 2);
}

void grad_avg_pool2d(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  ImageDims d = ir_image_dims(back_in(&b, 0));
  out_dx[0] = sized(&b, OP_avg_pool2d_backward, &dy, 1, POOL_size, d.h, d.w);
}

void grad_adaptive_avg_pool2d(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  ImageDims d = ir_image_dims(back_in(&b, 0));
  out_dx[0] = sized(&b, OP_adaptive_avg_pool2d_backward, &dy, 1, 0, d.h, d.w);
}

void grad_interpolate_nearest(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  out_dx[0] = back_like(&b, OP_interpolate_nearest_backward, &dy, 1);
}
