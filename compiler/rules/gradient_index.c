/* Gradient rules of ops that read or write elements at the indices in a tensor. */
#include "gradient.h"

/* Returns v [first, second, rest] as [second, first, rest]; as [second, rest] if `first` is 1. */
static Value turned(Back *b, Value v, int64_t first, int64_t second, int64_t rest)
{
  v = ir_reshape(b->c, &b->at, v, (int64_t[]){first, second, rest}, 3);
  if (first == 1) return ir_reshape(b->c, &b->at, v, (int64_t[]){second, rest}, 2);
  const uint32_t axes[] = {1, 0, 2};
  return ir_permute(b->c, &b->at, v, axes);
}

/* y[o, k, i] = x[o, index[k], i]: the gradient of a row of x is the sum of dy over all k that name
 * the row. The axis is moved to the front and back again, so that each index names one contiguous
 * row. */
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

/* y[.., i] = x[.., index[.., i]]: dx is 0 plus dy at the indices. */
void grad_gather(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim"), size = back_in(b, 0)->dim[dim];
  out_dx[0] = ir_append(c, &b->at, OP_scatter, (Value[]){dy, x[1], {0}}, 3,
                        ATTRS({"dim", {.i = dim}}, {"size", {.i = size}}));
}

/* y is x plus src at the indices: dsrc is dy at the indices, dx is dy. */
void grad_scatter(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  out_dx[0] = ir_append(c, &b->at, OP_gather, (Value[]){dy, x[1]}, 2,
                        ATTRS({"dim", {.i = attr_int(&b->n, "dim")}}));
  out_dx[2] = dy;
}

/* Row i of dy is added to row index[i] of the result, except to row `padding`. */
void grad_index_select_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  Value rows = ir_append(c, &b->at, OP_index_select, (Value[]){dy, x[1]}, 2, NULL);
  Value padding = ir_integer(c, &b->at, attr_int(&b->n, "padding"));
  Value kept = back_binary(b, OP_ne, x[1], padding);
  int64_t dim[MAX_RANK] = {back_in(b, 1)->dim[0], 1, 1, 1, 1, 1};
  kept = ir_reshape(c, &b->at, kept, dim, back_in(b, 0)->rank);
  out_dx[0] = back_where(b, kept, rows, back_number(b, 0));
}

static Value weighted(Back *b, OpKind op, Value first, Value second, Value place, int64_t size)
{
  const NamedAttr *attrs = op == OP_weighted_scatter ? ATTRS({"size", {.i = size}}) : NULL;
  return ir_append(b->c, &b->at, op, (Value[]){first, second, place}, 3, attrs);
}

void grad_weighted_gather(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  out_dx[0] = weighted(b, OP_weighted_scatter, dy, x[1], x[2], back_in(b, 0)->dim[2]);
  out_dx[1] = weighted(b, OP_weighted_products, dy, x[0], x[2], 0);
}

void grad_weighted_scatter(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  out_dx[0] = weighted(b, OP_weighted_gather, dy, x[1], x[2], 0);
  out_dx[1] = weighted(b, OP_weighted_products, x[0], dy, x[2], 0);
}

void grad_weighted_products(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  out_dx[0] = weighted(b, OP_weighted_gather, x[1], dy, x[2], 0);
  out_dx[1] = weighted(b, OP_weighted_scatter, x[0], dy, x[2], back_in(b, 1)->dim[2]);
}
