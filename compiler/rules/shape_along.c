/* Shape rules of ops along an axis: cumulative sums and products, sorting. */
#include "rules.h"
#include <assert.h>

/* Integers and bools become i64, as in sums. */
bool shape_cumulative(Compile *c, Node *n)
{
  if (!rule_need_axis(c, n)) return false;
  const Node *x = ir_in(c, n, 0);
  return rule_like(n, x, dtype_is_float(x->dtype) ? x->dtype : AMPC_I64);
}

bool shape_sort_order(Compile *c, Node *n)
{
  if (!rule_need_axis(c, n)) return false;
  return rule_like(n, ir_in(c, n, 0), AMPC_I64);
}

/* The result has as many elements along the axis as `order`. */
bool shape_pick_ordered(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0), *order = ir_in(c, n, 1);
  assert(order->dtype == AMPC_I64 && order->rank == x->rank);
  return rule_like(n, order, x->dtype);
}
