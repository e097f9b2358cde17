/* Note [along]
 * Ops along an axis (templates/cumsum.cu, sort_order.cu and their like): the axis `dim` of the
 * shape [outer, length, inner] that input 0 has; of place_ordered the result. A row is what lies
 * along it. Templates say $rows (outer * inner), $length, $inner, $threads that share a row,
 * $padded (the power of 2 from $length on), $elements of the result and $ordered, the result's or
 * the order's length; and $element, what a row is worked out in: integers are exact, in long long.
 */
#include "template.h"

/* Short rows have a thread each, long ones a block; what lies side by side is read together anyway.
 */
int64_t threads_of_row(Along a)
{
  enum { ENOUGH = 132 * 2048 }; /* threads of a large GPU */
  if (a.length < 32 || (a.inner > 1 && a.outer * a.inner >= ENOUGH)) return 1;
  return a.length < 1024 ? 32 : 256;
}

int64_t padded_length(int64_t length)
{
  int64_t n = 1;
  while (n < length) n *= 2;
  return n;
}

Along along_of(const Kernel *k, const Node *n)
{
  uint32_t axis = (uint32_t)attr_int(n, "dim");
  const Node *x = has_attr(op_of(n), "size") ? n : ir_in(k->c, n, 0);
  Along a = {1, x->dim[axis], 1, ir_in(k->c, n, n->n_in - 1u)->dim[axis]};
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i < axis) a.outer *= x->dim[i];
    if (i > axis) a.inner *= x->dim[i];
  }
  return a;
}
