/* Pass fuse: which nodes one command computes.
 *
 * needs IR_LAID: the final nodes, relayouts and recomputed ones included. Gives IR_FUSED:
 * Node.group and Graph.groups, numbered in the order in which their commands run. Why here: memory
 * must know which values never leave a kernel.
 *
 * Without optimisation every node is a command of its own. Else elementwise nodes of one shape join
 * the groups of their producers, be these elementwise or row ops; a value that somebody else reads
 * too is stored as well. Moves that are strided loads join their readers, widening casts and
 * expands vanish into them (fold.c). Rounding is the business of nodes, not of groups, so no bit of
 * a result depends on what this pass does.
 *
 * Note [fences]: nodes that change what others read without naming it (weights, gradients, scale,
 * counters) end a stretch of the program. Groups never span a fence. Effects inside a stretch have
 * no readers, so ordering groups by their first nodes keeps the effects in order, and sums into
 * one gradient are made in the same order whatever is fused. */
#include "fold.h"
#include "passes.h"

enum { MAX_GROUP = 48 }; /* nodes: more would not fit in registers */

typedef struct Members {
  VEC(uint32_t) nodes; /* in execution order */
} Members;

typedef struct Fuse {
  Compile *c;
  Graph *g;
  uint32_t *group;   /* node -> index into sets; 0: not computed by a command */
  uint32_t *stretch; /* node -> number of fences before it */
  VEC(Members) sets; /* sets.at[0] is unused */
  uint32_t *mark;    /* set -> the last search that was there */
  uint32_t search;
} Fuse;

static bool has_command(const Graph *g, uint32_t id)
{
  const Node *n = &g->nodes.at[id];
  OpTemplate t = op_info[n->op].tmpl;
  return t != TMPL_leaf && t != TMPL_alias && !n->folded && !is_working_copy(g, (Value){id});
}

static bool is_fence(OpKind op)
{
  return op_has_effect(op) && op != OP_metric && op != OP_grad_accumulate;
}

/* The set that computes input k of n; 0 where nothing does. */
static uint32_t producer(const Fuse *f, const Node *n, uint32_t k)
{
  return f->group[value_root(f->g, n->in[k]).id];
}

/* ---- joining -----------------------------------------------------------------------------------
 */

/* Does `set` wait, directly or not, for `target`? */
static bool waits_for(Fuse *f, uint32_t set, uint32_t target)
{
  if (set == target) return true;
  if (!set || f->mark[set] == f->search) return false;
  f->mark[set] = f->search;
  const Members *m = &f->sets.at[set];
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    const Node *n = &f->g->nodes.at[m->nodes.at[i]];
    for (uint32_t k = 0; k < n->n_in; k++)
      if (waits_for(f, producer(f, n, k), target)) return true;
  }
  return false;
}

/* One command for both would wait for itself if the reader also waited for a third one that waits
 * for the writer. */
static bool makes_cycle(Fuse *f, uint32_t reader, uint32_t writer)
{
  f->search++;
  const Members *m = &f->sets.at[reader];
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    const Node *n = &f->g->nodes.at[m->nodes.at[i]];
    for (uint32_t k = 0; k < n->n_in; k++) {
      uint32_t p = producer(f, n, k);
      if (p != reader && p != writer && waits_for(f, p, writer)) return true;
    }
  }
  return false;
}

static OpTemplate template_of(const Fuse *f, uint32_t id)
{
  return op_info[f->g->nodes.at[id].op].tmpl;
}

/* A move that is a load with other strides; what it reads must lie in memory. */
static bool is_walk(OpKind op)
{
  return op == OP_expand || op == OP_transpose || op == OP_slice;
}

static bool only_maps(const Fuse *f, const Members *m, bool walks_too)
{
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    uint32_t id = m->nodes.at[i];
    bool walk = walks_too && is_walk(f->g->nodes.at[id].op);
    if (template_of(f, id) != TMPL_map && !walk) return false;
  }
  return true;
}

static bool has_row(const Fuse *f, const Members *m)
{
  for (uint32_t i = 0; i < m->nodes.n; i++)
    if (template_of(f, m->nodes.at[i]) == TMPL_row) return true;
  return false;
}

/* Does a walk of `m` read what `other` computes? */
static bool walks_into(const Fuse *f, const Members *m, uint32_t other)
{
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    const Node *n = &f->g->nodes.at[m->nodes.at[i]];
    if (is_walk(n->op) && producer(f, n, 0) == other) return true;
  }
  return false;
}

/* Elementwise nodes and walks join each other; elementwise nodes join what a row op gives. */
static bool kinds_join(const Fuse *f, const Members *r, const Members *w)
{
  if (has_row(f, w)) return only_maps(f, r, false);
  return only_maps(f, w, true) && only_maps(f, r, true);
}

static bool can_join(Fuse *f, uint32_t reader, uint32_t writer)
{
  const Members *r = &f->sets.at[reader], *w = &f->sets.at[writer];
  uint32_t from = w->nodes.at[0], to = r->nodes.at[0];
  if (!kinds_join(f, r, w) || walks_into(f, r, writer) || walks_into(f, w, reader)) return false;
  if (f->g->nodes.at[from].block != f->g->nodes.at[to].block || f->stretch[from] != f->stretch[to])
    return false;
  return r->nodes.n + w->nodes.n <= MAX_GROUP && !makes_cycle(f, reader, writer);
}

static void join(Fuse *f, uint32_t reader, uint32_t writer)
{
  Members *r = &f->sets.at[reader], *w = &f->sets.at[writer], all = {0};
  uint32_t i = 0, k = 0;
  while (i < r->nodes.n || k < w->nodes.n) {
    bool first = k == w->nodes.n || (i < r->nodes.n && r->nodes.at[i] < w->nodes.at[k]);
    uint32_t id = first ? r->nodes.at[i++] : w->nodes.at[k++];
    f->group[id] = writer;
    vec_push(f->c->arena, &all.nodes, id);
  }
  *w = all;
  r->nodes.n = 0;
}

static void join_producers(Fuse *f, uint32_t id)
{
  const Node *n = &f->g->nodes.at[id];
  if (is_walk(n->op)) return;
  for (uint32_t k = 0; k < n->n_in; k++) {
    Value root = value_root(f->g, n->in[k]);
    uint32_t writer = f->group[root.id], reader = f->group[id];
    bool same_index = ir_same_dims(n, ir_node(f->g, root));
    if (writer && writer != reader && same_index && can_join(f, reader, writer))
      join(f, reader, writer);
  }
}

/* ---- order -------------------------------------------------------------------------------------
 */

static void add_group(Fuse *f, const Members *m, uint32_t *numbers, uint32_t set)
{
  Group out = {.nodes = arena_array(f->c->arena, Value, m->nodes.n), .n = m->nodes.n};
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    out.nodes[i].id = m->nodes.at[i];
    Node *n = &f->g->nodes.at[m->nodes.at[i]];
    n->group = f->g->groups.n;
    OpTemplate t = op_info[n->op].tmpl;
    if (t != TMPL_map && (t != TMPL_move || m->nodes.n == 1)) out.anchor = out.nodes[i];
  }
  numbers[set] = f->g->groups.n;
  vec_push(f->c->arena, &f->g->groups, out);
}

/* After everything it waits for. */
static void order_set(Fuse *f, uint32_t set, uint32_t *numbers)
{
  if (!set || numbers[set]) return;
  const Members *m = &f->sets.at[set];
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    const Node *n = &f->g->nodes.at[m->nodes.at[i]];
    for (uint32_t k = 0; k < n->n_in; k++) {
      uint32_t p = producer(f, n, k);
      if (p != set) order_set(f, p, numbers);
    }
  }
  add_group(f, m, numbers, set);
}

static void find_stretches(Fuse *f)
{
  uint32_t fences = 0;
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    f->stretch[id] = fences;
    fences += is_fence(f->g->nodes.at[id].op);
  }
}

static void make_sets(Fuse *f)
{
  vec_push(f->c->arena, &f->sets, (Members){0});
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    if (!has_command(f->g, id)) continue;
    Members one = {0};
    vec_push(f->c->arena, &one.nodes, id);
    f->group[id] = f->sets.n;
    vec_push(f->c->arena, &f->sets, one);
  }
}

bool pass_fuse(Compile *c)
{
  write_constant_outputs(c);
  Graph *g = c->graph;
  uint32_t n = g->nodes.n;
  Fuse f = {.c = c, .g = g};
  f.group = arena_array(c->arena, uint32_t, n);
  f.stretch = arena_array(c->arena, uint32_t, n);
  f.mark = arena_array(c->arena, uint32_t, n + 1);
  find_stretches(&f);
  if (c->options.optimize > 0) fold_nodes(c, f.stretch);
  make_sets(&f);
  for (uint32_t id = 1; id < n && c->options.optimize > 0; id++)
    if (f.group[id]) join_producers(&f, id);
  uint32_t *numbers = arena_array(c->arena, uint32_t, f.sets.n);
  g->groups.n = 0;
  vec_push(c->arena, &g->groups, (Group){0});
  for (uint32_t id = 1; id < n; id++) order_set(&f, f.group[id], numbers);
  g->facts |= IR_FUSED;
  return true;
}
