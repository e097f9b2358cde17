/* Gradient rules of ops along an axis: products, cumulative sums and products, sorting. */
#include "gradient.h"
#include <assert.h>
#include <string.h>

/* x_0 .. x_c without x_c itself, or from the other end. */
static Value others(Back *b, Value x, int64_t dim, bool reverse)
{
  return ir_append(
      b->c, &b->at, OP_cumprod, &x, 1,
      ATTRS({"dim", {.i = dim}}, {"reverse", {.i = reverse}}, {"exclusive", {.i = true}}));
}

/* dx_c = dy times all others, those before c and those behind: right where some are 0. The axes
 * touch (pass precision): they are one in the middle of three. */
void grad_prod(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  Node from = *back_in(b, 0);
  uint64_t axes = (uint64_t)attr_int(&b->n, "dim");
  int64_t dim[3] = {1, 1, 1}, one[3];
  for (uint32_t i = 0, at = 0; i < from.rank; i++) {
    if (axes >> i & 1) at = 1;
    if (at == 1 && !(axes >> i & 1)) at = 2;
    dim[at] *= from.dim[i];
  }
  memcpy(one, dim, sizeof one);
  one[1] = 1;
  Value flat = ir_reshape(c, &b->at, x[0], dim, 3);
  Value rest = back_mul(b, others(b, flat, 1, false), others(b, flat, 1, true));
  Value dx = back_mul(b, ir_reshape(c, &b->at, dy, one, 3), rest);
  out_dx[0] = ir_reshape(c, &b->at, dx, from.dim, from.rank);
}

/* x_c is in y_c and all behind it. */
void grad_cumsum(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  (void)x;
  out_dx[0] = ir_append(c, &b->at, OP_cumsum, &dy, 1,
                        ATTRS({"dim", {.i = attr_int(&b->n, "dim")}},
                              {"reverse", {.i = !attr_int(&b->n, "reverse")}}));
}

/* dx_c = (x_0 .. x_c-1) s_c with s_c = dy_c + x_c+1 s_c+1: no division, so right where x is 0. */
void grad_cumprod(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim");
  assert(!attr_int(&b->n, "reverse") && !attr_int(&b->n, "exclusive"));
  Value sums =
      ir_append(c, &b->at, OP_line_sums, (Value[]){dy, x[0]}, 2, ATTRS({"dim", {.i = dim}}));
  out_dx[0] = back_mul(b, others(b, x[0], dim, false), sums);
}

/* Each gradient goes back to the place that its element was taken from. */
void grad_pick_ordered(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim");
  out_dx[0] = ir_append(c, &b->at, OP_place_ordered, (Value[]){dy, x[1]}, 2,
                        ATTRS({"dim", {.i = dim}}, {"size", {.i = back_in(b, 0)->dim[dim]}}));
}
