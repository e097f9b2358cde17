/* Pass recompute: computes nodes in a call of checkpoint() again for backward.
 *
 * Needs IR_LAID: clones have the types and layouts of forward, so the same kernels compute the same
 * bits. Why here: if simplify came later, it would merge the clones with their originals.
 *
 * This pass clones the nodes of a checkpoint that backward reads, and the nodes that compute them
 * from values outside of the checkpoint. The clones come right before the first node of backward
 * that needs one. A value that another node also reads must be kept anyway, so it is not cloned.
 * Examples are the result of the checkpoint and the statistics from which running statistics are
 * updated. Weights are the same for the clones, since updates follow backward. Clones draw the
 * random numbers of their originals.
 *
 * A clone comes after the gradient that its first reader reads (Node.after). That gradient needs
 * all of forward, so no kernel can compute a clone together with its original. */
#include "compiler/command/command.h"
#include "compiler/graph/ops.h"
#include "passes.h"
#include "recompute.h"

typedef struct Recompute {
  Rewrite r;
  const Graph *g;
  uint16_t *checkpoint; /* node -> the checkpoint() to clone it for; 0: no clone */
  bool *needed;         /* node -> true if it is cloned */
  Value *clone;         /* node -> its clone; 0: no clone yet */
} Recompute;

static uint16_t checkpoint_of(const Graph *g, const Node *n)
{
  return n->origin.id ? 0 : g->regions.at[n->region].checkpoint;
}

/* False for leaves and working copies of weights, which exist already, and effects (no value). */
static bool may_be_cloned(const Graph *g, uint32_t id)
{
  const Node *n = &g->nodes.at[id];
  return op_of(n)->tmpl != TMPL_leaf && !op_has(n, T_effect) && !op_has(n, T_kept) &&
         !is_working_copy(g, (Value){id});
}

static void find_checkpoints(Recompute *x)
{
  const Graph *g = x->g;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    uint16_t own = checkpoint_of(g, n);
    if (may_be_cloned(g, id)) x->checkpoint[id] = own;
    bool keeps = !n->origin.id && (!own || op_has(n, T_effect) || op_has(n, T_kept));
    for (uint32_t k = 0; k < n->n_in; k++)
      if (keeps || (own && x->checkpoint[n->in[k].id] != own)) x->checkpoint[n->in[k].id] = 0;
  }
}

/* Marks the nodes to clone, last to first: values that a clone reads may be cloned as well. */
static void find_needed(Recompute *x)
{
  const Graph *g = x->g;
  for (uint32_t id = g->nodes.n - 1; id > 0; id--) {
    const Node *n = &g->nodes.at[id];
    if (!n->origin.id && !x->needed[id]) continue;
    for (uint32_t k = 0; k < n->n_in; k++)
      if (x->checkpoint[n->in[k].id]) x->needed[n->in[k].id] = true;
  }
}

Value recompute_after(const Rewrite *r, uint32_t old_id)
{
  const Node *n = &r->old[old_id];
  Value last = {0};
  for (uint32_t k = 0; k < n->n_in; k++)
    if (r->old[n->in[k].id].origin.id && r->map[n->in[k].id].id > last.id)
      last = r->map[n->in[k].id];
  return last;
}

static void clone_node(Recompute *x, uint32_t id, Value after)
{
  Value first = x->r.map[id];
  Node n = ir_rewrite_mapped(&x->r, id);
  const Node *old = &x->r.old[id];
  for (uint32_t k = 0; k < n.n_in; k++)
    if (x->clone[old->in[k].id].id) n.in[k] = x->clone[old->in[k].id];
  n.origin = first;
  n.after = after;
  x->clone[id] = ir_rewrite_add(&x->r, id, &n);
  x->r.map[id] = first;
}

/* Clones the needed nodes of a checkpoint that come before `until` and have no clone yet. Backward
 * may need a checkpoint several times, since pass layout puts moves of forward's values between the
 * nodes of backward. */
static void clone_checkpoint(Recompute *x, uint16_t checkpoint, uint32_t until, Value after)
{
  for (uint32_t id = 1; id < until; id++)
    if (x->needed[id] && x->checkpoint[id] == checkpoint && !x->clone[id].id)
      clone_node(x, id, after);
}

/* Copies a node of backward, with clones as its inputs where they exist. */
static void copy_backward(Recompute *x, uint32_t id)
{
  const Node *old = &x->r.old[id];
  for (uint32_t k = 0; k < old->n_in; k++) {
    uint32_t in = old->in[k].id;
    if (x->needed[in] && !x->clone[in].id)
      clone_checkpoint(x, x->checkpoint[in], id, recompute_after(&x->r, id));
  }
  Node n = ir_rewrite_mapped(&x->r, id);
  for (uint32_t k = 0; k < n.n_in; k++)
    if (x->clone[old->in[k].id].id) n.in[k] = x->clone[old->in[k].id];
  ir_rewrite_add(&x->r, id, &n);
}

static void recompute_checkpoints(Compile *c)
{
  Graph *g = c->graph;
  uint32_t n = g->nodes.n;
  Recompute x = {.g = g,
                 .checkpoint = arena_array(c->arena, uint16_t, n),
                 .needed = arena_array(c->arena, bool, n),
                 .clone = arena_array(c->arena, Value, n)};
  find_checkpoints(&x);
  find_needed(&x);
  ir_rewrite_begin(&x.r, c);
  for (uint32_t id = 1; id < n; id++) {
    if (x.r.old[id].origin.id)
      copy_backward(&x, id);
    else
      ir_rewrite_copy(&x.r, id);
  }
  ir_drop_dead(c); /* only backward read them; now it reads their clones */
}

bool pass_recompute(Compile *c)
{
  if (c->graph->n_checkpoints) recompute_checkpoints(c);
  if (c->options.optimize > 0) recompute_widenings(c);
  if (c->options.optimize > 0) recompute_norms(c);
  return true;
}
