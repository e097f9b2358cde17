/* Shape rules of ops that move elements without computing: reshape, slice, cat, full and
 * similar. */
#include "rules.h"
#include <string.h>

/* Sets the dims of n from its attribute `shape`. */
static bool dims_from_attrs(Compile *c, Node *n)
{
  int64_t dim[MAX_RANK];
  uint32_t rank = ir_shape_of(n, dim);
  return rule_set_dims(c, n, rank, dim);
}

/* The bytes stay, so only the number of elements must match. */
bool shape_reshape(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  n->dtype = x->dtype;
  if (!dims_from_attrs(c, n)) return false;
  if (ir_elements(n) == ir_elements(x)) return true;
  diag_error(c, E304, n->span, "reshape changes the number of elements: %s to %s",
             ir_dims_text(c, x), ir_dims_text(c, n));
  return diag_help(c, "%s has %lld elements, %s has %lld", ir_dims_text(c, x),
                   (long long)ir_elements(x), ir_dims_text(c, n), (long long)ir_elements(n));
}

/* x [4, 1] may become [2, 4, 3]: its axes become the last ones, and axes of size 1 are repeated. */
bool shape_expand(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  n->dtype = x->dtype;
  if (!dims_from_attrs(c, n)) return false;
  bool fits = x->rank <= n->rank;
  for (uint32_t i = 0; fits && i < x->rank; i++) {
    int64_t d = x->dim[i];
    fits = d == 1 || d == n->dim[n->rank - x->rank + i];
  }
  if (fits) return true;
  diag_error(c, E303, n->span, "cannot expand %s to %s", ir_dims_text(c, x), ir_dims_text(c, n));
  return diag_help(c, "axes are aligned at the right, and only an axis of size 1 can be expanded");
}

static bool axis_exists(Compile *c, const Node *n, int64_t axis)
{
  const Node *x = ir_in(c, n, 0);
  if (axis >= 0 && axis < x->rank) return true;
  return diag_error(c, E311, n->span, "%s has no axis %lld: %s", op_of(n)->name, (long long)axis,
                    ir_type_text(c, x));
}

bool shape_transpose(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  int64_t a = attr_int(n, "dim0"), b = attr_int(n, "dim1");
  if (!axis_exists(c, n, a) || !axis_exists(c, n, b)) return false;
  rule_like(n, x, x->dtype);
  n->dim[a] = x->dim[b];
  n->dim[b] = x->dim[a];
  return true;
}

bool shape_flip_axis(Compile *c, Node *n)
{
  if (!axis_exists(c, n, attr_int(n, "dim"))) return false;
  return rule_like(n, ir_in(c, n, 0), ir_in(c, n, 0)->dtype);
}

/* Axis i of the result is axis p[i] of x. p must name each axis once: [2, 3, 4] permuted by (2, 0,
 * 1) is [4, 2, 3]. */
bool shape_permute(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  uint32_t seen = 0;
  n->dtype = x->dtype;
  n->rank = x->rank;
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t axis = ir_permuted_axis(n, i);
    if (!axis_exists(c, n, axis)) return false;
    if (seen >> axis & 1)
      return diag_error(c, E311, n->span, "permute of %s names axis %lld twice", ir_dims_text(c, x),
                        (long long)axis);
    seen |= 1u << axis;
    n->dim[i] = x->dim[axis];
  }
  return true;
}

/* start:stop:step selects the elements start, start + step, ... below stop, at least one. */
bool shape_slice(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  int64_t axis = attr_int(n, "dim"), start = attr_int(n, "start");
  int64_t stop = attr_int(n, "stop"), step = attr_int(n, "step");
  if (!axis_exists(c, n, axis)) return false;
  if (start < 0 || stop <= start || stop > x->dim[axis] || step < 1)
    return diag_error(c, E311, n->span, "slice %lld:%lld:%lld of axis %lld does not lie in %s",
                      (long long)start, (long long)stop, (long long)step, (long long)axis,
                      ir_dims_text(c, x));
  rule_like(n, x, x->dtype);
  n->dim[axis] = (stop - start + step - 1) / step;
  return true;
}

/* The size before slicing is an attribute, because dy does not determine it. Only gradient rules
 * create this node. */
bool shape_slice_backward(Compile *c, Node *n)
{
  const Node *dy = ir_in(c, n, 0);
  rule_like(n, dy, dy->dtype);
  n->dim[attr_int(n, "dim")] = attr_int(n, "size");
  return true;
}

/* Bounds `before` and `after`, so that sizes fit in 64 bits; rule_set_dims() checks the result. */
bool shape_pad(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  int64_t axis = attr_int(n, "dim"), before = attr_int(n, "before");
  int64_t after = attr_int(n, "after");
  int64_t dim[MAX_RANK];
  if (!axis_exists(c, n, axis)) return false;
  if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX)
    return diag_error(c, E311, n->span,
                      "cannot pad axis %lld by %lld and %lld: each must be from 0 to 2147483647",
                      (long long)axis, (long long)before, (long long)after);
  memcpy(dim, x->dim, sizeof dim);
  dim[axis] += before + after;
  n->dtype = x->dtype;
  return rule_set_dims(c, n, x->rank, dim);
}

/* True if the tensors have the same sizes in all axes except `axis`. */
static bool joinable(const Node *a, const Node *b, int64_t axis)
{
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++) {
    if (i != axis && a->dim[i] != b->dim[i]) return false;
  }
  return true;
}

bool shape_cat(Compile *c, Node *n)
{
  const Node *first = ir_in(c, n, 0);
  int64_t axis = attr_int(n, "dim"), size = 0;
  if (!axis_exists(c, n, axis)) return false;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *x = ir_in(c, n, i);
    if (!joinable(first, x, axis)) {
      diag_error(c, E311, n->span, "cat along axis %lld cannot join %s and %s", (long long)axis,
                 ir_dims_text(c, first), ir_dims_text(c, x));
      return diag_note(c, x->span, "tensor %u gets its shape here", i);
    }
    size += x->dim[axis];
  }
  int64_t dim[MAX_RANK];
  memcpy(dim, first->dim, sizeof dim);
  dim[axis] = size;
  n->dtype = op_common_type(c, n);
  return rule_set_dims(c, n, first->rank, dim);
}

static bool need_rank_0(Compile *c, const Node *n, uint32_t i)
{
  const Node *value = ir_in(c, n, i);
  if (value->rank == 0) return true;
  return diag_error(c, E311, n->span, "%s needs a single number as value, got %s", op_of(n)->name,
                    ir_type_text(c, value));
}

/* The result is not weak: a tensor with dims takes part in promotion, even if a number fills it. */
bool shape_full(Compile *c, Node *n)
{
  if (!need_rank_0(c, n, 0)) return false;
  n->dtype = ir_in(c, n, 0)->dtype;
  n->weak = false;
  return dims_from_attrs(c, n);
}

bool shape_indices(Compile *c, Node *n)
{
  n->dtype = AMPC_I64;
  return dims_from_attrs(c, n);
}

bool shape_random(Compile *c, Node *n)
{
  n->dtype = AMPC_F32;
  return dims_from_attrs(c, n);
}

/* Attributes h and w are the size of the result, such as a crop of 32x32 from 40x40 pixels. */
bool shape_shifted(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0), *offset = ir_in(c, n, 1);
  int64_t dim[MAX_RANK];
  bool fits = x->rank >= 3 && offset->rank == 2 && offset->dim[0] == x->dim[0] &&
              offset->dim[1] == 2 && offset->dtype == AMPC_I32;
  if (!fits)
    return diag_error(c, E311, n->span,
                      "images [n, .., h, w] and offsets i32[n, 2] are needed, got %s and %s",
                      ir_type_text(c, x), ir_type_text(c, offset));
  memcpy(dim, x->dim, sizeof dim);
  dim[x->rank - 2] = attr_int(n, "h");
  dim[x->rank - 1] = attr_int(n, "w");
  n->dtype = x->dtype;
  return rule_set_dims(c, n, x->rank, dim);
}

bool shape_full_like(Compile *c, Node *n)
{
  if (!need_rank_0(c, n, 1)) return false;
  rule_like(n, ir_in(c, n, 0), ir_in(c, n, 0)->dtype);
  n->weak = false;
  return true;
}
