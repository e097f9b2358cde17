/* Tangents of products along an axis. */
#include "tangent.h"
#include <string.h>

/* The tangent of y_c = x_0 .. x_c is t_c = x_c t_c-1 + (x_0 .. x_c-1) v_c. The formula needs no
 * division, so x may be 0. */
static Value of_products(Back *b, Value x, Value v, int64_t dim)
{
  Value before = ir_append(b->c, &b->at, OP_cumprod, &x, 1,
                           ATTRS({"dim", {.i = dim}}, {"exclusive", {.i = true}}));
  Value in[] = {back_mul(b, before, v), x};
  return ir_append(b->c, &b->at, OP_line_sums, in, 2,
                   ATTRS({"dim", {.i = dim}}, {"forth", {.i = true}}));
}

Value tangent_cumprod(Forward *f)
{
  Back *b = &f->b;
  int64_t dim = attr_int(&b->n, "dim");
  bool reverse = attr_int(&b->n, "reverse");
  Value x = reverse ? back_flip(b, b->n.in[0], dim) : b->n.in[0];
  Value v = reverse ? back_flip(b, f->v[0], dim) : f->v[0];
  Value t = of_products(b, x, v, dim);
  if (attr_int(&b->n, "exclusive")) t = back_moved(b, t, dim, 1);
  return reverse ? back_flip(b, t, dim) : t;
}

/* Returns the tangent of the product over the adjacent axes [from, to) of x, with these axes in
 * size 1. It is the last tangent of each row. */
static Value of_axes(Back *b, Value x, Value v, uint32_t from, uint32_t to)
{
  Node n = *ir_node(b->c->graph, x);
  int64_t flat[3] = {1, 1, 1};
  for (uint32_t i = 0; i < n.rank; i++) flat[i < from ? 0 : i < to ? 1 : 2] *= n.dim[i];
  Value t =
      of_products(b, ir_reshape(b->c, &b->at, x, flat, 3), ir_reshape(b->c, &b->at, v, flat, 3), 1);
  t = ir_append(b->c, &b->at, OP_slice, &t, 1,
                ATTRS({"dim", {.i = 1}}, {"start", {.i = flat[1] - 1}}, {"stop", {.i = flat[1]}}));
  for (uint32_t i = from; i < to; i++) n.dim[i] = 1;
  return ir_reshape(b->c, &b->at, t, n.dim, n.rank);
}

Value tangent_prod(Forward *f)
{
  Back *b = &f->b;
  Value x = b->n.in[0], v = f->v[0];
  uint32_t rank = back_in(b, 0)->rank;
  uint64_t axes;
  op_axes(&b->n, &axes);
  for (uint32_t from = 0, to; from < rank; from = to) {
    uint64_t run = 0;
    for (to = from; to < rank && axes >> to & 1; to++) run |= 1ull << to;
    if (to++ == from) continue;
    v = of_axes(b, x, v, from, to - 1);
    x = ir_reduce(b->c, &b->at, OP_prod, x, run, true);
  }
  return tangent_shaped(f, v);
}

/* s_c = b_c + a s_n, with n = c + 1 and a = a_n or, with `forth`, n = c - 1 and a = a_c. The
 * tangent is this sum, with the tangent of b_c plus s_n times the tangent of a instead of b_c. */
Value tangent_line_sums(Forward *f)
{
  Back *b = &f->b;
  int64_t dim = attr_int(&b->n, "dim");
  bool forth = attr_int(&b->n, "forth");
  Value part = f->v[0];
  if (f->v[1].id) {
    Value own = forth ? back_mul(b, f->v[1], back_moved(b, b->y, dim, 1))
                      : back_moved(b, back_mul(b, f->v[1], b->y), dim, -1);
    part = tangent_sum(f, part, own);
  }
  return back_like(b, OP_line_sums, (Value[]){part, b->n.in[1]}, 2);
}
