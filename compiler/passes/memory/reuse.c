/* Part of pass memory: lets elementwise results take the bytes of an operand.
 *
 * A kernel computes element i of its result from elements i of its operands, in one thread. So it
 * may overwrite an operand that no later command reads, unless it reads that operand at other
 * elements (moves, broadcasts, values of a row). A kernel of row ops walks its rows several times.
 * A value that it computes in the last walk may take the bytes of any operand. A value that an
 * earlier walk stores may take only the bytes of an operand that no other node reads, since later
 * walks load the stored value. */
#include "reuse.h"

/* Returns the kernel that computes v: its group, or a part of its group. */
static const Group *kernel_of(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  const Group *group = &g->groups.at[n->group];
  return group->n_parts ? &group->parts[n->part] : group;
}

/* True if p is an elementwise kernel or a kernel of row ops, not a single move. */
static bool is_kernel_of_elements(const Graph *g, const Group *p)
{
  if (!p->anchor.id) return p->n > 1 || op_of(ir_node(g, p->nodes[0]))->tmpl == TMPL_map;
  return op_of(ir_node(g, p->anchor))->tmpl == TMPL_row;
}

/* True if v is computed from a row op of its kernel. Then the last walk computes it, after all
 * loads that earlier walks need. */
static bool is_of_last_walk(const Graph *g, Value v, const Node *out)
{
  const Node *n = ir_node(g, v);
  if (n->group != out->group || n->part != out->part) return false;
  if (op_of(n)->tmpl == TMPL_row) return true;
  for (uint32_t k = 0; k < n->n_in; k++)
    if (is_of_last_walk(g, value_root(g, n->in[k]), out)) return true;
  return false;
}

static bool reads(const Graph *g, const Node *n, Value x)
{
  for (uint32_t k = 0; k < n->n_in; k++)
    if (value_root(g, n->in[k]).id == x.id) return true;
  return false;
}

/* True if all readers of x in the kernel read element i for element i; `alone`: only v reads x. */
static bool is_read_well(const Graph *g, const Group *p, Value x, Value v, bool alone)
{
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(g, p->nodes[i]);
    if (!reads(g, n, x)) continue;
    if (alone && p->nodes[i].id != v.id) return false;
    for (uint32_t k = 0; k < n->n_in; k++)
      if (value_root(g, n->in[k]).id == x.id && !reads_in_order(g, p->nodes[i], k)) return false;
  }
  return true;
}

/* True if another part of the launch reads x at any time. */
static bool is_read_beside(const Graph *g, const Group *launch, const Group *p, Value x)
{
  for (uint32_t i = 0; i < launch->n_parts; i++)
    for (uint32_t k = 0; k < launch->parts[i].n && &launch->parts[i] != p; k++)
      if (reads(g, ir_node(g, launch->parts[i].nodes[k]), x)) return true;
  return false;
}

/* True if `out` may take the memory of x. Another command computes x, the command of `out` is the
 * last that reads it, and both have the same type and shape. */
static bool dies_for(const Graph *g, Value x, const Node *out, const Life *lives)
{
  const Node *from = ir_node(g, x);
  return x.id && from->group && from->group != out->group && lives[x.id].last == out->group &&
         from->dtype == out->dtype && ir_same_dims(from, out) && from->pitch == out->pitch;
}

Value value_to_reuse(Compile *c, Value v, const Life *lives, const bool *taken)
{
  const Graph *g = c->graph;
  const Node *out = ir_node(g, v);
  const Group *p = kernel_of(g, v), *launch = &g->groups.at[out->group];
  if (!is_kernel_of_elements(g, p) || op_of(out)->tmpl == TMPL_move || out->op == OP_stack)
    return (Value){0};
  bool alone = p->anchor.id && !is_of_last_walk(g, v, out);
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(g, p->nodes[i]);
    for (uint32_t k = 0; k < n->n_in; k++) {
      Value x = value_root(g, n->in[k]);
      if (!dies_for(g, x, out, lives) || taken[x.id]) continue;
      if (!is_read_beside(g, launch, p, x) && is_read_well(g, p, x, v, alone)) return x;
    }
  }
  return (Value){0};
}
