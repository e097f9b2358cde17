/* Part of pass recompute: backward computes what it reads of frozen weights again.
 *
 * Ops read a frozen weight that is stored in 16 bits or fewer through cheap nodes: a cast, or the
 * values of its codes. The results are large, and without this file memory would hold those of all
 * layers from forward to backward. So backward reads a clone of such a node, which waits for the
 * gradient that its first reader reads. Frozen weights do not change, so clones compute the same
 * bits. At -O0 nothing is recomputed, because each clone of an alias or a cast would be a command.
 */
#include "compiler/command/command.h"
#include "recompute.h"
#include "compiler/graph/ops.h"

typedef struct Widenings {
  Rewrite r;
  bool *reads;  /* node -> true if it depends on frozen weights alone */
  bool *made;   /* node -> true if it does and is no mere view of a weight */
  Value *clone; /* node -> its clone for backward; 0: none yet */
} Widenings;

/* Finds the nodes of forward, outside of loops, that are cheap functions of frozen weights. */
static void find_widenings(Compile *c, Widenings *x)
{
  for (uint32_t id = 1; id < x->r.n_old; id++) {
    const Node *n = &x->r.old[id];
    OpTemplate tmpl = op_of(n)->tmpl;
    if (n->op == OP_param) x->reads[id] = c->graph->params.at[attr_int(n, "index")].fixed;
    bool plain = tmpl == TMPL_map || tmpl == TMPL_alias || op_has(n, T_strided | T_permutes);
    bool fits = plain && n->n_in && !n->origin.id && !n->loop && !op_draws(n) &&
                !op_has(n, T_effect | T_kept | T_crosses);
    if (!fits) continue;
    bool all = true, made = tmpl == TMPL_map;
    for (uint32_t k = 0; k < n->n_in; k++) {
      all = all && x->reads[n->in[k].id];
      made = made || x->made[n->in[k].id];
    }
    x->reads[id] = all;
    x->made[id] = all && made;
  }
}

static void add_clone(Widenings *x, uint32_t id, Value after);

/* Returns a copy of a node whose inputs are clones, as far as they are widened weights. */
static Node with_clones(Widenings *x, uint32_t id, Value after)
{
  const Node *old = &x->r.old[id];
  for (uint32_t k = 0; k < old->n_in; k++) add_clone(x, old->in[k].id, after);
  Node n = ir_rewrite_mapped(&x->r, id);
  for (uint32_t k = 0; k < n.n_in; k++)
    if (x->made[old->in[k].id]) n.in[k] = x->clone[old->in[k].id];
  return n;
}

/* Adds a clone of a node and of what it is computed from, if there is none. */
static void add_clone(Widenings *x, uint32_t id, Value after)
{
  if (!x->made[id] || x->clone[id].id) return;
  Value first = x->r.map[id];
  Node n = with_clones(x, id, after);
  n.origin = first;
  n.after = after;
  x->clone[id] = ir_rewrite_add(&x->r, id, &n);
  x->r.map[id] = first;
}

/* Copies a node of backward, with clones as its inputs. */
static void copy_reader(Widenings *x, uint32_t id)
{
  const Node *old = &x->r.old[id];
  Value after = old->after.id ? x->r.map[old->after.id] : recompute_after(&x->r, id);
  Node n = after.id && !old->loop ? with_clones(x, id, after) : ir_rewrite_mapped(&x->r, id);
  ir_rewrite_add(&x->r, id, &n);
}

void recompute_widenings(Compile *c)
{
  uint32_t n = c->graph->nodes.n;
  Widenings x = {.reads = arena_array(c->arena, bool, n),
                 .made = arena_array(c->arena, bool, n),
                 .clone = arena_array(c->arena, Value, n)};
  ir_rewrite_begin(&x.r, c);
  find_widenings(c, &x);
  for (uint32_t id = 1; id < n; id++) {
    if (x.r.old[id].origin.id)
      copy_reader(&x, id);
    else
      ir_rewrite_copy(&x.r, id);
  }
  ir_drop_dead(c);
}
