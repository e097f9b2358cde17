/* Shape rules of ops that read or write elements at the indices in a tensor. */
#include "rules.h"
#include <string.h>

/* Reports E311 unless input i has an integer type. */
static bool need_integers(Compile *c, const Node *n, uint32_t i)
{
  const Node *index = ir_in(c, n, i);
  if (dtype_is_integer(index->dtype)) return true;
  diag_error(c, E311, n->span, "%s needs an index of integers, got %s", op_of(n)->name,
             ir_type_text(c, index));
  return diag_help(c, "`.to(i64)`");
}

/* x [4, 7, 5] with an index [2, 3] along axis 1 becomes [4, 2, 3, 5]. */
bool shape_index_select(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0), *index = ir_in(c, n, 1);
  int64_t dim[2 * MAX_RANK];
  uint32_t axis = (uint32_t)attr_int(n, "axis"), rank = 0;
  if (!need_integers(c, n, 1)) return false;
  for (uint32_t i = 0; i < axis; i++) dim[rank++] = x->dim[i];
  for (uint32_t i = 0; i < index->rank; i++) dim[rank++] = index->dim[i];
  for (uint32_t i = axis + 1; i < x->rank; i++) dim[rank++] = x->dim[i];
  n->dtype = x->dtype;
  return rule_set_dims(c, n, rank, dim);
}

/* dy [k, ..] with an index [k] becomes [size, ..]. Only gradient rules create this node. */
bool shape_index_select_backward(Compile *c, Node *n)
{
  rule_like(n, ir_in(c, n, 0), AMPC_F32);
  n->dim[0] = attr_int(n, "size");
  return true;
}

/* Checks that the index has the rank of x and, except along `dim`, the sizes of x. */
static bool index_fits(Compile *c, const Node *n, const Node *x)
{
  const Node *index = ir_in(c, n, 1);
  int64_t axis = attr_int(n, "dim");
  bool fits = index->rank == x->rank && axis < x->rank;
  for (uint32_t i = 0; fits && i < x->rank; i++) fits = i == axis || index->dim[i] == x->dim[i];
  if (fits) return true;
  return diag_error(c, E311, n->span, "%s along axis %lld: the index %s does not fit %s",
                    op_of(n)->name, (long long)axis, ir_dims_text(c, index), ir_dims_text(c, x));
}

bool shape_gather(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  if (!need_integers(c, n, 1) || !index_fits(c, n, x)) return false;
  return rule_like(n, ir_in(c, n, 1), x->dtype);
}

/* The result has the shape of x (if given) and of `src`, but `size` elements along `dim`. The
 * result is f32, also for 16-bit elements. */
bool shape_scatter(Compile *c, Node *n)
{
  const Node *src = ir_in(c, n, 0), *index = ir_in(c, n, 1);
  const Node *x = n->in[2].id ? ir_in(c, n, 2) : NULL;
  int64_t dim[MAX_RANK];
  if (!need_integers(c, n, 1) || !rule_need_float(c, n, 0) || (x && !rule_need_float(c, n, 2)))
    return false;
  if (!ir_same_dims(src, index))
    return diag_error(c, E311, n->span,
                      "scatter: src is %s and index is %s; they need the same shape",
                      ir_dims_text(c, src), ir_dims_text(c, index));
  if (x && !index_fits(c, n, x)) return false;
  memcpy(dim, src->dim, sizeof dim);
  dim[attr_int(n, "dim")] = attr_int(n, "size");
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, src->rank, dim);
}

/* Sets the shape [n, c, last] of f32. Inputs 1 and 2 have n samples. */
static bool weighted(Compile *c, Node *n, int64_t middle, int64_t last)
{
  for (uint32_t i = 0; i < 3; i++) {
    const Node *in = ir_in(c, n, i);
    if (in->rank != 3 || in->dim[0] != ir_in(c, n, 0)->dim[0])
      return diag_error(c, E311, n->span, "%s needs inputs [n, .., ..], got %s", op_of(n)->name,
                        ir_dims_text(c, in));
  }
  if (!need_integers(c, n, 2)) return false;
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, 3, (int64_t[]){ir_in(c, n, 0)->dim[0], middle, last});
}

bool shape_weighted_gather(Compile *c, Node *n)
{
  return weighted(c, n, ir_in(c, n, 0)->dim[1], ir_in(c, n, 2)->dim[2]);
}

bool shape_weighted_scatter(Compile *c, Node *n)
{
  return weighted(c, n, ir_in(c, n, 0)->dim[1], attr_int(n, "size"));
}

bool shape_weighted_products(Compile *c, Node *n)
{
  return weighted(c, n, ir_in(c, n, 2)->dim[1], ir_in(c, n, 2)->dim[2]);
}
