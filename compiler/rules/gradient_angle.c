/* Gradient rules of trigonometric and hyperbolic functions. */
#include "gradient.h"

/* y = sin(x): dx = dy cos(x) */
RULE(grad_sin, back_mul(b, dy, back_unary(b, OP_cos, x[0])))

/* y = cos(x): dx = -dy sin(x) */
RULE(grad_cos, back_mul(b, dy, back_unary(b, OP_neg, back_unary(b, OP_sin, x[0]))))

/* y = tan(x): dx = dy (1 + y^2) */
void grad_tan(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  Value square = back_mul(b, n, n);
  out_dx[0] = back_mul(b, dy, back_binary(b, OP_add, square, back_number(b, 1)));
}

/* Returns 1 / sqrt(1 - x^2). Computes 1 - x^2 as (1 - x) (1 + x), which loses no digits near 1. */
static Value arc_slope(Back *b, Value x)
{
  Value left = back_binary(b, OP_sub, back_number(b, 1), x);
  Value right = back_binary(b, OP_add, x, back_number(b, 1));
  return back_unary(b, OP_rsqrt, back_mul(b, left, right));
}

/* y = asin(x): dx = dy / sqrt(1 - x^2) */
RULE(grad_asin, back_mul(b, dy, arc_slope(b, x[0])))

/* y = acos(x): dx = -dy / sqrt(1 - x^2) */
RULE(grad_acos, back_mul(b, dy, back_unary(b, OP_neg, arc_slope(b, x[0]))))

/* y = sinh(x): dx = dy cosh(x) */
RULE(grad_sinh, back_mul(b, dy, back_unary(b, OP_cosh, x[0])))

/* y = cosh(x): dx = dy sinh(x) */
RULE(grad_cosh, back_mul(b, dy, back_unary(b, OP_sinh, x[0])))

/* z = atan2(y, x): the gradient of y is dz x / (x^2 + y^2), that of x is -dz y / (x^2 + y^2) */
void grad_atan2(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  out_dx[0] = ir_append(c, &b->at, OP_atan2_backward, (Value[]){dy, x[1], x[0]}, 3, NULL);
  Value back_dy = back_unary(b, OP_neg, dy);
  out_dx[1] = ir_append(c, &b->at, OP_atan2_backward, (Value[]){back_dy, x[0], x[1]}, 3, NULL);
}
