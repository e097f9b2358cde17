/* Pass fuse: which nodes one command computes.
 *
 * needs IR_LAID: the final nodes, relayouts and recomputed ones included. Gives IR_FUSED:
 * Node.group and Graph.groups, numbered in the order in which their commands run. Why here: memory
 * must know which values never leave a kernel.
 *
 * Without optimisation every node is a command of its own. Else elementwise nodes of one shape join
 * the groups of their producers; a value that somebody else reads too is stored as well. Rounding
 * is the business of nodes, not of groups, so no bit of a result depends on what this pass does.
 *
 * Note [fences]: nodes that change what others read without naming it (weights, gradients, scale,
 * counters) end a stretch of the program. Nothing is joined or moved across such a node, and inside
 * a stretch the effects keep their order, so sums into one gradient are made in the same order
 * whatever is fused. */
#include "command.h"
#include "passes.h"
#include <assert.h>
#include <string.h>

enum { MAX_GROUP = 48 }; /* nodes: more would not fit in registers */

typedef struct Fuse {
  Compile *c;
  Graph *g;
  uint32_t *set;     /* node -> first node of the group it is in; 0: not computed by a command */
  uint32_t *size;    /* of the group, at its first node */
  uint32_t *stretch; /* node -> number of fences before it */
  uint32_t *mark;    /* of searches: equal to `search` where this one has been */
  uint32_t search;
} Fuse;

static bool has_command(const Graph *g, uint32_t id)
{
  OpTemplate t = op_info[g->nodes.at[id].op].tmpl;
  return t != TMPL_leaf && t != TMPL_alias && !is_working_copy(g, (Value){id});
}

static bool is_fence(OpKind op)
{
  return op == OP_grad_norm || (op_has_effect(op) && op != OP_metric && op != OP_grad_accumulate);
}

static bool is_map(const Node *n)
{
  return op_info[n->op].tmpl == TMPL_map;
}

static uint32_t find(const Fuse *f, uint32_t id)
{
  while (f->set[id] != id) id = f->set[id];
  return id;
}

/* ---- joining -----------------------------------------------------------------------------------
 */

/* The computed node behind input k of n, or 0. */
static uint32_t producer(const Fuse *f, const Node *n, uint32_t k)
{
  uint32_t id = value_root(f->g, n->in[k]).id;
  return id && f->set[id] ? id : 0;
}

/* Does the value of node `id` depend on a node of group `group` through a node outside of it? With
 * `outside`, the path has left the group already. Nodes before `first` cannot lead there. */
static bool leads_back(Fuse *f, uint32_t id, uint32_t group, uint32_t first, bool outside)
{
  const Node *n = &f->g->nodes.at[id];
  for (uint32_t k = 0; k < n->n_in; k++) {
    uint32_t p = producer(f, n, k);
    if (p < first || !p) continue;
    bool inside = find(f, p) == group;
    if (inside && outside) return true;
    if (inside || f->mark[find(f, p)] == f->search) continue;
    f->mark[find(f, p)] = f->search;
    /* a command needs all inputs of all its nodes */
    for (uint32_t m = first; m < id; m++) {
      if (f->set[m] && find(f, m) == find(f, p) && leads_back(f, m, group, first, true))
        return true;
    }
  }
  return false;
}

/* May node `id` be computed by the command of `group`? Only if what else it reads does not itself
 * wait for that command. */
static bool can_join(Fuse *f, uint32_t id, uint32_t group)
{
  const Node *n = &f->g->nodes.at[id], *first = &f->g->nodes.at[group];
  if (!is_map(first) || first->block != n->block || f->stretch[group] != f->stretch[id])
    return false;
  if (!ir_same_dims(first, n) || f->size[group] + f->size[find(f, id)] > MAX_GROUP) return false;
  f->search++;
  return !leads_back(f, id, group, group, false);
}

static void join(Fuse *f, uint32_t a, uint32_t b)
{
  uint32_t first = a < b ? a : b, other = a < b ? b : a;
  f->set[other] = first;
  f->size[first] += f->size[other];
}

static void join_producers(Fuse *f, uint32_t id)
{
  const Node *n = &f->g->nodes.at[id];
  for (uint32_t k = 0; k < n->n_in; k++) {
    uint32_t p = producer(f, n, k);
    if (!p || find(f, p) == find(f, id)) continue;
    if (find(f, id) == id && can_join(f, id, find(f, p))) join(f, find(f, p), id);
  }
}

/* ---- order -------------------------------------------------------------------------------------
 */

typedef struct Order {
  Fuse *f;
  VEC(uint32_t) list; /* groups by their first nodes, in the order of their commands */
  bool *done;
} Order;

/* A product that may write straight into a gradient counts as the effect that it replaces. */
static bool writes_gradient(const Graph *g, uint32_t id)
{
  if (op_info[g->nodes.at[id].op].tmpl != TMPL_gemm) return false;
  for (uint32_t i = id + 1; i < g->nodes.n; i++) {
    const Node *n = &g->nodes.at[i];
    if (n->op == OP_grad_accumulate && value_root(g, n->in[0]).id == id) return true;
  }
  return false;
}

static void place_group(Order *o, uint32_t group)
{
  Fuse *f = o->f;
  if (o->done[group]) return;
  o->done[group] = true;
  for (uint32_t id = group; id < f->g->nodes.n; id++) {
    if (!f->set[id] || find(f, id) != group) continue;
    const Node *n = &f->g->nodes.at[id];
    for (uint32_t k = 0; k < n->n_in; k++) {
      uint32_t p = producer(f, n, k);
      if (p) place_group(o, find(f, p));
    }
  }
  vec_push(f->c->arena, &o->list, group);
}
