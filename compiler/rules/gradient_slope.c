/* Gradient rules of the ops NAME_backward, which compute dy times the derivative ("slope") of a
 * function at x or y. Tangents also use these ops (Note [tangents] in tangent.c), and tangents are
 * differentiated. The gradient of dy is the same op with dz instead of dy. The gradient of x or y
 * is dz dy times the second derivative. */
#include "gradient.h"
#include <math.h>

/* Returns the gradient of dy: the op of the node with dz instead of dy. */
static Value same_slope(Back *b)
{
  Value *in = arena_array(b->c->arena, Value, b->n.n_in);
  for (uint32_t i = 1; i < b->n.n_in; i++) in[i] = b->n.in[i];
  in[0] = b->dy;
  return back_like(b, b->n.op, in, b->n.n_in);
}

/* Returns input i in f32, because the terms of second derivatives cancel. */
static Value at_point(Back *b, uint32_t i)
{
  return back_wide(b, b->n.in[i]);
}

/* Returns dz dy bend. */
static Value bent(Back *b, Value bend)
{
  return back_mul(b, back_mul(b, back_wide(b, b->dy), at_point(b, 0)), bend);
}

/* Returns a + factor x. */
static Value line(Back *b, double a, double factor, Value x)
{
  return back_binary(b, OP_add, back_scale(b, x, factor), back_number(b, a));
}

/* Slopes that are piecewise constant (relu, clamp): only dy has a gradient. */
RULE(grad_flat_slope, same_slope(b))

/* z = dy y (1 - y): its derivative by y is dy (1 - 2 y) */
void grad_sigmoid_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value y = at_point(b, 1);
  out_dx[0] = same_slope(b);
  out_dx[1] = bent(b, line(b, 1, -2, y));
}

/* z = dy (1 - y^2): its derivative by y is -2 dy y */
void grad_tanh_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value y = at_point(b, 1);
  out_dx[0] = same_slope(b);
  out_dx[1] = bent(b, back_scale(b, y, -2));
}

/* silu'' = s (1 - s) (2 + x (1 - 2 s)), s = sigmoid(x) */
void grad_silu_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value x = at_point(b, 1);
  Value s = back_unary(b, OP_sigmoid, x);
  Value turn = line(b, 2, 1, back_mul(b, x, line(b, 1, -2, s)));
  out_dx[0] = same_slope(b);
  out_dx[1] = bent(b, back_mul(b, back_mul(b, s, line(b, 1, -1, s)), turn));
}

/* gelu'' = phi(x) (2 - x^2), phi the normal density */
void grad_gelu_erf_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value x = at_point(b, 1);
  Value square = back_mul(b, x, x);
  Value density =
      back_scale(b, back_unary(b, OP_exp, back_scale(b, square, -0.5)), 1 / sqrt(2 * acos(-1.0)));
  out_dx[0] = same_slope(b);
  out_dx[1] = bent(b, back_mul(b, density, line(b, 2, -1, square)));
}

/* y = x (1 + t) / 2, t = tanh(u), u = k (x + a x^3):
 *   y'' = (1 - t^2) (u' + x (u'' / 2 - t u'^2)), u' = k (1 + 3 a x^2), u'' / 2 = 3 k a x */
void grad_gelu_tanh_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value x = at_point(b, 1);
  const double k = sqrt(2 / acos(-1.0)), a = 0.044715;
  Value square = back_mul(b, x, x);
  Value t = back_unary(b, OP_tanh, back_mul(b, x, line(b, k, k * a, square)));
  Value slope = line(b, k, 3 * k * a, square);
  Value turn = back_mul(b, t, back_mul(b, slope, slope));
  Value inner = back_binary(b, OP_sub, back_scale(b, x, 3 * k * a), turn);
  Value sum = back_binary(b, OP_add, slope, back_mul(b, x, inner));
  out_dx[0] = same_slope(b);
  out_dx[1] = bent(b, back_mul(b, line(b, 1, -1, back_mul(b, t, t)), sum));
}

/* elu'' = alpha e^x below 0, else 0 */
void grad_elu_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value x = at_point(b, 1);
  Value zero = back_number(b, 0), above = back_binary(b, OP_gt, x, zero);
  Value bend = back_scale(b, back_unary(b, OP_exp, back_binary(b, OP_minimum, x, zero)),
                          attr_float(&b->n, "alpha"));
  out_dx[0] = same_slope(b);
  out_dx[1] = bent(b, back_where(b, above, zero, bend));
}

/* hardswish'' = 1/3 between -3 and 3, else 0 */
void grad_hardswish_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value x = at_point(b, 1);
  Value within = back_binary(b, OP_lt, back_unary(b, OP_abs, x), back_number(b, 3));
  out_dx[0] = same_slope(b);
  out_dx[1] = bent(b, back_where(b, within, back_number(b, 1.0 / 3), back_number(b, 0)));
}

/* s = x / r with r = x^2 + y^2. Its derivatives: by x (y^2 - x^2) / r^2, by y -2 x y / r^2 */
void grad_atan2_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value x = at_point(b, 1), y = at_point(b, 2);
  Value xx = back_mul(b, x, x), yy = back_mul(b, y, y);
  Value r = back_binary(b, OP_add, xx, yy), rr = back_mul(b, r, r);
  Value both = back_scale(b, back_mul(b, x, y), -2);
  out_dx[0] = same_slope(b);
  out_dx[1] = bent(b, back_binary(b, OP_div, back_binary(b, OP_sub, yy, xx), rr));
  out_dx[2] = bent(b, back_binary(b, OP_div, both, rr));
}

/* s = (x - t) / (x (1 - x)). Its derivatives: by x (x^2 - 2 x t + t) / (x (1 - x))^2, by t -1 / (x
 * (1 - x)) */
void grad_bce_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value x = at_point(b, 1), t = at_point(b, 2);
  Value room = back_mul(b, x, line(b, 1, -1, x));
  Value twice = back_scale(b, back_mul(b, x, t), -2);
  Value top = back_binary(b, OP_add, back_mul(b, x, x), back_binary(b, OP_add, twice, t));
  out_dx[0] = same_slope(b);
  out_dx[1] = bent(b, back_binary(b, OP_div, top, back_mul(b, room, room)));
  out_dx[2] = bent(b, back_binary(b, OP_div, back_number(b, -1), room));
}

/* z = y (dy - sum(dy y)). The gradient of dy is the same op with dz instead of dy; the gradient of
 * y is dz (dy - sum(dy y)) - dy sum(dz y). */
void grad_softmax_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value d = at_point(b, 0), y = at_point(b, 1), dz = back_wide(b, dy);
  uint64_t axis = 1ull << attr_int(&b->n, "dim");
  Value own = ir_reduce(c, &b->at, OP_sum, back_mul(b, d, y), axis, true);
  Value back_own = ir_reduce(c, &b->at, OP_sum, back_mul(b, dz, y), axis, true);
  Value first = back_mul(b, dz, back_binary(b, OP_sub, d, own));
  out_dx[0] = same_slope(b);
  out_dx[1] = back_binary(b, OP_sub, first, back_mul(b, d, back_own));
}
