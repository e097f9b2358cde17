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

/* The element at the index of argmax receives all of dy, even if other elements equal it. */
RULE(grad_max_along, back_like(b, OP_max_along_backward, (Value[]){b->n.in[0], dy}, 2))

RULE(grad_min_along, back_like(b, OP_min_along_backward, (Value[]){b->n.in[0], dy}, 2))

/* dx = y (dy - sum(dy y)), with the sum along the row */
RULE(grad_softmax, back_like(b, OP_softmax_backward, (Value[]){dy, n}, 2))

/* dx = dy - exp(y) sum(dy), with the sum along the row */
RULE(grad_log_softmax, back_like(b, OP_log_softmax_backward, (Value[]){dy, n}, 2))

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

/* y = sum (x - mean)^2 / (n - correction): dx = dy 2 (x - mean) / (n - correction). The terms
 * through the mean cancel. */
RULE(grad_row_var, back_like(b, OP_row_var_backward, (Value[]){b->n.in[0], dy}, 2))

/* y = sqrt(var): dx = dy (x - mean) / (y (n - correction)); 0 if y is 0 */
RULE(grad_row_std, back_like(b, OP_row_std_backward, (Value[]){b->n.in[0], n, dy}, 3))

/* y = z weight + bias with z = (x - mean) rstd. z is computed again, as layer_norm without weight:
 * that is cheaper than keeping it. dweight = dy z and dbias = dy have the shape of y; backward.c
 * sums them. */
void grad_layer_norm(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value x = b.n.in[0], weight = b.n.in[1], bias = b.n.in[2];
  out_dx[0] = back_like(&b, OP_layer_norm_backward, (Value[]){x, dy, weight}, 3);
  if (weight.id) out_dx[1] = back_mul(&b, dy, back_like(&b, OP_layer_norm, &x, 1));
  if (bias.id) out_dx[2] = dy;
}

/* y = z weight with z = x r. z is computed again, as rms_norm without weight. dweight = dy z has
 * the shape of y. */
void grad_rms_norm(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value x = b.n.in[0], weight = b.n.in[1];
  out_dx[0] = back_like(&b, OP_rms_norm_backward, (Value[]){x, dy, weight}, 3);
  if (weight.id) out_dx[1] = back_mul(&b, dy, back_like(&b, OP_rms_norm, &x, 1));
}

/* dx = dy (softmax(x) - one_hot(target)), with one dy per row. The formula with label smoothing is
 * in ops.def. Targets are integers and have no gradient. */
void grad_cross_entropy(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value in[3] = {b.n.in[0], b.n.in[1], dy};
  out_dx[0] = back_like(&b, OP_cross_entropy_backward, in, 3);
}
