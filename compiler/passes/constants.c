/* Part of pass fuse: numbers that must be tensors.
 *
 * A number has no bytes, it is a literal in kernels. Where it is itself a result of an infer block,
 * a `full` writes it. */
#include "fold.h"

/* An output whose value is, through views, a number. */
static bool is_constant_output(const Rewrite *r, uint32_t id)
{
  const Node *n = &r->old[id];
  if (!op_has(n, T_kept)) return false;
  uint32_t from = n->in[0].id;
  while (op_of(&r->old[from])->tmpl == TMPL_alias) from = r->old[from].in[0].id;
  return op_has(&r->old[from], T_literal);
}

/* output(number) becomes output(full(number)): `full` is an elementwise kernel with bytes of its
 * own. */
static void copy_output(Rewrite *r, uint32_t id)
{
  Node n = ir_rewrite_mapped(r, id);
  Compile *c = r->c;
  Cursor at = ir_cursor_of(c->graph, n.in[0]);
  at.why = n.why;
  at.span = n.span;
  Value number = value_root(c->graph, n.in[0]);
  const Node shape = *ir_node(c->graph, n.in[0]);
  Value full = ir_append(c, &at, OP_full, &number, 1, ir_shape_attrs(c, shape.dim, shape.rank));
  n.in = arena_new(c->arena, Value);
  n.in[0] = full;
  n.weak = false;
  ir_rewrite_add(r, id, &n);
}

void write_constant_outputs(Compile *c)
{
  bool any = false;
  Rewrite r = {.old = c->graph->nodes.at};
  for (uint32_t id = 1; id < c->graph->nodes.n; id++) any = any || is_constant_output(&r, id);
  if (!any) return;
  ir_rewrite_begin(&r, c);
  for (uint32_t id = 1; id < r.n_old; id++) {
    if (is_constant_output(&r, id))
      copy_output(&r, id);
    else
      ir_rewrite_copy(&r, id);
  }
}
