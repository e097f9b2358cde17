/* Note [along]
 * Ops along an axis (templates/cumsum.cu, sort_order.cu and others). Input 0 has the shape [outer,
 * length, inner], where length is the size of the axis `dim`; for place_ordered the result has that
 * axis. A row is the elements along the axis. Templates use $rows (outer * inner), $length, $inner,
 * $threads (how many threads share a row), $padded ($length rounded up to a power of 2), $elements
 * (of the result), $ordered (the length of the result or of the order) and $element (the type in
 * which a row is computed; integers are exact, in long long). */
#include "template.h"

/* Returns how many threads share a row. Short rows have one thread each, long rows a warp or a
 * block. Each of many adjacent rows has one thread: adjacent threads then read adjacent memory. */
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
