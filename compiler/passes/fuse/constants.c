/* Part of pass fuse: numbers that must be tensors.
 *
 * A number has no bytes: it is a literal in kernels. Settings, counters and the loss scale have
 * bytes in STATE. Some readers need a tensor: the caller of an infer block, the vendors' libraries
 * (products and convolutions), and the kernel text of ops of the job. For these a node `full`
 * writes the number to memory. A sum of one element, for example, has a number as its gradient,
 * which may be an operand of a convolution. */
#include "fold.h"

/* Returns the id of the number that v is, perhaps through views; 0 if v is a tensor. */
static uint32_t number_of(const Rewrite *r, Value v)
{
  uint32_t from = v.id;
  while (op_of(&r->old[from])->tmpl == TMPL_alias) from = r->old[from].in[0].id;
  const Node *n = &r->old[from];
  bool tensor = op_of(n)->tmpl != TMPL_leaf || op_of(n)->precision == PREC_stored;
  return tensor ? 0 : from;
}

/* True if n needs the bytes of its inputs and one of them is a number. */
static bool reads_number(const Rewrite *r, uint32_t id)
{
  const Node *n = &r->old[id];
  bool any = false;
  if (!op_has(n, T_kept) && !op_by_library(op_of(n)) && op_of(n)->tmpl != TMPL_own) return false;
  for (uint32_t i = 0; i < n->n_in; i++) any = any || number_of(r, n->in[i]);
  return any;
}

/* Returns v as a tensor: appends a `full`, which is an elementwise kernel with bytes of its own. */
static Value written(Rewrite *r, const Node *reader, Value v)
{
  Compile *c = r->c;
  Cursor at = ir_cursor_of(c->graph, v);
  at.why = reader->why;
  at.span = reader->span;
  Value number = value_root(c->graph, v);
  const Node shape = *ir_node(c->graph, v);
  Value full = ir_append(c, &at, OP_full, &number, 1, ir_shape_attrs(c, shape.dim, shape.rank));
  ir_node(c->graph, full)->layout = shape.layout;
  return full;
}

static void write_numbers(Rewrite *r, uint32_t id)
{
  Node n = ir_rewrite_mapped(r, id);
  for (uint32_t i = 0; i < n.n_in; i++)
    if (number_of(r, r->old[id].in[i])) n.in[i] = written(r, &n, n.in[i]);
  n.weak = false;
  ir_rewrite_add(r, id, &n);
}

void write_constants(Compile *c)
{
  bool any = false;
  Rewrite r = {.old = c->graph->nodes.at};
  for (uint32_t id = 1; id < c->graph->nodes.n; id++) any = any || reads_number(&r, id);
  if (!any) return;
  ir_rewrite_begin(&r, c);
  for (uint32_t id = 1; id < r.n_old; id++) {
    if (reads_number(&r, id))
      write_numbers(&r, id);
    else
      ir_rewrite_copy(&r, id);
  }
}
