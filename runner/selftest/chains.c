/* THE table of gradients: every op with a gradient rule, at small smooth points away from kinks,
 * and small graphs in which gradients meet: values used twice, broadcasts, products with what
 * stands before and after them. */
#include "gradient.h"
#include <string.h>

#define FLOATS "fhb"

static Value unary(Compile *c, const Cursor *at, OpKind op, Value x)
{
  return ir_unary(c, at, op, x);
}

static Value binary(Compile *c, const Cursor *at, OpKind op, Value x, Value y)
{
  return ir_binary(c, at, op, x, y);
}

/* x * x + x: three ways back to x */
static Value chain_shared(Compile *c, const Cursor *at, const Value *in)
{
  return binary(c, at, OP_add, binary(c, at, OP_mul, in[0], in[0]), in[0]);
}

/* tanh(x w + b) (x w + b) */
static Value chain_gate(Compile *c, const Cursor *at, const Value *in)
{
  Value h = binary(c, at, OP_add, binary(c, at, OP_matmul, in[0], in[1]), in[2]);
  return binary(c, at, OP_mul, unary(c, at, OP_tanh, h), h);
}

/* sigmoid(a + b) (a - b), b broadcast both times */
static Value chain_broadcast(Compile *c, const Cursor *at, const Value *in)
{
  Value gate = unary(c, at, OP_sigmoid, binary(c, at, OP_add, in[0], in[1]));
  return binary(c, at, OP_mul, gate, binary(c, at, OP_sub, in[0], in[1]));
}

/* softmax(q k) k^T */
static Value chain_attention(Compile *c, const Cursor *at, const Value *in)
{
  Value score = binary(c, at, OP_matmul, in[0], in[1]);
  Value p = ir_append_values(c, at, OP_softmax, &score, 1, (Attr[MAX_ATTR]){{.i = 1}});
  Value k = ir_append_values(c, at, OP_transpose, &in[1], 1, (Attr[MAX_ATTR]){{.i = 0}, {.i = 1}});
  return binary(c, at, OP_matmul, p, k);
}

/* layer_norm(gelu(x) + x, w, b) */
static Value chain_residual(Compile *c, const Cursor *at, const Value *in)
{
  Value x = binary(c, at, OP_add, unary(c, at, OP_gelu_erf, in[0]), in[0]);
  Value norm[] = {x, in[1], in[2]};
  return ir_append_values(c, at, OP_layer_norm, norm, 3, (Attr[MAX_ATTR]){{.i = 1}, {.f = 1e-5}});
}

/* (x - mean(x))^2: a reduction and its own broadcast */
static Value chain_centre(Compile *c, const Cursor *at, const Value *in)
{
  Value mean = ir_append_values(c, at, OP_mean, in, 1, (Attr[MAX_ATTR]){{.i = 2}, {.i = 1}});
  Value centred = binary(c, at, OP_sub, in[0], mean);
  return binary(c, at, OP_mul, centred, centred);
}

/* cat(x, exp(x)) sliced across the seam */
static Value chain_seam(Compile *c, const Cursor *at, const Value *in)
{
  Value both[] = {in[0], unary(c, at, OP_exp, in[0])};
  Value x = ir_append_values(c, at, OP_cat, both, 2, (Attr[MAX_ATTR]){{.i = 1}});
  Attr part[MAX_ATTR] = {{.i = 1}, {.i = 1}, {.i = 9}, {.i = 2}};
  return ir_append_values(c, at, OP_slice, &x, 1, part);
}

/* x in its own type: through the value, not through what only gives the type */
static Value chain_like(Compile *c, const Cursor *at, const Value *in)
{
  return ir_binary(c, at, OP_like, ir_unary(c, at, OP_detach, in[0]), in[0]);
}

/* silu(silu(x w) v): the shape of an MLP, without a kink that rounding could step over */
static Value chain_mlp(Compile *c, const Cursor *at, const Value *in)
{
  Value h = unary(c, at, OP_silu, binary(c, at, OP_matmul, in[0], in[1]));
  return unary(c, at, OP_silu, binary(c, at, OP_matmul, h, in[2]));
}

/* x^3 + x^2 x^(1/2) + x^1: powers that are numbers have rules of their own */
static Value chain_powers(Compile *c, const Cursor *at, const Value *in)
{
  static const double powers[] = {3, 2, 0.5, 1};
  Value p[4];
  for (int i = 0; i < 4; i++) p[i] = binary(c, at, OP_pow, in[0], ir_number(c, at, powers[i]));
  return binary(c, at, OP_add, p[0],
                binary(c, at, OP_add, binary(c, at, OP_mul, p[1], p[2]), p[3]));
}

/* batch_norm(x), as in training: mean and variance are those of x */
static Value chain_batch_norm(Compile *c, const Cursor *at, const Value *in)
{
  Node x = *ir_node(c->graph, in[0]);
  Attr channel[MAX_ATTR] = {{.i = 1}},
       rows[MAX_ATTR] = {{.i = 0}, {.i = ir_elements(&x) / x.dim[1]}};
  Value parts = ir_append_values(c, at, OP_channel_moments, in, 1, channel);
  Value mean = ir_append_values(c, at, OP_channel_total, &parts, 1, rows);
  Value var = ir_append_values(c, at, OP_channel_var, (Value[]){parts, mean}, 2, &rows[1]);
  Value rstd = unary(c, at, OP_rsqrt, binary(c, at, OP_add, var, ir_number(c, at, 1e-5)));
  return ir_append_values(c, at, OP_batch_norm, (Value[]){in[0], mean, rstd, in[1], in[2]}, 5,
                          channel);
}

/* batch_norm(x) with statistics that are given */
static Value chain_norm_eval(Compile *c, const Cursor *at, const Value *in)
{
  Attr channel[MAX_ATTR] = {{.i = 1}};
  Attr dims[MAX_ATTR] = {{.i = 1}, {.i = ir_node(c->graph, in[0])->dim[1]}};
  Value number[] = {ir_number(c, at, 0.25), ir_number(c, at, 1.5)};
  Value mean = ir_append_values(c, at, OP_full, &number[0], 1, dims);
  Value rstd = ir_append_values(c, at, OP_full, &number[1], 1, dims);
  return ir_append_values(c, at, OP_batch_norm_eval, (Value[]){in[0], mean, rstd, in[1], in[2]}, 5,
                          channel);
}

/* max_pool2d(conv2d(x + x, w, b)) and a flat copy of it: images meet what is none */
static Value chain_images(Compile *c, const Cursor *at, const Value *in)
{
  Attr conv[MAX_ATTR] = {{.i = 1}, {.i = 1}, {.i = 1}, {.i = 1}, {.i = 1}, {.i = 1}, {.i = 1}};
  Attr pool[MAX_ATTR] = {{.i = 2}, {.i = 2}, {.i = 2}, {.i = 2},
                         {.i = 0}, {.i = 0}, {.i = 1}, {.i = 1}};
  Value conv_in[] = {binary(c, at, OP_add, in[0], in[0]), in[1], in[2]};
  Value y = ir_append_values(c, at, OP_conv2d, conv_in, 3, conv);
  y = ir_append_values(c, at, OP_max_pool2d, &y, 1, pool);
  Node n = *ir_node(c->graph, y);
  Value flat = ir_reshape(c, at, y, (int64_t[]){n.dim[0], ir_elements(&n) / n.dim[0]}, 2);
  Value mean = ir_reduce(c, at, OP_mean, y, 12, true);
  Value centred = binary(c, at, OP_sub, y, mean);
  return binary(c, at, OP_mul, flat,
                ir_reshape(c, at, centred, (int64_t[]){n.dim[0], ir_elements(&n) / n.dim[0]}, 2));
}

/* [n, c, h, w] as [n, h w, c] */
static Value tokens(Compile *c, const Cursor *at, Value x)
{
  Node n = *ir_node(c->graph, x);
  x = ir_reshape(c, at, x, (int64_t[]){n.dim[0], n.dim[1], n.dim[2] * n.dim[3]}, 3);
  return ir_append_values(c, at, OP_transpose, &x, 1, (Attr[MAX_ATTR]){{.i = 1}, {.i = 2}});
}

/* Everything that follows the layout of images, from a convolution on, and ways out of it. */
static Value chain_layouts(Compile *c, const Cursor *at, const Value *in)
{
  Attr conv[MAX_ATTR] = {{.i = 1}, {.i = 1}, {.i = 0}, {.i = 0}, {.i = 1}, {.i = 1}, {.i = 1}};
  Attr last[MAX_ATTR] = {{.i = 0}, {.i = 2}, {.i = 3}, {.i = 1}}, channels[MAX_ATTR] = {{.i = 1}};
  Attr shift[MAX_ATTR] = {{.i = 3}, {.i = 1}, {.i = 0}, {.f = 0.5}};
  Attr back[MAX_ATTR] = {{.i = 3}, {.i = 0}, {.i = 2}, {.i = 1}};
  Attr half[MAX_ATTR] = {{.i = 1}, {.i = 2}, {.i = 6}, {.i = 1}};
  Value h = ir_append_values(c, at, OP_conv2d, (Value[]){in[0], in[1], {0}}, 3, conv);
  h = binary(c, at, OP_add, h, in[2]);
  Value moved = ir_append_values(c, at, OP_pad, &h, 1, shift);
  moved = ir_append_values(c, at, OP_slice, &moved, 1, back);
  Value both[] = {ir_append_values(c, at, OP_softmax, &h, 1, channels), moved};
  Value d = ir_append_values(c, at, OP_cat, both, 2, channels);
  d = binary(c, at, OP_sub, d, ir_reduce(c, at, OP_mean, d, 12, true));
  d = ir_append_values(c, at, OP_slice, &d, 1, half);
  Value p = ir_append_values(c, at, OP_permute, &h, 1, last);
  p = ir_reshape(c, at, p, (int64_t[]){2, 6, 4}, 3);
  return binary(c, at, OP_add, binary(c, at, OP_mul, tokens(c, at, h), p), tokens(c, at, d));
}

const GradientRow gradient_rows[] = {
    {{OP_cast, "f", "5x3~n", "dtype=h"}, NULL},
    {{OP_cast, "fh", "5x3~n", "dtype=b"}, NULL},
    {{OP_cast, "hb", "5x3~n", "dtype=f"}, NULL},
    {{OP_reshape, FLOATS, "5x3", "shape=3x5"}, NULL},
    {{OP_expand, FLOATS, "3x1", "shape=2x3x5"}, NULL},
    {{OP_transpose, FLOATS, "5x3", "dim0=0 dim1=1"}, NULL},
    {{OP_transpose, "f", "2x3x4", "dim0=0 dim1=2"}, NULL},
    {{OP_slice, FLOATS, "3x7", "dim=1 start=1 stop=6 step=2"}, NULL},
    {{OP_slice, "f", "7x3", "dim=0 start=2 stop=7 step=1"}, NULL},
    {{OP_slice_backward, FLOATS, "3x3", "dim=1 start=1 step=2 size=7"}, NULL},
    {{OP_cat, FLOATS, "2x3 2x1 2x5", "dim=1"}, NULL},
    {{OP_cat, "f", "3 4", "dim=0"}, NULL},

    {{OP_neg, FLOATS, "33~n", ""}, NULL},
    {{OP_abs, FLOATS, "33~z", ""}, NULL},
    {{OP_relu, FLOATS, "33~z", ""}, NULL},
    {{OP_gelu_erf, FLOATS, "33~n", ""}, NULL},
    {{OP_gelu_tanh, FLOATS, "33~n", ""}, NULL},
    {{OP_silu, FLOATS, "33~n", ""}, NULL},
    {{OP_sigmoid, FLOATS, "33~n", ""}, NULL},
    {{OP_tanh, FLOATS, "33~n", ""}, NULL},
    {{OP_erf, FLOATS, "33~n", ""}, NULL},
    {{OP_sin, FLOATS, "33~n", ""}, NULL},
    {{OP_cos, FLOATS, "33~n", ""}, NULL},
    {{OP_sqrt, FLOATS, "33~v", ""}, NULL},
    {{OP_exp, FLOATS, "33~n", ""}, NULL},
    {{OP_expm1, FLOATS, "33~n", ""}, NULL},
    {{OP_log, FLOATS, "33~v", ""}, NULL},
    {{OP_log1p, FLOATS, "33~v", ""}, NULL},
    {{OP_log2, FLOATS, "33~v", ""}, NULL},
    {{OP_rsqrt, FLOATS, "33~v", ""}, NULL},
    {{OP_reciprocal, FLOATS, "33~v", ""}, NULL},
    {{OP_softplus, FLOATS, "33~n", ""}, NULL},

    {{OP_add, FLOATS, "7x3~n 3~n", ""}, NULL},
    {{OP_add, "f", "5x1~n 1x3~n", ""}, NULL},
    {{OP_add, "f", "s~n 7~n", ""}, NULL},
    {{OP_sub, FLOATS, "7x3~n 3~n", ""}, NULL},
    {{OP_sub, "f", "3~n 7x3~n", ""}, NULL},
    {{OP_mul, FLOATS, "7x3~n 7x1~n", ""}, NULL},
    {{OP_mul, "f", "2x1x5~n 3x1~n", ""}, NULL},
    {{OP_div, FLOATS, "7x3~n 3~q", ""}, NULL},
    {{OP_div, "f", "3~n 7x3~q", ""}, NULL},
    {{OP_remainder, FLOATS, "9{5.3,-5.3,7.1,-7.4,2.9,3.3,-1.2,0.6,8.5} 9~v", ""}, NULL},
    {{OP_pow, FLOATS, "17~v 17~n", ""}, NULL},
    {{OP_pow, "f", "5x3~v 3~n", ""}, NULL},
    {{OP_pow, "f", "7~v s{2}", ""}, NULL},
    {{OP_maximum, FLOATS, "7x3~n 3~n", ""}, NULL},
    {{OP_minimum, FLOATS, "7x3~n 3~n", ""}, NULL},
    {{OP_where, FLOATS, "o:7x3 7x3~n 3~n", ""}, NULL},
    {{OP_clamp, FLOATS, "33~z", "min=-0.75 max=1.25"}, NULL},

    {{OP_sum, FLOATS, "5x7~n", "dim=2"}, NULL},
    {{OP_sum, "f", "5x7~n", "dim=1 keepdim=1"}, NULL},
    {{OP_sum, "f", "2x3x5~n", "dim=2"}, NULL},
    {{OP_sum, "f", "5x7~n", ""}, NULL},
    {{OP_mean, FLOATS, "5x7~n", "dim=2 keepdim=1"}, NULL},
    {{OP_mean, "f", "5x7~n", "dim=1"}, NULL},
    {{OP_amax, FLOATS, "5x7~n", "dim=2"}, NULL},
    {{OP_amax, "f", "5x7~n", "dim=1 keepdim=1"}, NULL},
    {{OP_amin, FLOATS, "5x7~n", "dim=2"}, NULL},
    {{OP_softmax, FLOATS, "5x7", "dim=1"}, NULL},
    {{OP_softmax, "f", "5x7", "dim=0"}, NULL},
    {{OP_log_softmax, FLOATS, "5x7", "dim=1"}, NULL},
    {{OP_log_softmax, "f", "5x7", "dim=0"}, NULL},
    {{OP_logsumexp, FLOATS, "5x7", "dim=1"}, NULL},
    {{OP_logsumexp, "f", "5x7", "dim=0 keepdim=1"}, NULL},
    {{OP_layer_norm, FLOATS, "5x7 7 7", "dim=1"}, NULL},
    {{OP_layer_norm, "fh", "5x7 - -", "dim=1"}, NULL},
    {{OP_layer_norm, "f", "2x3x5 5 -", "dim=2"}, NULL},
    {{OP_cross_entropy_rows, FLOATS, "5x7 l:5", "dim=1"}, NULL},
    {{OP_cross_entropy_rows, FLOATS, "5x7 l:5", "dim=1 label_smoothing=0.1"}, NULL},
    {{OP_cross_entropy_rows, "f", "3x5x2 l:3x2", "dim=1"}, NULL},
    {{OP_squared_error, FLOATS, "7x3~n 3~n", ""}, NULL},

    {{OP_matmul, FLOATS, "5x3 3x4", ""}, NULL},
    {{OP_matmul, "fh", "2x3x4 2x4x3", ""}, NULL},
    {{OP_matmul, "f", "2x3x4 4x3", ""}, NULL},
    {{OP_matmul, "f", "2x1x3x2 3x2x2", ""}, NULL},
    {{OP_matmul, "f", "5 5x3", ""}, NULL},
    {{OP_matmul, "f", "3x5 5", ""}, NULL},
    {{OP_gemm, FLOATS, "5x3 3x4", ""}, NULL},
    {{OP_gemm, FLOATS, "3x5 3x4", "trans_a=1"}, NULL},
    {{OP_gemm, FLOATS, "5x3 4x3", "trans_b=1"}, NULL},
    {{OP_gemm, FLOATS, "3x5 4x3", "trans_a=1 trans_b=1"}, NULL},
    {{OP_gemm, "f", "2x3x5 2x4x3", "trans_a=1 trans_b=1"}, NULL},
    {{OP_linear, FLOATS, "5x3 4x3 4", ""}, NULL},
    {{OP_linear, "fh", "2x3x4 3x4 -", ""}, NULL},
    {{OP_linear, "f", "4 3x4 3", ""}, NULL},

    {{OP_permute, FLOATS, "2x3x4", "axis0=2 axis1=0 axis2=1"}, NULL},
    {{OP_pad, FLOATS, "3x4", "dim=1 before=1 after=2 value=3"}, NULL},
    {{OP_bce_with_logits, FLOATS, "17~n 17~y", ""}, NULL},
    {{OP_conv2d, FLOATS, "2x3x4x5 2x3x3x3 2", "pad0=1 pad1=1"}, NULL},
    {{OP_conv2d, "fh", "1x4x6x5 4x2x2x3 -", "stride0=2 stride1=1 pad0=1 pad1=0 groups=2"}, NULL},
    {{OP_conv2d, "f", "1x2x7x5 3x2x3x2 3", "dil0=2 dil1=3 stride0=1 stride1=1"}, NULL},
    {{OP_conv2d_data, FLOATS, "1x2x3x3 2x3x2x2", "stride0=2 stride1=2 h=6 w=6"}, NULL},
    {{OP_max_pool2d, FLOATS, "1x2x4x6~n", "kernel0=2 kernel1=2 stride0=2 stride1=2"}, NULL},
    {{OP_max_pool2d, "f", "1x2x5x5~n", "kernel0=3 kernel1=3 stride0=2 stride1=1 pad0=1 pad1=1"},
     NULL},
    {{OP_avg_pool2d, FLOATS, "1x2x4x5", "kernel0=2 kernel1=3 stride0=2 stride1=1 pad1=1"}, NULL},
    {{OP_adaptive_avg_pool2d, FLOATS, "1x2x5x4", "oh=3 ow=2"}, NULL},
    {{OP_interpolate_nearest, FLOATS, "1x2x2x3", "scale0=2 scale1=3"}, NULL},
    {{OP_batch_norm_eval, FLOATS, "2x3x2x3~n 3~n 3~n 2x3x2x3~d", ""}, chain_norm_eval},
    {{OP_batch_norm_eval, "fh", "5x3~n 3~n 3~n 5x3~d", ""}, chain_norm_eval},
    {{OP_batch_norm, FLOATS, "3x2x2x3~n 2~n 2~n 3x2x2x3~d", ""}, chain_batch_norm},
    {{OP_batch_norm, "fh", "7x3~n 3~n 3~n 7x3~d", ""}, chain_batch_norm},
    {{OP_conv2d, FLOATS, "2x2x4x4~n 3x2x3x3~n 3~n 2x12~d", ""}, chain_images},
    {{OP_permute, FLOATS, "2x3x3x2~n 4x3x1x1~n 3x1~n 2x6x4~d", ""}, chain_layouts},

    {{OP_pow, FLOATS, "33~v 33~d", ""}, chain_powers},
    {{OP_mul, FLOATS, "33~n 33~d", ""}, chain_shared},
    {{OP_matmul, FLOATS, "5x3~n 3x4~n 4~n 5x4~d", ""}, chain_gate},
    {{OP_sub, FLOATS, "5x3~n 3~n 5x3~d", ""}, chain_broadcast},
    {{OP_softmax, FLOATS, "5x3~n 3x4~n 5x3~d", ""}, chain_attention},
    {{OP_layer_norm, FLOATS, "5x7~n 7~n 7~n 5x7~d", ""}, chain_residual},
    {{OP_mean, FLOATS, "5x7~n 5x7~d", ""}, chain_centre},
    {{OP_cat, FLOATS, "3x5~n 3x4~d", ""}, chain_seam},
    {{OP_silu, FLOATS, "5x3~n 3x4~n 4x3~n 5x3~d", ""}, chain_mlp},

    {{OP_row_var, FLOATS, "5x7~n", "dim=1"}, NULL},
    {{OP_row_std, FLOATS, "5x7~n", "dim=0 correction=0"}, NULL},
    {{OP_like, FLOATS, "33~n 33~d", ""}, chain_like},
    {{OP_flip_axis, FLOATS, "2x3x4", "dim=1"}, NULL},
    {{OP_shifted, FLOATS, "2x2x4x3 i:2x2{1,0,-2,1}", "h=3 w=4"}, NULL},
    {{OP_drop_parts, FLOATS, "3x2x2 i:3x1x1{0,1,1}", "p=0.25"}, NULL},
};
const uint32_t n_gradient_rows = sizeof gradient_rows / sizeof *gradient_rows;

static Tensor widened(Arena *a, const Tensor *x)
{
  if (!x->present) return *x;
  Tensor t = tensor_like(a, dtype_is_float(x->dtype) ? AMPC_F32 : x->dtype, x->rank, x->dim);
  memcpy(t.at, x->at, (size_t)x->n * sizeof *t.at);
  return t;
}

GradientCase gradient_widened(Arena *a, const GradientCase *g)
{
  GradientCase w = *g;
  for (uint32_t i = 0; i < g->base.n_in; i++) w.base.in[i] = widened(a, &g->base.in[i]);
  w.dy = widened(a, &g->dy);
  if (g->row->row.op == OP_cast) w.base.attr[0].i = AMPC_F32;
  return w;
}
