/* Part of pass fuse: folded nodes, whose readers do their work. These are casts from 16 bits to
 * f32, expands and, if ops of tiles read them, other moves.
 *
 * A cast to a wider type is exact, so a kernel may read the 16-bit value and convert it. An expand
 * is a load with stride 0. So neither needs a kernel or memory of its own. Only kernels can read
 * folded nodes: matrix products of the library and outputs need the value in memory. */
#include "fold.h"
#include "compiler/command/walk.h"

typedef struct Fold {
  const Compile *c;
  Graph *g;
  const uint32_t *phase;
  /* first_use: value -> its first use; next_use: use -> next use of its value; 0: no use */
  uint32_t *first_use, *next_use;
  VEC(Value) user;     /* use -> the node that reads the value */
  VEC(uint32_t) input; /* use -> the input of that node; entry 0 is unused */
} Fold;

/* Lists (user, input) for each value, so that all users are found in one walk. */
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

/* True if n is a `scan` or `scan_end`: it reads what its loop reads from outside (loops.c). */
static bool is_border(const Node *n)
{
  return op_of(n)->tmpl == TMPL_loop && op_has(n, T_effect);
}

static bool in_phase(const Fold *f, Value v, uint32_t phase)
{
  return phase == UINT32_MAX || f->phase[v.id] == phase;
}

/* True if the user can do the work of the value that it reads in this use. `phase`: the phase of
 * the step in which the user must be; UINT32_MAX: any phase. */
typedef bool Reads(const Fold *f, uint32_t use, uint32_t phase);

static bool all_read(const Fold *f, Value v, uint32_t phase, Reads *reads)
{
  uint32_t use = f->first_use[v.id];
  bool good = use != 0;
  for (; use && good; use = f->next_use[use]) good = reads(f, use, phase);
  return good;
}

/* True if this user of a cast can convert the value as it loads it. Kernels can; an alias can if
 * all its users can. */
static bool reads_widened(const Fold *f, uint32_t use, uint32_t phase)
{
  Value v = f->user.at[use];
  const Node *user = ir_node(f->g, v);
  OpTemplate t = op_of(user)->tmpl;
  if (t == TMPL_alias && !op_has(user, T_kept)) return all_read(f, v, phase, reads_widened);
  bool loads = t == TMPL_map || t == TMPL_row || t == TMPL_file || is_border(user);
  return loads && in_phase(f, v, phase);
}

/* True if this user of an expand can load with stride 0. Elementwise ops can; row ops can for
 * operands that they read element by element. An operand that a row op reads once a row (@1) is
 * addressed by the row alone, so only a single value may be expanded there. If the user is a folded
 * cast, all users of the cast must be able to load with stride 0. */
static bool reads_expanded(const Fold *f, uint32_t use, uint32_t phase)
{
  Value v = f->user.at[use];
  const Node *user = ir_node(f->g, v);
  OpTemplate t = op_of(user)->tmpl;
  uint32_t input = f->input.at[use];
  const Node *expand = ir_node(f->g, user->in[input]);
  bool single = ir_elements(ir_node(f->g, expand->in[0])) == 1;
  bool loads =
      t == TMPL_map || is_border(user) ||
      (t == TMPL_row && input > 0 && (single || !op_of(user)->code.reads_row_value[input]));
  return loads && (!user->folded || all_read(f, v, phase, reads_expanded)) && in_phase(f, v, phase);
}

/* Returns the phase in which all users of v must be so that v can be folded. The readers of a
 * folded node compute it. If the node reads a weight, the loss scale or a counter, a reader after
 * the update would read a changed value. So all readers must be in the phase of the node.
 * UINT32_MAX: no effect changes the bytes within a step, so readers may be in any phase. */
static uint32_t wanted_phase(const Fold *f, Value v)
{
  const Node *root = ir_node(f->g, value_root(f->g, v));
  bool fixed = op_has(root, T_literal) || root->op == OP_source || op_of(root)->tmpl != TMPL_leaf;
  return fixed ? UINT32_MAX : f->phase[v.id];
}

static bool can_fold(const Fold *f, Value v)
{
  const Node *n = ir_node(f->g, v);
  if (n->op == OP_expand) return all_read(f, v, wanted_phase(f, v), reads_expanded);
  return is_widening(f->g, n) && all_read(f, v, wanted_phase(f, v), reads_widened);
}

/* True if this user can read through a move. Ops of tiles and pads of the last axis can read so if
 * strides describe where the elements are. Views and folded nodes can if all their users can. */
static bool reads_strided(const Fold *f, uint32_t use, uint32_t phase)
{
  Value v = f->user.at[use];
  const Node *user = ir_node(f->g, v);
  Access a;
  if (op_has(user, T_tiles))
    return tiles_read(f->g, user, f->input.at[use]) && in_phase(f, v, phase);
  if (user->op == OP_pad)
    return pad_vector(f->c, v) && access_through(f->g, user->in[0], &a) && in_phase(f, v, phase);
  return (user->folded || (op_of(user)->tmpl == TMPL_alias && !op_has(user, T_kept))) &&
         all_read(f, v, phase, reads_strided);
}

static void fold_moves(Fold *f)
{
  for (uint32_t id = f->g->nodes.n - 1; id > 0; id--) {
    Node *n = &f->g->nodes.at[id];
    if (n->folded || !(op_has(n, T_permutes) || op_has(n, T_strided))) continue;
    n->folded = true; /* tiles_read() looks through folded nodes */
    n->folded = all_read(f, (Value){id}, wanted_phase(f, (Value){id}), reads_strided);
  }
}

/* Sets Node.folded, from the last node to the first: the users of a node are decided before it. */
void fold_nodes(Compile *c, const uint32_t *phase)
{
  Fold f = {.c = c, .g = c->graph, .phase = phase};
  list_uses(c, &f);
  for (uint32_t id = f.g->nodes.n - 1; id > 0; id--)
    f.g->nodes.at[id].folded = can_fold(&f, (Value){id});
  fold_moves(&f);
}
