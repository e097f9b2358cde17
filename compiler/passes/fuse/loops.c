/* Part of pass fuse: gives each loop a beginning and an end, Note [loops] in ir.h. Before pass
 * gradient, it only puts the nodes of each loop together: tangents of a loop come after all other
 * nodes, Note [tangents of loops].
 *
 * `scan` comes before all nodes of a loop and `scan_end` after them. Nodes from outside that were
 * between nodes of the loop move before the loop. `scan` and `scan_end` read the values that the
 * loop reads from outside, so these exist when the loop begins and live until it ends.
 *
 * A reader gets a copy of an operand in two cases. First, an inner loop reads a slice of an outer
 * loop: the address of an operand moves only with the innermost loop. Second, a `next` reads
 * another carried value, which would be overwritten first. */
#include "fuse.h"
#include "compiler/passes/backward.h"
#include <assert.h>

typedef struct Bounds {
  Compile *c;
  Rewrite r;
  bool borders;  /* adds borders and copies; else only reorders */
  bool *done;    /* indexed by old id: the node is in the new array */
  Value *copied; /* indexed by old id: the copy of the value; 0: no copy yet */
} Bounds;

static bool is_inside(const Bounds *b, uint32_t id, uint16_t loop)
{
  return ir_loop_within(b->c->graph, b->r.old[id].loop, loop);
}

/* ---- copies ---- */

static const Node *old_root(const Bounds *b, Value v)
{
  while (op_of(&b->r.old[v.id])->tmpl == TMPL_alias) v = b->r.old[v.id].in[0];
  return &b->r.old[v.id];
}

/* True if n must read a copy of its input i. */
static bool needs_copy(const Bounds *b, const Node *n, uint32_t i)
{
  const Node *x = old_root(b, n->in[i]);
  if (x->op == OP_turn && (x->loop != n->loop || n->op == OP_turn)) return true;
  if (n->op != OP_next || i == 0) return false;
  return ir_carries(x) == n->loop && x != &b->r.old[n->in[0].id];
}

/* Returns a copy of x, input i of n, in the loop in which x is a slice or is carried. */
static Value copy_of(Bounds *b, Value x, const Node *n, uint32_t i)
{
  Compile *c = b->c;
  uint32_t root = (uint32_t)(old_root(b, n->in[i]) - b->r.old);
  if (!b->copied[n->in[i].id].id) {
    Cursor at = ir_cursor_of(c->graph, x);
    at.loop = ir_loop_of(c->graph, b->r.map[root]);
    Value copy = ir_append(c, &at, OP_copy, &x, 1, NULL);
    ir_node(c->graph, copy)->layout = ir_node(c->graph, x)->layout;
    b->copied[n->in[i].id] = copy;
  }
  return b->copied[n->in[i].id];
}

/* ---- the order ---- */

static void put_node(Bounds *b, uint32_t id)
{
  const Node *old = &b->r.old[id];
  Node n = ir_rewrite_mapped(&b->r, id);
  for (uint32_t i = 0; b->borders && i < n.n_in; i++)
    if (n.in[i].id && op_of(&n)->tmpl != TMPL_alias && needs_copy(b, old, i))
      n.in[i] = copy_of(b, n.in[i], old, i);
  ir_rewrite_add(&b->r, id, &n);
  b->done[id] = true;
}

/* Lists in *out what nodes [first, last] of a loop read from outside. Returns the number. */
static uint32_t read_outside(Bounds *b, uint16_t loop, uint32_t first, uint32_t last, Value **out)
{
  bool *seen = arena_array(b->c->arena, bool, b->r.n_old);
  VEC(Value) list = {0};
  for (uint32_t id = first; id <= last; id++) {
    const Node *n = &b->r.old[id];
    for (uint32_t i = 0; i < n->n_in && is_inside(b, id, loop); i++) {
      uint32_t in = n->in[i].id;
      if (!in || seen[in] || is_inside(b, in, loop)) continue;
      seen[in] = true;
      vec_push(b->c->arena, &list, b->copied[in].id ? b->copied[in] : b->r.map[in]);
    }
  }
  *out = list.at;
  return list.n;
}

/* Appends copies of slices from outside before the loop that reads them. put_node() and put_nexts()
 * make copies of values that the loop carries. */
static void put_copies(Bounds *b, uint16_t loop, uint32_t first, uint32_t last)
{
  for (uint32_t id = first; id <= last; id++) {
    const Node *n = &b->r.old[id];
    if (!is_inside(b, id, loop) || op_of(n)->tmpl == TMPL_alias) continue;
    for (uint32_t i = 0; i < n->n_in; i++)
      if (b->r.map[n->in[i].id].id && old_root(b, n->in[i])->op == OP_turn && needs_copy(b, n, i))
        copy_of(b, b->r.map[n->in[i].id], n, i);
  }
}

/* Appends node `id` of `loop`, or the inner loop that it is in, after the values that it reads. */
static void put(Bounds *b, uint16_t loop, uint32_t id);

static void put_inputs(Bounds *b, uint16_t loop, uint32_t id)
{
  const Node *n = &b->r.old[id];
  for (uint32_t i = 0; i < n->n_in; i++) put(b, loop, n->in[i].id);
}

static void put_border(Bounds *b, OpKind op, uint16_t loop, uint32_t first, uint32_t last)
{
  Compile *c = b->c;
  const Node *n = &b->r.old[first];
  Cursor at = ir_cursor_at(n, WHY_state);
  Value *in;
  at.span = c->graph->loops.at[loop].span;
  at.origin = b->r.map[n->origin.id];
  at.loop = c->graph->loops.at[loop].parent;
  uint32_t n_in = read_outside(b, loop, first, last, &in);
  ir_append(c, &at, op, in, n_in, ATTRS({"loop", {.i = loop}}));
}

static bool ends_round(const Bounds *b, uint32_t id, uint16_t loop)
{
  return b->r.old[id].op == OP_next && b->r.old[id].loop == loop;
}

/* Appends the `next` nodes of a loop. They come last in an iteration, since each overwrites a
 * carried value that other nodes read. If a `next` reads what another one overwrites, it reads a
 * copy, which is made before all `next` nodes. So the nodes can run in their order. */
static void put_nexts(Bounds *b, uint16_t loop, uint32_t first, uint32_t last)
{
  for (uint32_t id = first; id <= last && b->borders; id++) {
    const Node *n = &b->r.old[id];
    if (ends_round(b, id, loop) && needs_copy(b, n, 1)) copy_of(b, b->r.map[n->in[1].id], n, 1);
  }
  for (uint32_t id = first; id <= last; id++)
    if (ends_round(b, id, loop)) put(b, loop, id);
}

static void put_loop(Bounds *b, uint16_t loop, uint32_t first)
{
  uint16_t around = b->c->graph->loops.at[loop].parent;
  uint32_t last = first;
  for (uint32_t id = first; id < b->r.n_old; id++)
    if (is_inside(b, id, loop)) last = id;
  for (uint32_t id = first; id <= last; id++)
    if (is_inside(b, id, loop)) {
      const Node *n = &b->r.old[id];
      for (uint32_t i = 0; i < n->n_in; i++)
        if (!is_inside(b, n->in[i].id, loop)) put(b, around, n->in[i].id);
    }
  if (b->borders) put_copies(b, loop, first, last);
  if (b->borders) put_border(b, OP_scan, loop, first, last);
  for (uint32_t id = first; id <= last; id++)
    if (is_inside(b, id, loop) && !ends_round(b, id, loop)) put(b, loop, id);
  put_nexts(b, loop, first, last);
  if (b->borders) put_border(b, OP_scan_end, loop, first, last);
}

static void put(Bounds *b, uint16_t loop, uint32_t id)
{
  const Graph *g = b->c->graph;
  uint16_t inner = b->r.old[id].loop;
  if (!id || b->done[id]) return;
  assert(ir_loop_within(g, inner, loop));
  if (inner == loop) {
    put_inputs(b, loop, id);
    put_node(b, id);
    return;
  }
  while (g->loops.at[inner].parent != loop) inner = g->loops.at[inner].parent;
  for (uint32_t first = 1;; first++)
    if (is_inside(b, first, inner)) {
      put_loop(b, inner, first);
      return;
    }
}

static void put_all(Bounds *b)
{
  ir_rewrite_begin(&b->r, b->c);
  b->done = arena_array(b->c->arena, bool, b->r.n_old);
  b->copied = arena_array(b->c->arena, Value, b->r.n_old);
  for (uint32_t id = 1; id < b->r.n_old; id++) put(b, 0, id);
}

void bound_loops(Compile *c)
{
  Bounds b = {.c = c, .borders = true};
  if (c->graph->loops.n > 1) put_all(&b);
}

/* True if a node of a loop comes after a reader of the results of that loop. */
static bool is_torn(const Compile *c)
{
  const Graph *g = c->graph;
  bool *read = arena_array(c->arena, bool, g->loops.n);
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    for (uint16_t loop = n->loop; loop; loop = g->loops.at[loop].parent)
      if (read[loop]) return true;
    for (uint32_t i = 0; i < n->n_in; i++) {
      const Node *x = ir_node(g, n->in[i]);
      if (x->op == OP_next || x->op == OP_stack) read[x->loop] = true;
    }
  }
  return false;
}

void loops_together(Compile *c)
{
  Bounds b = {.c = c};
  if (c->graph->loops.n > 1 && is_torn(c)) put_all(&b);
}
