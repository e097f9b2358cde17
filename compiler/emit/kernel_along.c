/* Note [along]
 * Ops along an axis (templates/cumsum.cu, sort_order.cu and their like): the axis `dim` of the
 * shape [outer, length, inner] that input 0 has; of place_ordered the result. A row is what lies
 * along it. Templates say $rows (outer * inner), $length, $inner, $threads that share a row,
 * $padded (the power of 2 from $length on), $elements of the result and $ordered, the result's or
 * the order's length; and $element, what a row is worked out in: integers are exact, in long long.
 */
#include "kernel_parts.h"
#include <string.h>

bool is_along(const Node *n)
{
  return op_has(n, T_along);
}

/* Short rows have a thread each, long ones a block; what lies side by side is read together anyway.
 */
static int64_t threads_of_row(int64_t rows, int64_t length, int64_t inner)
{
  enum { ENOUGH = 132 * 2048 }; /* threads of a large GPU */
  if (length < 32 || (inner > 1 && rows >= ENOUGH)) return 1;
  return length < 1024 ? 32 : 256;
}

static int64_t padded_length(int64_t length)
{
  int64_t n = 1;
  while (n < length) n *= 2;
  return n;
}

const char *along_text(const Kernel *k, const Node *node, const char *word, size_t n)
{
  if (!is_along(node)) return NULL;
  uint32_t size, axis = (uint32_t)attr_int(node, "dim");
  const Node *x = attr_find(op_of(node), "size", &size) ? node : ir_in(k->c, node, 0);
  const Node *last = ir_in(k->c, node, node->n_in - 1u);
  int64_t outer = 1, inner = 1, length = x->dim[axis];
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i < axis) outer *= x->dim[i];
    if (i > axis) inner *= x->dim[i];
  }
  Arena *a = k->c->arena;
  if (is(word, n, "rows")) return arena_printf(a, "%lld", (long long)(outer * inner));
  if (is(word, n, "length")) return arena_printf(a, "%lld", (long long)length);
  if (is(word, n, "inner")) return arena_printf(a, "%lld", (long long)inner);
  if (is(word, n, "threads"))
    return arena_printf(a, "%lld", (long long)threads_of_row(outer * inner, length, inner));
  if (is(word, n, "padded")) return arena_printf(a, "%lld", (long long)padded_length(length));
  if (is(word, n, "elements")) return arena_printf(a, "%lld", (long long)ir_elements(node));
  if (is(word, n, "ordered")) return arena_printf(a, "%lld", (long long)last->dim[axis]);
  if (is(word, n, "element"))
    return dtype_is_float(ir_in(k->c, node, 0)->dtype) ? "real" : "long long";
  return NULL;
}
