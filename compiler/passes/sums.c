/* Pass sums. Needs IR_LAID: which elements lie side by side. What is reduced to few numbers, as a
 * loss over all elements of a batch of images or a bias's gradient over many rows, has few rows or
 * columns, and so few blocks that would walk far. Such a sum is cut into parts, each a block's, and
 * their sums are added up:
 *
 *   sum(x)         x [4096, 1024] as [262144, 16]: part_sums [256, 16], their sum
 *   sum(x, 0)      x [100352, 64]: part_sums [262, 64], their sum over the parts
 *   mean(x)        the same, then a quotient
 *
 * It is computed in f32 and rounded once, at the end; sums of integers are exact. The parts follow
 * from the shape (columns.h), so -O0, -O2, CPU and GPU add up in one order. */
#include "compiler/command/command.h"
#include "compiler/graph/columns.h"
#include "compiler/graph/ops.h"
#include "passes.h"

/* Whether v is a sum or mean over the rows of [rows, columns] that is cut up. */
static bool is_split(const Graph *g, Value v)
{
  if (!op_has(ir_node(g, v), T_sums)) return false;
  RowShape r = row_shape(g, v);
  return r.outer == 1 && column_split(r.length, r.inner) > 0;
}

/* The sum of x, seen as [rows, columns], over the rows. */
static Value summed(Compile *c, const Cursor *at, Value x, int64_t columns)
{
  int64_t split = column_split(ir_elements(ir_node(c->graph, x)) / columns, columns);
  if (!split) return ir_reduce(c, at, OP_sum, x, columns > 1 ? 1 : 3, false);
  const NamedAttr *side_by_side = ATTRS({"columns", {.i = split}});
  Value parts = ir_append(c, at, op_named("part_sums"), &x, 1, side_by_side);
  return summed(c, at, parts, columns);
}

static Value in_parts(Compile *c, const Node *n)
{
  Cursor at = ir_cursor_at(n, (WhyKind)n->why);
  at.origin = n->origin;
  int64_t columns = ir_elements(n), all = ir_elements(ir_in(c, n, 0));
  Value v = summed(c, &at, n->in[0], columns);
  if (op_of(n)->code.uses_length) /* a mean */
    v = ir_binary(c, &at, op_named("div"), v, ir_number(c, &at, (double)(all / columns)));
  v = ir_cast(c, &at, v, n->dtype);
  ir_node(c->graph, v)->name = n->name;
  v = ir_reshape(c, &at, v, n->dim, n->rank);
  ir_node(c->graph, v)->layout = n->layout;
  return v;
}

bool pass_sums(Compile *c)
{
  bool *split = arena_array(c->arena, bool, c->graph->nodes.n), any = false;
  for (uint32_t id = 1; id < c->graph->nodes.n; id++)
    any |= split[id] = is_split(c->graph, (Value){id});
  if (!any) return true;
  Rewrite r;
  ir_rewrite_begin(&r, c);
  for (uint32_t id = 1; id < r.n_old; id++) {
    Node n = ir_rewrite_mapped(&r, id);
    if (split[id])
      r.map[id] = in_parts(c, &n);
    else
      ir_rewrite_add(&r, id, &n);
  }
  return true;
}
