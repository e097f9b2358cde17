/* Shape rules of attention. Queries, keys and values have been brought to four axes by the layer
 * library, which tells of those that do not fit; a mask is anybody's. */
#include "rules.h"

static bool mask_fits(Compile *c, const Node *n)
{
  const Node *q = ir_in(c, n, 0), *k = ir_in(c, n, 1), *mask = ir_in(c, n, 3);
  const int64_t want[] = {q->dim[0], q->dim[2], q->dim[1], k->dim[1]};
  bool good = mask->rank == 4 && (mask->dtype == AMPC_BOOL || dtype_is_float(mask->dtype));
  for (uint32_t i = 0; good && i < 4; i++) good = mask->dim[i] == 1 || mask->dim[i] == want[i];
  if (good) return true;
  diag_error(c, E311, n->span,
             "a mask of attention is bool or float and broadcasts to the scores [%lld, %lld, "
             "%lld, %lld], got %s",
             (long long)want[0], (long long)want[1], (long long)want[2], (long long)want[3],
             ir_type_text(c, mask));
  diag_note(c, mask->span, "the mask gets its shape here");
  return false;
}

bool rule_library_attends(Compile *c, const Node *n)
{
  enum { QUERY, MASK = 3 };
  bool half = ir_dtype_size(c, ir_in(c, n, QUERY)->dtype) == 2;
  bool plain = !n->in[MASK].id || ir_in(c, n, MASK)->dtype == AMPC_BOOL;
  return !is_cpu_target(c) && half && plain;
}

/* [n, l, heads, e], or of the sums [n, l, heads]. */
bool shape_attention(Compile *c, Node *n)
{
  const Node *q = ir_in(c, n, 0), *v = ir_in(c, n, 2);
  for (uint32_t i = 0; i < 3; i++)
    if (!rule_need_float(c, n, i)) return false;
  for (uint32_t i = 1; i < 3; i++) { /* values have a width of their own */
    const Node *x = ir_in(c, n, i);
    bool fits = x->rank == 4 && x->dim[0] == q->dim[0] && x->dim[2] == q->dim[2] &&
                x->dim[1] == v->dim[1] && (i == 2 || x->dim[3] == q->dim[3]);
    if (!fits || q->rank != 4) op_broken(op_of(n), "operands that do not fit:", ir_type_text(c, x));
  }
  if (n->in[3].id && !mask_fits(c, n)) return false;
  bool sums = attr_int(n, "sums");
  n->dtype = sums ? AMPC_F32 : q->dtype;
  return rule_set_dims(c, n, sums ? 3 : 4, (int64_t[]){q->dim[0], q->dim[1], q->dim[2], v->dim[3]});
}

/* That of the input that it is the gradient of. */
bool shape_attention_backward(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, (uint32_t)attr_int(n, "of"));
  rule_copy_dims(n, x);
  n->dtype = attr_int(n, "rounded") ? x->dtype : AMPC_F32;
  return true;
}
