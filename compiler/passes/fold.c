/* Part of pass fuse: casts to f32 from 16 bits, expands and, where ops of tiles read them, other
 * moves that are done by their readers.
 *
 * A cast that widens is exact, so a kernel that reads the 16-bit value and converts it computes the
 * same; an expand is a load with stride 0. Neither then needs a kernel or room. Only kernels can do
 * so: matrix products and outputs need the bytes. */
#include "fold.h"
#include "compiler/command/command.h"

typedef struct Fold {
  Graph *g;
  const uint32_t *phase;
  uint32_t *first_use, *next_use; /* lists of (user, input) by value: index user_at */
  VEC(Value) user;
  VEC(uint32_t) input;
} Fold;

/* For each value the list of (user, input), so that all users are looked at in one walk. */
static void list_uses(Compile *c, Fold *f)
{
  uint32_t n = f->g->nodes.n, all = 1;
  for (uint32_t id = 1; id < n; id++) all += f->g->nodes.at[id].n_in;
  f->first_use = arena_array(c->arena, uint32_t, n);
  f->next_use = arena_array(c->arena, uint32_t, all);
  vec_push(c->arena, &f->user, (Value){0});
  vec_push(c->arena, &f->input, 0);
  for (uint32_t id = 1; id < n; id++) {
    const Node *user = &f->g->nodes.at[id];
    for (uint32_t i = 0; i < user->n_in; i++) {
      uint32_t from = user->in[i].id;
      f->next_use[f->user.n] = f->first_use[from];
      f->first_use[from] = f->user.n;
      vec_push(c->arena, &f->user, (Value){id});
      vec_push(c->arena, &f->input, i);
    }
  }
}

/* `scan` and `scan_end` list what a loop reads: its bytes must be there, whoever converts them. */
static bool is_border(const Node *n)
{
  return op_of(n)->tmpl == TMPL_loop && op_has(n, T_effect);
}

/* All users of cast v can convert as they load: kernels, and aliases whose users can. `phase`: in
 * which phase they must all be, UINT32_MAX: any. */
static bool reads_widened(const Fold *f, Value v, uint32_t phase)
{
  uint32_t use = f->first_use[v.id];
  bool good = use != 0;
  for (; use && good; use = f->next_use[use]) {
    const Node *user = ir_node(f->g, f->user.at[use]);
    OpTemplate t = op_of(user)->tmpl;
    good = t == TMPL_map || t == TMPL_row || t == TMPL_file || is_border(user);
    if (t == TMPL_alias && !op_has(user, T_kept))
      good = reads_widened(f, f->user.at[use], phase);
    else if (phase != UINT32_MAX && f->phase[f->user.at[use].id] != phase)
      good = false;
  }
  return good;
}

/* All users of expand v can load with stride 0: elementwise ops, and row ops for operands read
 * element by element. What a row op reads once a row (@1) is addressed by the row alone: only a
 * single value does. If a user is a folded cast, its own users must be able to as well. */
static bool reads_expanded(const Fold *f, Value v, uint32_t phase)
{
  bool single = ir_elements(ir_node(f->g, ir_node(f->g, v)->in[0])) == 1;
  uint32_t use = f->first_use[v.id];
  bool good = use != 0;
  for (; use && good; use = f->next_use[use]) {
    const Node *user = ir_node(f->g, f->user.at[use]);
    OpTemplate t = op_of(user)->tmpl;
    uint32_t input = f->input.at[use];
    good = t == TMPL_map || is_border(user) ||
           (t == TMPL_row && input > 0 && (single || !op_of(user)->code.reads_row_value[input]));
    if (good && user->folded) good = reads_expanded(f, f->user.at[use], phase);
    if (phase != UINT32_MAX && f->phase[f->user.at[use].id] != phase) good = false;
  }
  return good;
}

/* A folded node is computed where its readers stand. If it reads a weight, the scale or a counter,
 * a reader behind an update would see another value: so its readers must be in its own phase.
 * UINT32_MAX: the bytes do not change in a step, any phase does. */
static uint32_t wanted_phase(const Fold *f, Value v)
{
  const Node *root = ir_node(f->g, value_root(f->g, v));
  bool fixed = op_has(root, T_literal) || root->op == OP_source || op_of(root)->tmpl != TMPL_leaf;
  return fixed ? UINT32_MAX : f->phase[v.id];
}

static bool can_fold(const Fold *f, Value v)
{
  const Node *n = ir_node(f->g, v);
  if (n->op == OP_expand) return reads_expanded(f, v, wanted_phase(f, v));
  return is_widening(f->g, n) && reads_widened(f, v, wanted_phase(f, v));
}

/* All users of move v can read through it: ops that take any strides, as far as strides say where
 * elements lie, and views and folded nodes that only such ops read. */
static bool reads_strided(const Fold *f, Value v, uint32_t phase)
{
  uint32_t use = f->first_use[v.id];
  bool good = use != 0;
  for (; use && good; use = f->next_use[use]) {
    const Node *user = ir_node(f->g, f->user.at[use]);
    if (op_has(user, T_tiles))
      good = tiles_read(f->g, user, f->input.at[use]) &&
             (phase == UINT32_MAX || f->phase[f->user.at[use].id] == phase);
    else
      good = (user->folded || (op_of(user)->tmpl == TMPL_alias && !op_has(user, T_kept))) &&
             reads_strided(f, f->user.at[use], phase);
  }
  return good;
}

static void fold_moves(Fold *f)
{
  for (uint32_t id = f->g->nodes.n - 1; id > 0; id--) {
    Node *n = &f->g->nodes.at[id];
    if (n->folded || !(op_has(n, T_permutes) || op_has(n, T_strided))) continue;
    n->folded = true; /* so that tiles_read looks through it */
    n->folded = reads_strided(f, (Value){id}, wanted_phase(f, (Value){id}));
  }
}

/* From the last node to the first: so users of a node are decided before the node. */
void fold_nodes(Compile *c, const uint32_t *phase)
{
  Fold f = {.g = c->graph, .phase = phase};
  list_uses(c, &f);
  for (uint32_t id = f.g->nodes.n - 1; id > 0; id--)
    f.g->nodes.at[id].folded = can_fold(&f, (Value){id});
  fold_moves(&f);
}
