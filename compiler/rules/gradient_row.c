/* Gradient rules of reductions and of ops that work on rows. */
#include "gradient.h"
#include <math.h>

/* Restores the reduced axes of v with size 1, so that v broadcasts to x: for x [2, 3, 4] summed
 * over axis 1, v [2, 4] becomes [2, 1, 4]. */
static Value keep_axes(Back *b, Value v, uint64_t axes)
{
  Node x = *back_in(b, 0);
  for (uint32_t i = 0; i < x.rank; i++) {
    if ((axes >> i) & 1) x.dim[i] = 1;
  }
  return ir_reshape(b->c, &b->at, v, x.dim, x.rank);
}

static Value expand_to_input(Back *b, Value v)
{
  Node x = *back_in(b, 0);
  return ir_expand(b->c, &b->at, v, x.dim, x.rank);
}

/* y = sum of x: each element of x receives dy. */
RULE(grad_sum, expand_to_input(b, keep_axes(b, dy, (uint64_t)attr_int(&b->n, "dim"))))

/* y = sum of x / n: each element of x receives dy / n. The division comes before the expansion, so
 * there is one per row, not one per element. */
void grad_mean(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  double count = (double)(ir_elements(back_in(&b, 0)) / ir_elements(&b.n));
  Value share = back_binary(&b, OP_div, dy, back_number(&b, count));
  out_dx[0] = expand_to_input(&b, keep_axes(&b, share, (uint64_t)attr_int(&b.n, "dim")));
}

/* amax and amin: all elements that equal the result get an equal share of dy. They are counted in
 * f32, because f16 ends at 65504 and is exact only up to 2048. */
void grad_amax(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  uint64_t axes = (uint64_t)attr_int(&b.n, "dim");
  Value x = b.n.in[0];
  Value extreme = back_binary(&b, OP_eq, x, keep_axes(&b, n, axes));
  Value count = ir_reduce(c, &b.at, OP_sum, ir_cast(c, &b.at, extreme, AMPC_F32), axes, true);
  Value wide = ir_cast(c, &b.at, keep_axes(&b, dy, axes), AMPC_F32);
  Value share = ir_cast(c, &b.at, back_binary(&b, OP_div, wide, count), b.n.dtype);
  out_dx[0] = back_where(&b, extreme, share, back_number(&b, 0));
}

/* dx = dy softmax(x). The form dy exp(x - y) is less exact: if x is large, the rounded y has too
 * few digits. A row of all -inf has y = -inf; its gradient is 0. */
void grad_logsumexp(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  uint64_t axes = 1ull << attr_int(&b.n, "dim");
  Value empty = back_binary(&b, OP_eq, n, back_number(&b, -INFINITY));
  Value share =
      ir_append(c, &b.at, OP_softmax, b.n.in, 1, ATTRS({"dim", {.i = attr_int(&b.n, "dim")}}));
  share = back_where(&b, keep_axes(&b, empty, axes), back_number(&b, 0), share);
  out_dx[0] = back_mul(&b, keep_axes(&b, dy, axes), share);
}

/* z = y (dy - sum(dy y)). The gradient of dy is the same op with dz instead of dy; the gradient of
 * y is dz (dy - sum(dy y)) - dy sum(dz y). */
void grad_softmax_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value d = back_wide(b, b->n.in[0]), y = back_wide(b, b->n.in[1]), dz = back_wide(b, dy);
  uint64_t axis = 1ull << attr_int(&b->n, "dim");
  Value own = ir_reduce(c, &b->at, OP_sum, back_mul(b, d, y), axis, true);
  Value back_own = ir_reduce(c, &b->at, OP_sum, back_mul(b, dz, y), axis, true);
  Value first = back_mul(b, dz, back_binary(b, OP_sub, d, own));
  out_dx[0] = back_like(b, OP_softmax_backward, (Value[]){dy, b->n.in[1]}, 2);
  out_dx[1] = back_binary(b, OP_sub, first, back_mul(b, d, back_own));
}
