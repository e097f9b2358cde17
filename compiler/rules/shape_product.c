/* Shape rules of matrix products. */
#include "rules.h"
#include <string.h>

/* Reports an error. Either shape may be wrong, so notes show where both come from. */
static bool inner_error(Compile *c, const Node *n, const char *what)
{
  const Node *a = ir_in(c, n, 0), *b = ir_in(c, n, 1);
  diag_error(c, E301, n->span, "%s: %s x %s", what, ir_dims_text(c, a), ir_dims_text(c, b));
  diag_note(c, a->span, "the left operand gets its shape here");
  diag_note(c, b->span, "the right operand gets its shape here");
  if (b->rank != 2 || b->dim[1] != a->dim[a->rank - 1]) return false;
  return diag_help(c, "write `.t()` behind the right operand: it is then [%lld, %lld]",
                   (long long)b->dim[1], (long long)b->dim[0]);
}

static bool need_axes(Compile *c, const Node *n, uint32_t i, uint32_t least)
{
  const Node *x = ir_in(c, n, i);
  if (x->rank >= least) return true;
  return diag_error(c, E301, n->span, "%s needs a tensor of at least %u ax%s as %s, got %s",
                    op_of(n)->name, least, least == 1 ? "is" : "es",
                    op_of(n)->signature.input[i].name, ir_type_text(c, x));
}

static bool need_float_operands(Compile *c, const Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (n->in[i].id && !rule_need_float(c, n, i)) return false;
  }
  return true;
}

/* Broadcasts all axes of both operands except the last two, as in torch.matmul, to dim[0, result):
 * 5, 4 for [5, 1, 2, 3] and [4, 3, 6]. Returns -1 after a message. */
static int leading_dims(Compile *c, const Node *n, int64_t *dim)
{
  const Node *a = ir_in(c, n, 0), *b = ir_in(c, n, 1);
  int ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0;
  int rank = ra > rb ? ra : rb;
  for (int i = 0; i < rank; i++) {
    int64_t da = i < rank - ra ? 1 : a->dim[i - (rank - ra)];
    int64_t db = i < rank - rb ? 1 : b->dim[i - (rank - rb)];
    if (da != db && da != 1 && db != 1) {
      diag_error(c, E303, n->span,
                 "cannot broadcast the leading axes of %s with those of %s: %lld and %lld",
                 ir_dims_text(c, a), ir_dims_text(c, b), (long long)da, (long long)db);
      return -1;
    }
    dim[i] = da == 1 ? db : da;
  }
  return rank;
}

/* [.., m, k] times [.., k, n] is [.., m, n]. A vector on the left counts as a row, a vector on the
 * right as a column; the result lacks that axis. */
bool shape_matmul(Compile *c, Node *n)
{
  if (!need_float_operands(c, n) || !need_axes(c, n, 0, 1) || !need_axes(c, n, 1, 1)) return false;
  const Node *a = ir_in(c, n, 0), *b = ir_in(c, n, 1);
  int64_t inner = b->rank == 1 ? b->dim[0] : b->dim[b->rank - 2];
  if (a->dim[a->rank - 1] != inner) return inner_error(c, n, "matmul inner sizes differ");
  int64_t dim[MAX_RANK + 2];
  int rank = leading_dims(c, n, dim);
  if (rank < 0) return false;
  if (a->rank > 1) dim[rank++] = a->dim[a->rank - 2];
  if (b->rank > 1) dim[rank++] = b->dim[b->rank - 1];
  n->dtype = op_common_type(c, n);
  return rule_set_dims(c, n, (uint32_t)rank, dim);
}

/* gemm is internal: gradient rules create it, and pass simplify turns matmul into it. Its operands
 * are two matrices, or two batches of one size, so the vendor library accepts them unchanged. */
bool shape_gemm(Compile *c, Node *n)
{
  const Node *a = ir_in(c, n, 0), *b = ir_in(c, n, 1);
  bool ta = attr_int(n, "trans_a"), tb = attr_int(n, "trans_b");
  if (!need_float_operands(c, n)) return false;
  bool plain = a->rank == 2 && b->rank == 2;
  bool batched = a->rank == 3 && b->rank == 3 && a->dim[0] == b->dim[0];
  if (!plain && !batched) return inner_error(c, n, "gemm needs two matrices or equal batches");
  uint32_t r = a->rank;
  if (a->dim[ta ? r - 2 : r - 1] != b->dim[tb ? r - 1 : r - 2])
    return inner_error(c, n, "gemm inner sizes differ");
  int64_t dim[3] = {a->dim[0], 0, 0};
  dim[r - 2] = a->dim[ta ? r - 1 : r - 2];
  dim[r - 1] = b->dim[tb ? r - 2 : r - 1];
  n->dtype = op_common_type(c, n);
  return rule_set_dims(c, n, r, dim);
}

/* Helps if the input of linear lacks a flatten, or if a view merged its batch with other axes. */
static void help_flatten(Compile *c, const Node *n, const Node *x, int64_t features)
{
  bool viewed = x->rank == 1 && op_of(x)->tmpl == TMPL_alias && ir_in(c, x, 0)->rank > 1;
  const char *name = rule_variable(c, viewed ? x : n);
  if (viewed) x = ir_in(c, x, 0);
  int64_t product = 1;
  int axis = x->rank;
  while (axis > 1 && product * x->dim[axis - 1] <= features) product *= x->dim[--axis];
  if (product != features || (axis == x->rank - 1 && !viewed)) return;
  Text sizes = text_new(c->arena);
  for (int i = axis; i < x->rank && axis < x->rank - 1; i++)
    text_printf(&sizes, "%s%lld", i > axis ? " x " : "", (long long)x->dim[i]);
  diag_help(c, "write `flatten(%s, %d)`, which has %s%s%lld features", name, axis, sizes.at,
            axis < x->rank - 1 ? " = " : "", (long long)features);
}

/* x [.., in] times weight [out, in] is [.., out]. */
bool shape_linear(Compile *c, Node *n)
{
  if (!need_float_operands(c, n) || !need_axes(c, n, 0, 1)) return false;
  const Node *x = ir_in(c, n, 0), *w = ir_in(c, n, 1), *bias = ir_in(c, n, 2);
  if (w->rank != 2) return inner_error(c, n, "the weight of linear is [out, in]");
  if (x->dim[x->rank - 1] != w->dim[1]) {
    diag_error(c, E301, n->span, "linear expects %lld input features, got %lld: %s",
               (long long)w->dim[1], (long long)x->dim[x->rank - 1], ir_type_text(c, x));
    diag_note(c, x->span, "the input gets its shape here");
    diag_note(c, w->span, "the weight is [out, in] = %s", ir_dims_text(c, w));
    return help_flatten(c, n, x, w->dim[1]), false;
  }
  if (n->in[2].id && (bias->rank != 1 || bias->dim[0] != w->dim[0]))
    return diag_error(c, E311, n->span, "the bias of linear with weight %s is [%lld], got %s",
                      ir_dims_text(c, w), (long long)w->dim[0], ir_dims_text(c, bias));
  int64_t dim[MAX_RANK];
  memcpy(dim, x->dim, sizeof dim);
  dim[x->rank - 1] = w->dim[0];
  n->dtype = op_common_type(c, n);
  return rule_set_dims(c, n, x->rank, dim);
}
