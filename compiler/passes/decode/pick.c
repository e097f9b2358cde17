/* Part of pass decode: a value that depends on positions and no token, at the new positions.
 *
 * The value itself has all positions of the longest text. Elementwise ops, views and reads of
 * tables are computed for the new positions alone: angles, masks, embeddings of positions. Of any
 * other op, the rows are selected from the whole result, which each step then computes. */
#include "decode.h"
#include <string.h>

/* Returns the rows at the new positions, moved by `start`. */
static Value select_rows(Decode *d, const Node *like, Value v, uint32_t axis, int64_t start)
{
  Cursor at = decode_cursor(d, like);
  Value index = d->positions;
  if (start) index = ir_binary(d->c, &at, OP_add, index, ir_integer(d->c, &at, start));
  return ir_append(d->c, &at, OP_index_select, (Value[]){v, index}, 2,
                   ATTRS({"axis", {.i = axis}}));
}

static Value numbers(Decode *d, const Cursor *at, const int64_t *dim, uint32_t rank, int64_t times)
{
  Value v = ir_append(d->c, at, OP_indices, NULL, 0, ir_shape_attrs(d->c, dim, rank));
  return times == 1 ? v : ir_binary(d->c, at, op_named("mul"), v, ir_integer(d->c, at, times));
}

/* Indices of a tensor: the number of the row, times its size, plus those of the other axes. */
static Value pick_indices(Decode *d, const Node *n, uint32_t axis)
{
  Cursor at = decode_cursor(d, n);
  int64_t inner = dims_product(n->dim + axis + 1, n->rank - axis - 1u);
  int64_t shape[MAX_RANK];
  for (uint32_t i = 0; i < n->rank; i++) shape[i] = 1;
  shape[axis] = d->chunk;
  Value sum = d->positions;
  if (inner > 1) sum = ir_binary(d->c, &at, op_named("mul"), sum, ir_integer(d->c, &at, inner));
  sum = ir_reshape(d->c, &at, sum, shape, n->rank);
  if (inner > 1)
    sum = ir_binary(d->c, &at, OP_add, sum,
                    numbers(d, &at, n->dim + axis + 1, n->rank - axis - 1u, 1));
  if (dims_product(n->dim, axis) == 1) return sum;
  Value before = numbers(d, &at, n->dim, axis, inner * n->dim[axis]);
  memcpy(shape, n->dim, axis * sizeof *shape);
  shape[axis] = 1;
  before = ir_reshape(d->c, &at, before, shape, n->rank);
  return ir_binary(d->c, &at, OP_add, before, sum);
}

/* Finds the axis of input i that becomes `axis` of the node. Returns -1 if the input lacks it, -2
 * if the op does more than that. */
static int input_axis(const Decode *d, const Node *n, uint32_t i, uint32_t axis)
{
  const Node *x = &d->old[n->in[i].id];
  int same = (int)axis - (int)n->rank + (int)x->rank;
  uint32_t at;
  if (op_of(n)->tmpl == TMPL_map || n->op == OP_expand) {
    if (n->op == OP_full || op_has(n, T_blocks)) return -2;
    return same < 0 || x->dim[same] == 1 ? -1 : same;
  }
  if (op_has(n, T_permutes)) return (int)ir_permuted_axis(n, axis);
  if (n->op == OP_reshape) {
    int64_t before = dims_product(n->dim, axis), own = 1;
    for (uint32_t k = 0; k < x->rank; own *= x->dim[k++])
      if (own == before && x->dim[k] == n->dim[axis]) return (int)k;
    return -2;
  }
  if (n->op == OP_index_select) {
    uint32_t first = (uint32_t)attr_int(n, "axis"), rank = d->old[n->in[1].id].rank;
    if (axis >= first && axis < first + rank) return i ? (int)(axis - first) : -1;
    return i ? -1 : axis < first ? (int)axis : (int)(axis - rank + 1);
  }
  bool along = n->op == OP_slice || n->op == OP_cat;
  return along && attr_find(op_of(n), "dim", &at) && n->attr[at].i != axis ? (int)axis : -2;
}

static Value pick(Decode *d, uint32_t id, uint32_t axis)
{
  const Node *n = &d->old[id];
  Value in[n->n_in + 1];
  bool by_rows = n->n_in > 0;
  if (n->op == OP_indices) return pick_indices(d, n, axis);
  bool whole_step = n->op == OP_slice && attr_int(n, "dim") == axis && attr_int(n, "step") == 1;
  if (whole_step) return select_rows(d, n, d->map[n->in[0].id], axis, attr_int(n, "start"));
  for (uint32_t i = 0; i < n->n_in; i++)
    by_rows = by_rows && n->in[i].id && input_axis(d, n, i, axis) != -2;
  if (!by_rows || n->loop || op_draws(n)) return select_rows(d, n, d->map[id], axis, 0);
  for (uint32_t i = 0; i < n->n_in; i++) {
    int own = input_axis(d, n, i, axis);
    in[i] = own < 0 ? d->map[n->in[i].id] : decode_pick(d, n->in[i].id, (uint32_t)own);
    if (!in[i].id) return in[i];
  }
  Node copy = decode_copy(d, id, in, (int)axis);
  return decode_add(d, id, &copy);
}

Value decode_pick(Decode *d, uint32_t id, uint32_t axis)
{
  Value *out = &d->picked[axis][id];
  bool whole = d->old[id].dim[axis] == d->length && decode_share(d, id, axis) == 1;
  if (!out->id && !whole)
    decode_refuse(d, &d->old[id], "its positions share an axis with something else",
                  "keep positions in an axis of their own");
  else if (!out->id)
    *out = pick(d, id, axis);
  return *out;
}
