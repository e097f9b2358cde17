/* Gradient rules of ops that take or put elements where a tensor says. */
#include "gradient.h"

/* [a, b, c] as [b, a, c]; with a = 1 a reshape. */
static Value turned(Back *b, Value v, int64_t first, int64_t second, int64_t rest)
{
  v = ir_reshape(b->c, &b->at, v, (int64_t[]){first, second, rest}, 3);
  if (first == 1) return ir_reshape(b->c, &b->at, v, (int64_t[]){second, rest}, 2);
  const uint32_t axes[] = {1, 0, 2};
  return ir_permute(b->c, &b->at, v, axes);
}

/* y[o, k, i] = x[o, index[k], i]: each row of x takes the sum of the dy of the places that name it.
 * The axis goes to the front and back again, so that a row is all that one number names. */
void grad_index_select(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  const Node from = *back_in(b, 0);
  int64_t axis = attr_int(&b->n, "axis"), size = from.dim[axis], outer = 1, inner = 1;
  int64_t count = ir_elements(back_in(b, 1));
  for (uint32_t i = 0; i < from.rank; i++)
    *(i < axis ? &outer : &inner) *= i == axis ? 1 : from.dim[i];
  Value in[] = {turned(b, dy, outer, count, inner), ir_reshape(c, &b->at, x[1], &count, 1)};
  Value sums =
      ir_append(c, &b->at, OP_index_select_backward, in, 2,
                ATTRS({"size", {.i = size}}, {"padding", {.i = attr_int(&b->n, "padding")}}));
  if (outer > 1) sums = turned(b, sums, size, outer, inner);
  out_dx[0] = ir_reshape(c, &b->at, sums, from.dim, from.rank);
}

/* y[.., i] = x[.., index[.., i]]: dy goes back where it came from. */
void grad_gather(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim"), size = back_in(b, 0)->dim[dim];
  out_dx[0] = ir_append(c, &b->at, OP_scatter_add, (Value[]){dy, x[1], {0}}, 3,
                        ATTRS({"dim", {.i = dim}}, {"size", {.i = size}}));
}

/* y = x, and src where the index says: dsrc is the dy of these places. */
void grad_scatter_add(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  out_dx[0] = ir_append(c, &b->at, OP_gather, (Value[]){dy, x[1]}, 2,
                        ATTRS({"dim", {.i = attr_int(&b->n, "dim")}}));
  out_dx[2] = dy;
}
