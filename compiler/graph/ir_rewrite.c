/* Builds a new array of nodes from the old one, node by node. */
#include "ops.h"
#include <assert.h>

/* The old array stays readable in r->old until the next rewrite overwrites it. */
void ir_rewrite_begin(Rewrite *r, Compile *c)
{
  Graph *g = c->graph;
  *r = (Rewrite){.c = c, .old = g->nodes.at, .n_old = g->nodes.n};
  g->moved = r->map = arena_array(c->arena, Value, r->n_old);
  Nodes old = g->nodes;
  g->nodes = g->spare;
  g->nodes.n = 0;
  if (!g->nodes.cap) {
    g->nodes.cap = old.n + old.n / 4;
    g->nodes.at = arena_array(c->arena, Node, g->nodes.cap);
  }
  g->spare = old;
  vec_push(c->arena, &g->nodes, (Node){0});
}

/* Updates the tables of outputs and probes if n copies an `output` or `probed` node. */
static void move_output(Graph *g, const Node *n, Value to)
{
  if (n->op == OP_probed) g->probes.at[attr_int(n, "index")].kept = to;
  if (n->op != OP_output) return;
  int64_t index = attr_int(n, "index");
  if (index < g->outputs.n) g->outputs.at[index].value = to;
}

/* Returns the copy by value, because it is not in the graph yet. The inputs must have been mapped
 * already, so nodes are copied in order. */
Node ir_rewrite_mapped(Rewrite *r, uint32_t old_id)
{
  assert(old_id && old_id < r->n_old);
  Node n = r->old[old_id];
  Value *in = arena_array(r->c->arena, Value, n.n_in ? n.n_in : 1);
  for (uint32_t i = 0; i < n.n_in; i++) {
    in[i] = r->map[n.in[i].id];
    assert(!n.in[i].id == !in[i].id);
  }
  n.in = in;
  n.origin = r->map[n.origin.id];
  n.after = r->map[n.after.id];
  assert(!r->old[old_id].origin.id == !n.origin.id && !r->old[old_id].after.id == !n.after.id);
  return n;
}

Value ir_rewrite_add(Rewrite *r, uint32_t old_id, const Node *n)
{
  Graph *g = r->c->graph;
  vec_push(r->c->arena, &g->nodes, *n);
  Value v = {g->nodes.n - 1};
  move_output(g, n, v);
  r->map[old_id] = v;
  return v;
}

Value ir_rewrite_copy(Rewrite *r, uint32_t old_id)
{
  Node n = ir_rewrite_mapped(r, old_id);
  return ir_rewrite_add(r, old_id, &n);
}

/* Marks live nodes. If a `carry` is live, so is its `next`. Returns true if a `carry` became live,
 * so that another round is needed. */
static bool find_live(const Rewrite *r, bool *live)
{
  bool more = false;
  for (uint32_t id = r->n_old - 1; id > 0; id--) {
    const Node *n = &r->old[id];
    live[id] = live[id] || op_has(n, T_effect) || op_has(n, T_kept) ||
               (n->op == OP_next && live[n->in[0].id]);
    for (uint32_t i = 0; i < n->n_in && live[id]; i++) {
      more = more || (!live[n->in[i].id] && ir_carries(&r->old[n->in[i].id]));
      live[n->in[i].id] = true;
    }
  }
  return more;
}

/* Drops a dead node. A live node may still name it as `origin` or `after`, so it is mapped to its
 * first mapped input. Thus a backward node keeps an origin. */
static void drop(Rewrite *r, uint32_t id)
{
  const Node *n = &r->old[id];
  for (uint32_t i = 0; i < n->n_in && !r->map[id].id; i++) r->map[id] = r->map[n->in[i].id];
}

/* A node is live if it is an effect, is kept, or is read by a live node. */
void ir_drop_dead(Compile *c)
{
  Rewrite r;
  ir_rewrite_begin(&r, c);
  bool *live = arena_array(c->arena, bool, r.n_old);
  while (find_live(&r, live)) continue;
  for (uint32_t id = 1; id < r.n_old; id++) {
    if (live[id])
      ir_rewrite_copy(&r, id);
    else
      drop(&r, id);
  }
}
