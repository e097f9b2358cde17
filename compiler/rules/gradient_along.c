/* Gradient rules of ops along an axis: products, cumulative sums and products, sorting. */
#include "gradient.h"
#include <string.h>

Value back_flip(Back *b, Value x, int64_t dim)
{
  return ir_append(b->c, &b->at, OP_flip_axis, &x, 1, ATTRS({"dim", {.i = dim}}));
}

Value back_moved(Back *b, Value x, int64_t dim, int64_t by)
{
  int64_t size = ir_node(b->c->graph, x)->dim[dim], start = by < 0;
  if (size == 1) return back_binary(b, OP_full_like, x, back_number(b, 0));
  x = ir_append(
      b->c, &b->at, OP_slice, &x, 1,
      ATTRS({"dim", {.i = dim}}, {"start", {.i = start}}, {"stop", {.i = start + size - 1}}));
  return ir_append(b->c, &b->at, OP_pad, &x, 1,
                   ATTRS({"dim", {.i = dim}}, {"before", {.i = by > 0}}, {"after", {.i = by < 0}}));
}

/* Returns, for each c, the product of the elements before c, or with `reverse` after c. */
static Value others(Back *b, Value x, int64_t dim, bool reverse)
{
  return ir_append(
      b->c, &b->at, OP_cumprod, &x, 1,
      ATTRS({"dim", {.i = dim}}, {"reverse", {.i = reverse}}, {"exclusive", {.i = true}}));
}

/* dx_c is dy times the product of all other elements, before and after c. Elements may be 0. The
 * reduced axes are adjacent (pass precision), so they form the middle of three axes. */
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

/* x_c contributes to y_c and all later results, so dx sums dy from the other end. */
RULE(grad_cumsum, ir_append(c, &b->at, OP_cumsum, &dy, 1,
                            ATTRS({"dim", {.i = attr_int(&b->n, "dim")}},
                                  {"reverse", {.i = !attr_int(&b->n, "reverse")}})))

/* dx_c = (x_0 .. x_c-1) s_c with s_c = dy_c + x_c+1 s_c+1. The formula needs no division, so x may
 * be 0. With `reverse` the axes of x, dy and dx are reversed. With `exclusive` dy is shifted by
 * one. */
void grad_cumprod(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim");
  bool reverse = attr_int(&b->n, "reverse");
  Value from = reverse ? back_flip(b, x[0], dim) : x[0];
  if (reverse) dy = back_flip(b, dy, dim);
  if (attr_int(&b->n, "exclusive")) dy = back_moved(b, dy, dim, -1);
  Value sums =
      ir_append(c, &b->at, OP_line_sums, (Value[]){dy, from}, 2, ATTRS({"dim", {.i = dim}}));
  Value dx = back_mul(b, others(b, from, dim, false), sums);
  out_dx[0] = reverse ? back_flip(b, dx, dim) : dx;
}

/* s_c = b_c + a_c+1 s_c+1 or, with `forth`, s_c = b_c + a_c s_c-1. db is this sum, of ds instead of
 * b, in the other direction. da_c is db_c times the s before c, or without `forth` s_c times the db
 * before c. */
void grad_line_sums(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim");
  bool forth = attr_int(&b->n, "forth");
  Value db = ir_append(c, &b->at, OP_line_sums, (Value[]){dy, x[1]}, 2,
                       ATTRS({"dim", {.i = dim}}, {"forth", {.i = !forth}}));
  out_dx[0] = db;
  out_dx[1] = back_mul(b, forth ? db : n, back_moved(b, forth ? n : db, dim, 1));
}

/* Each element of dy is placed at the position from which forward took the element. */
void grad_pick_ordered(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim");
  out_dx[0] = ir_append(c, &b->at, OP_place_ordered, (Value[]){dy, x[1]}, 2,
                        ATTRS({"dim", {.i = dim}}, {"size", {.i = back_in(b, 0)->dim[dim]}}));
}
