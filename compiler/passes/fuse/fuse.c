/* Pass fuse: decides which nodes one command computes.
 *
 * Needs IR_LAID: the final nodes, relayouts and clones included. Gives IR_FUSED: Node.group and
 * Graph.groups, numbered in the order in which their commands run. Why here: memory must know which
 * values never leave a kernel.
 *
 * Without optimization only passes/fuse/tiles.c and join_own() join nodes; each other node is a
 * command. With optimization, elementwise nodes of one shape join the groups of their producers,
 * which may be elementwise nodes or row ops. Row ops join the elementwise nodes that make their
 * operands, and other row ops over the same rows. Ops of windows do the same
 * (passes/fuse/windows.c). A value that other groups read is also stored. Moves that are strided
 * loads join their readers; readers do the work of widening casts and expands (fold.c). Rounding
 * depends on nodes, not on groups, so this pass changes no bit of a result.
 *
 * Effects change values that other nodes read without having the effect as an input: weights,
 * gradients, the loss scale, counters. order.c orders such nodes, and its edges count here like
 * operands. So the order of additions to one gradient does not depend on fusion. At the end small
 * sets share launches (share.c).
 *
 * Note [fences]: an effect ends a phase of the step, unless it only adds to a value (T_adds). If a
 * folded node reads what effects change, all its readers must be in the phase of that node. */
#include "fuse.h"
#include "fold.h"
#include "compiler/passes/passes.h"
#include <string.h>

bool fuse_has_command(const Graph *g, uint32_t id)
{
  const Node *n = &g->nodes.at[id];
  OpTemplate t = op_of(n)->tmpl;
  return t != TMPL_leaf && t != TMPL_alias && n->op != OP_turn && !n->folded &&
         !is_working_copy(g, (Value){id});
}

/* True if n is an effect that ends a phase, such as an update of weights: Note [fences]. */
static bool is_fence(const Node *n)
{
  return op_has(n, T_effect) && !op_has(n, T_adds);
}

/* Returns the set that computes input k of n; 0 if no set does. */
static uint32_t producer(const Fuse *f, const Node *n, uint32_t k)
{
  return f->group[f->root[n->in[k].id]];
}

/* ---- joining ---- */

static OpTemplate template_of(const Fuse *f, uint32_t id)
{
  return op_of(&f->g->nodes.at[id])->tmpl;
}

static int64_t slot_of(const Graph *g, const Node *n)
{
  return n->block * (int64_t)g->params.n + attr_int(n, "param");
}

/* True if node id keeps a command of its own. A weight that is used twice has two gradients that
 * are added to one slot. Their order affects the bits of the result. Commands of their own keep
 * that order. */
static bool stays_alone(const Fuse *f, uint32_t id)
{
  const Node *n = &f->g->nodes.at[id];
  return ir_adds_to(n) >= 0 && f->sums[slot_of(f->g, n)] > 1;
}

/* True if the set has only elementwise nodes. With `loads_too`, moves that are strided loads may be
 * in it as well, and ops that read blocks, which the kernels of row ops cannot. */
static bool only_maps(const Fuse *f, const Members *m, bool loads_too)
{
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    uint32_t id = m->nodes.at[i];
    bool load = loads_too && op_has(&f->g->nodes.at[id], T_strided);
    bool map = template_of(f, id) == TMPL_map && (loads_too || !op_has(node_at(f, id), T_blocks));
    if ((!map && !load) || stays_alone(f, id)) return false;
  }
  return true;
}

/* Returns the first row op of the set, or 0. */
static uint32_t row_in(const Fuse *f, const Members *m)
{
  for (uint32_t i = 0; i < m->nodes.n; i++)
    if (template_of(f, m->nodes.at[i]) == TMPL_row) return m->nodes.at[i];
  return 0;
}

/* ---- rows ---- */

/* Returns the input of row op `row` that has the shape of its rows. */
static const Node *walked_by(const Fuse *f, uint32_t row)
{
  return ir_node(f->g, f->g->nodes.at[row].in[0]);
}

/* True if the rows of a row op have length 1. Such rows have as many elements as results. Then
 * neither the shape nor the size of a node shows whether it is in the loop over elements or
 * computed once a row. So all nodes that join such a row op are computed once a row
 * (RowKernel.flat), and no other row op joins it. */
static bool is_flat(const Fuse *f, uint32_t row)
{
  return row_is_flat(f->g, (Value){row});
}

/* True if large elementwise work may join row op `row`. Each block computes some rows, so few rows
 * keep only few threads of a GPU busy, and large elementwise work loses its many threads; the limit
 * is lower for expensive (`dear`) work. `threads`: how many threads the row op uses. Ops that are
 * cut into parts have so many parts that each thread has little to do (columns.c). */
static bool has_room(const Fuse *f, uint32_t row, bool dear)
{
  enum { THREADS = 4096, SMALL = 16384, BLOCK = 512 };
  enum { BUSY = 131072, DEAR = 32 /* elements of a thread */ };
  RowShape s = row_shape(f->g, (Value){row});
  int64_t threads = s.outer * (s.length < BLOCK ? s.length : BLOCK);
  int64_t elements = ir_elements(walked_by(f, row));
  if (s.parts) return true;
  if (row_has_columns(&s))
    threads = s.outer * column_tile(s.outer, s.length, s.inner, s.widest).tiles * CUDA_BLOCK;
  if (dear && threads < BUSY && elements > DEAR * threads) return false;
  return threads >= THREADS || elements <= SMALL;
}

/* True if the elementwise nodes w make an operand of row op `row` and may join it, so that they
 * need no memory. They are computed again in each walk along the row (softmax walks three times).
 * So they must be cheap, or the op must walk each row once. */
static bool makes_operand(const Fuse *f, uint32_t row, const Members *w)
{
  bool dear = false;
  for (uint32_t i = 0; i < w->nodes.n; i++) {
    const Node *n = &f->g->nodes.at[w->nodes.at[i]];
    if (op_has(n, T_effect) || !ir_same_dims(n, walked_by(f, row))) return false;
    dear |= op_of(n)->code.dear;
  }
  if (dear && !op_of(&f->g->nodes.at[row])->code.walks_once) return false;
  return !is_flat(f, row) && only_maps(f, w, false) && has_room(f, row, dear);
}

/* True if r is a relu that the library computes as it stores the product w (T_epilogue). The relu
 * must be the only reader, since the product itself is not stored. Rounding keeps the sign, so relu
 * before it gives the same bits as relu after it. The library stores the type of the product, so no
 * cast may be between them. */
static bool ends_product(const Fuse *f, const Members *r, const Members *w)
{
  uint32_t product = w->nodes.at[0];
  const Node *last = &f->g->nodes.at[r->nodes.at[0]];
  return r->nodes.n == 1 && w->nodes.n == 1 && op_has(last, T_epilogue) &&
         last->dtype == f->g->nodes.at[product].dtype && template_of(f, product) == TMPL_gemm &&
         f->readers[product] == 1;
}

/* True if one kernel can compute both kinds of sets. r reads w:
 *    maps and strided loads   with maps and strided loads
 *    a row op                 with the cheap maps that make its operands
 *    maps                     with the row op whose result they read
 *    relu                     with the product that it ends */
static bool kinds_join(const Fuse *f, const Members *r, const Members *w)
{
  uint32_t reader = row_in(f, r), writer = row_in(f, w);
  if (ends_product(f, r, w)) return true;
  if (reader && writer) return false;
  if (reader) return r->nodes.n == 1 && makes_operand(f, reader, w);
  if (writer) return only_maps(f, r, false);
  return only_maps(f, w, true) && only_maps(f, r, true);
}

/* True if members of r read results of w only where a register can hold them. A node that reads a
 * value of its own kernel reads it from a register. So a member of r may read results of w only at
 * the element (or row) that it computes itself. */
static bool meets(const Fuse *f, const Members *r, uint32_t writer)
{
  for (uint32_t i = 0; i < r->nodes.n; i++) {
    uint32_t id = r->nodes.at[i];
    const Node *n = &f->g->nodes.at[id];
    for (uint32_t k = 0; k < n->n_in; k++)
      if (producer(f, n, k) == writer && !reads_in_order(f->g, (Value){id}, k)) return false;
  }
  return true;
}

/* True if the shapes of both sets fit one kernel. The loop of a kernel has the shape of one node.
 * Nodes of another shape with as many elements may be in it if none of them uses axes. In a kernel
 * of row ops the shape of a node shows whether it is computed once a row, so only values of rows
 * may have another shape there. */
static bool shapes_join(const Fuse *f, const Members *r, const Members *w)
{
  const Node *first = node_walked(f->g, (Value){w->nodes.at[0]});
  uint32_t row = row_in(f, w);
  bool elements = row && !is_flat(f, row); /* nodes may be in the loop over elements */
  bool same = true, flat = template_of(f, w->nodes.at[0]) != TMPL_gemm;
  if (row) first = &f->g->nodes.at[row];
  for (uint32_t i = 0; i < r->nodes.n + w->nodes.n; i++) {
    bool reader = i < r->nodes.n;
    Value v = {reader ? r->nodes.at[i] : w->nodes.at[i - r->nodes.n]};
    if (row && !reader) continue;
    const Node *n = node_walked(f->g, v);
    same &= ir_same_dims(n, first) || (elements && ir_same_dims(n, walked_by(f, row)));
    flat &= reads_flat(f->g, v) && ir_elements(n) == ir_elements(first);
  }
  return same || (flat && !(elements && ir_elements(first) == ir_elements(walked_by(f, row))));
}

/* True if an elementwise node with the shape of the rows reads a node of these two sets with
 * another shape, such as a single value. The kernel computes such a value once a row, after the
 * walks that would need it. */
static bool reads_other_shape(const Fuse *f, uint32_t id, uint32_t a, uint32_t b, const Node *x)
{
  const Node *n = &f->g->nodes.at[id];
  bool maps = op_of(n)->tmpl == TMPL_map && ir_same_dims(node_walked(f->g, (Value){id}), x);
  for (uint32_t k = 0; k < n->n_in && maps; k++) {
    Value from = value_root(f->g, n->in[k]);
    bool here = from.id && (f->group[from.id] == a || f->group[from.id] == b);
    if (here && template_of(f, from.id) == TMPL_map && !ir_same_dims(node_walked(f->g, from), x))
      return true;
  }
  return false;
}

/* True if reads_other_shape() is false for all nodes of the two sets. x is the value that their row
 * ops walk. */
static bool read_one_shape(const Fuse *f, uint32_t a, uint32_t b, const Node *x)
{
  const Members *m = &f->sets.at[a], *w = &f->sets.at[b];
  for (uint32_t i = 0; i < m->nodes.n + w->nodes.n; i++) {
    uint32_t id = i < m->nodes.n ? m->nodes.at[i] : w->nodes.at[i - m->nodes.n];
    if (reads_other_shape(f, id, a, b, x)) return false;
  }
  return true;
}

/* True if the kernel of row op `row` knows the axes that the nodes of m need. If the columns are no
 * axes of the shape of the rows (`loose`), the kernel knows only the number of an element, not its
 * axes. Then no node may read a value that is broadcast along some axes. */
static bool knows_elements(const Fuse *f, uint32_t row, const Members *m)
{
  bool loose = row_shape(f->g, (Value){row}).loose;
  for (uint32_t i = 0; i < m->nodes.n && loose; i++)
    if (template_of(f, m->nodes.at[i]) == TMPL_map && !reads_flat(f->g, (Value){m->nodes.at[i]}))
      return false;
  return true;
}

/* True if the joined kernel keeps this order: a kernel that overwrites a carried value reads it
 * first, at the element that it writes. */
static bool keeps_carried(const Fuse *f, const Members *m, const Members *w)
{
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    const Node *next = node_at(f, m->nodes.at[i]);
    const Members *both[] = {m, w};
    if (next->op != OP_next) continue;
    for (uint32_t j = 0; j < 2; j++)
      for (uint32_t k = 0; k < both[j]->nodes.n; k++) {
        uint32_t id = both[j]->nodes.at[k];
        const Node *n = node_at(f, id);
        if (op_of(n)->tmpl != TMPL_map && !op_has(n, T_strided)) return false;
        for (uint32_t in = 0; in < n->n_in; in++)
          if (f->root[n->in[in].id] == next->in[0].id &&
              (id > m->nodes.at[i] || !reads_in_order(f->g, (Value){id}, in)))
            return false;
      }
  }
  return true;
}

static bool both_keep_carried(const Fuse *f, uint32_t a, uint32_t b)
{
  const Members *m = &f->sets.at[a], *w = &f->sets.at[b];
  return f->g->loops.n == 1 || (keeps_carried(f, m, w) && keeps_carried(f, w, m));
}

static bool rows_join(const Fuse *f, uint32_t row, uint32_t reader, uint32_t writer)
{
  return knows_elements(f, row, &f->sets.at[reader]) &&
         knows_elements(f, row, &f->sets.at[writer]) &&
         read_one_shape(f, reader, writer, walked_by(f, row));
}

/* True if one kernel may compute both sets. */
static bool can_join(Fuse *f, uint32_t reader, uint32_t writer)
{
  const Members *r = &f->sets.at[reader], *w = &f->sets.at[writer];
  uint32_t from = w->nodes.at[0], to = r->nodes.at[0];
  if (!kinds_join(f, r, w) || !meets(f, r, writer) || !meets(f, w, reader)) return false;
  if (!run_together(f, from, to) || !both_keep_carried(f, reader, writer)) return false;
  if (!row_in(f, r) && !shapes_join(f, r, w)) return false;
  uint32_t row = row_in(f, r) ? row_in(f, r) : row_in(f, w);
  if (row && !rows_join(f, row, reader, writer)) return false;
  return r->nodes.n + w->nodes.n <= MAX_GROUP && !fuse_makes_cycle(f, reader, writer);
}

void fuse_join(Fuse *f, uint32_t reader, uint32_t writer)
{
  Members *r = &f->sets.at[reader], *w = &f->sets.at[writer], all = {0};
  uint32_t i = 0, k = 0;
  fuse_turns_join(f, reader, writer);
  while (i < r->nodes.n || k < w->nodes.n) {
    bool first = k == w->nodes.n || (i < r->nodes.n && r->nodes.at[i] < w->nodes.at[k]);
    uint32_t id = first ? r->nodes.at[i++] : w->nodes.at[k++];
    f->group[id] = writer;
    vec_push(f->c->arena, &all.nodes, id);
  }
  *w = all;
  r->nodes.n = 0;
}

/* Joins the set of node id with the set of each operand, if one kernel may compute both. */
static void join_producers(Fuse *f, uint32_t id)
{
  const Node *n = &f->g->nodes.at[id];
  if (op_has(n, T_strided))
    return; /* it reads other elements than it writes, so its operand must be in memory */
  for (uint32_t k = 0; k < n->n_in; k++) {
    uint32_t writer = producer(f, n, k), reader = f->group[id];
    if (writer && writer != reader && reads_in_order(f->g, (Value){id}, k) &&
        can_join(f, reader, writer))
      fuse_join(f, reader, writer);
  }
}

/* True if row ops a and b walk the same rows of the same shape, so that one kernel can compute
 * both. Examples are cross entropy and its gradient, or mean and variance. If both results have one
 * value per row, they must have the same shape, since the kernel stores both at the same index. */
static bool same_rows(const Fuse *f, uint32_t a, uint32_t b)
{
  RowShape x = row_shape(f->g, (Value){a}), y = row_shape(f->g, (Value){b});
  const Node *n = &f->g->nodes.at[a], *m = &f->g->nodes.at[b];
  bool once = op_of(n)->code.result != STATEMENT_each && op_of(m)->code.result != STATEMENT_each;
  return x.from == y.from && x.to == y.to && x.parts == y.parts && x.inner == y.inner &&
         x.widest == y.widest && ir_same_dims(walked_by(f, a), walked_by(f, b)) && !is_flat(f, a) &&
         !is_flat(f, b) && (!once || ir_same_dims(n, m));
}

/* The members of a set that need none of its row ops: elementwise nodes with the shape of the rows.
 * Each walk can compute them. */
typedef struct BeforeRows {
  const Fuse *f;
  uint32_t set;
  bool member[MAX_GROUP];
} BeforeRows;

static bool is_before_rows(const BeforeRows *b, uint32_t id)
{
  const Members *m = &b->f->sets.at[b->set];
  uint32_t i = 0;
  if (b->f->group[id] != b->set) return true;
  while (m->nodes.at[i] != id) i++;
  return b->member[i];
}

static bool reads_before_rows(const BeforeRows *b, uint32_t id)
{
  const Node *n = &b->f->g->nodes.at[id];
  for (uint32_t k = 0; k < n->n_in; k++)
    if (!is_before_rows(b, b->f->root[n->in[k].id])) return false;
  return true;
}

/* True if the set of row op `id` may join the set of `other`, a row op over the same rows. If `id`
 * reads values of that set, they must not depend on row ops of the set, and `id` must read each at
 * the element that it computes. */
static bool can_join_after(Fuse *f, uint32_t id, uint32_t other)
{
  BeforeRows b = {.f = f, .set = f->group[other]};
  uint32_t set = f->group[id];
  const Members *m = &f->sets.at[set], *w = &f->sets.at[b.set];
  if (!b.set || b.set == set || m->nodes.n + w->nodes.n > MAX_GROUP) return false;
  if (!run_together(f, other, id) || !meets(f, m, b.set)) return false;
  if (!both_keep_carried(f, set, b.set)) return false;
  for (uint32_t i = 0; i < w->nodes.n; i++)
    b.member[i] = template_of(f, w->nodes.at[i]) == TMPL_map &&
                  reads_before_rows(&b, w->nodes.at[i]) &&
                  ir_same_dims(node_walked(f->g, (Value){w->nodes.at[i]}), walked_by(f, other));
  for (uint32_t i = 0; i < m->nodes.n; i++)
    if (!reads_before_rows(&b, m->nodes.at[i])) return false;
  return read_one_shape(f, set, b.set, walked_by(f, other)) && !fuse_makes_cycle(f, set, b.set) &&
         !fuse_waits_for(f, b.set, set);
}

static bool can_join_beside(Fuse *f, uint32_t id, uint32_t other)
{
  uint32_t set = f->group[id], besides = f->group[other];
  const Members *m = &f->sets.at[besides], *own = &f->sets.at[set];
  if (!besides || besides == set || m->nodes.n + own->nodes.n > MAX_GROUP) return false;
  return run_together(f, other, id) && both_keep_carried(f, set, besides) &&
         fuse_are_apart(f, besides, set);
}

/* The numbers that a kernel of sums over columns keeps in registers for each column: its sums, and
 * the values that it reads once per column, such as means. */
enum { MOST_PER_COLUMN = 6 };
typedef struct PerColumn {
  uint32_t at[MOST_PER_COLUMN], n; /* the first different values */
  uint32_t sums;
} PerColumn;

static void add_per_column(PerColumn *p, uint32_t value)
{
  for (uint32_t i = 0; i < p->n; i++)
    if (p->at[i] == value) return;
  if (p->n < MOST_PER_COLUMN) p->at[p->n++] = value;
}

/* True if the joined kernel would keep more numbers per column in registers than one batch norm
 * has: four values and two sums. With two batch norms that share a gradient, ptxas spills
 * registers. */
static bool has_too_many_columns(const Fuse *f, uint32_t id, uint32_t other)
{
  RowShape shape = row_shape(f->g, (Value){id});
  const Members *both[] = {&f->sets.at[f->group[id]], &f->sets.at[f->group[other]]};
  PerColumn p = {.n = 0};
  for (uint32_t i = 0; i < 2 && row_has_columns(&shape); i++)
    for (uint32_t j = 0; j < both[i]->nodes.n; j++) {
      const Node *n = &f->g->nodes.at[both[i]->nodes.at[j]];
      p.sums += op_of(n)->tmpl == TMPL_row;
      for (uint32_t k = 0; k < n->n_in; k++) {
        uint32_t root = f->root[n->in[k].id], set = f->group[root];
        bool own = set && (set == f->group[id] || set == f->group[other]);
        if (root && !own && ir_elements(&f->g->nodes.at[root]) == shape.inner)
          add_per_column(&p, root);
      }
    }
  return p.n + p.sums > MOST_PER_COLUMN;
}

/* Joins the set of row op `id` with the kernel of another row op over the same rows, if that is
 * allowed. */
static void join_row(Fuse *f, uint32_t id, uint32_t other)
{
  uint32_t row = other ? row_in(f, &f->sets.at[f->group[other]]) : 0;
  if (row && same_rows(f, row, id) && !has_too_many_columns(f, id, row) &&
      can_join_after(f, id, row))
    fuse_join(f, f->group[id], f->group[row]);
}

/* Joins row op `id` with earlier row ops that read value `root`. `id` reads `root` directly
 * (`itself`) or through an elementwise node of its set. */
static void join_readers(Fuse *f, uint32_t id, uint32_t root, bool itself)
{
  enum { SMALL = 65536 };
  join_row(f, id, f->reader[root]);
  f->reader[root] = id;
  uint32_t maker = f->group[root];
  if (!itself || !maker || ir_elements(walked_by(f, id)) > SMALL) return;
  join_row(f, id, f->row_reader[maker]);
  f->row_reader[maker] = id;
}

/* Row ops that read the same value in the same rows, even in different shapes, share a kernel. The
 * kernel loads the value once and computes a reduction that both need, such as the maximum of the
 * row, once. The reader may also be an elementwise node in the set of the row op. Small row ops
 * that read values of one kernel also share a kernel, such as the sums over the parts of two
 * gradients. */
static void join_rows(Fuse *f, uint32_t id)
{
  const Members own = f->sets.at[f->group[id]];
  int64_t elements = ir_elements(walked_by(f, id));
  for (uint32_t i = 0; i < own.nodes.n; i++) {
    uint32_t reader = own.nodes.at[i];
    const Node *n = &f->g->nodes.at[reader];
    bool row = op_of(n)->tmpl == TMPL_row;
    for (uint32_t k = 0; k < n->n_in; k++) {
      uint32_t root = f->root[n->in[k].id];
      if (!root || ir_elements(&f->g->nodes.at[root]) != elements) continue;
      if (!row || op_of(n)->code.reads_element[k]) join_readers(f, id, root, row);
    }
  }
}

/* Joins small node `id` with a small node that reads the same value. A launch costs some
 * microseconds, more than a small elementwise node computes. So small nodes of one shape that read
 * the same value share a kernel although neither reads the other. Large nodes do not, because their
 * results would live longer. */
static void join_small(Fuse *f, uint32_t id)
{
  enum { SMALL = 4096 };
  const Node *n = &f->g->nodes.at[id], *walked = node_walked(f->g, (Value){id});
  for (uint32_t k = 0; k < n->n_in && ir_elements(walked) <= SMALL; k++) {
    uint32_t root = f->root[n->in[k].id], other = f->reader[root];
    if (!root || ir_elements(ir_node(f->g, (Value){root})) == 1) continue;
    bool same = other && template_of(f, other) == TMPL_map &&
                ir_same_dims(node_walked(f->g, (Value){other}), walked);
    if (same && can_join_beside(f, id, other) &&
        only_maps(f, &f->sets.at[f->group[other]], false) &&
        only_maps(f, &f->sets.at[f->group[id]], false) &&
        shapes_join(f, &f->sets.at[f->group[id]], &f->sets.at[f->group[other]]))
      fuse_join(f, f->group[id], f->group[other]);
    f->reader[root] = id;
  }
}

/* ---- the pass ---- */

static void find_fences(Fuse *f)
{
  uint32_t fences = 0;
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    f->phase[id] = fences;
    fences += is_fence(&f->g->nodes.at[id]);
  }
}

/* Makes one set for each node that a command computes. */
static void make_sets(Fuse *f)
{
  vec_push(f->c->arena, &f->sets, (Members){0});
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    if (!fuse_has_command(f->g, id)) continue;
    Members one = {0};
    vec_push(f->c->arena, &one.nodes, id);
    f->group[id] = f->sets.n;
    vec_push(f->c->arena, &f->sets, one);
  }
  fuse_turns_create(f);
}

/* Counts the nodes that read each value. Readers of its aliases and of folded nodes count too. */
static void count_readers(Fuse *f)
{
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    const Node *n = &f->g->nodes.at[id];
    bool looked_through = f->root[id] != id && !op_has(n, T_kept);
    for (uint32_t k = 0; k < n->n_in && !looked_through; k++) f->readers[f->root[n->in[k].id]]++;
  }
}

/* Joins all outputs of an op of the job, since one kernel text computes them. */
static void join_own(Fuse *f)
{
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    const Node *n = &f->g->nodes.at[id];
    if (n->op == OP_own_result) fuse_join(f, f->group[id], f->group[n->in[0].id]);
  }
}

static void join_all(Fuse *f)
{
  count_readers(f);
  for (uint32_t id = 1; id < f->g->nodes.n; id++) {
    if (!f->group[id]) continue;
    join_producers(f, id);
    if (template_of(f, id) == TMPL_row) join_rows(f, id);
    if (template_of(f, id) == TMPL_map) join_small(f, id);
  }
  fuse_windows(f);
  fuse_tiles(f);
}

bool pass_fuse(Compile *c)
{
  write_constants(c);
  bound_loops(c);
  Graph *g = c->graph;
  uint32_t n = g->nodes.n;
  Fuse f = {.c = c, .g = g};
  f.root = arena_array(c->arena, uint32_t, n);
  f.group = arena_array(c->arena, uint32_t, n);
  f.part = arena_array(c->arena, uint32_t, n);
  f.phase = arena_array(c->arena, uint32_t, n);
  f.mark = arena_array(c->arena, uint32_t, n + 1);
  f.reader = arena_array(c->arena, uint32_t, n);
  f.sums = arena_array(c->arena, uint32_t, ((size_t)g->blocks.n + 1) * g->params.n + 1);
  f.readers = arena_array(c->arena, uint32_t, n);
  f.row_reader = arena_array(c->arena, uint32_t, n + 1);
  for (uint32_t id = 1; id < n; id++)
    if (ir_adds_to(&g->nodes.at[id]) >= 0) f.sums[slot_of(g, &g->nodes.at[id])]++;
  find_fences(&f);
  if (c->options.optimize > 0) fold_nodes(c, f.phase);
  for (uint32_t id = 1; id < n; id++) f.root[id] = value_root(g, (Value){id}).id;
  order_effects(c, &f.order);
  make_sets(&f);
  join_own(&f);
  if (c->options.optimize > 0)
    join_all(&f);
  else
    fuse_tiles(&f);
  memcpy(f.part, f.group, n * sizeof *f.part);
  f.in_turn = arena_array(c->arena, bool, f.sets.n);
  f.level = arena_array(c->arena, uint32_t, f.sets.n);
  if (c->options.optimize > 0) share_launches(&f);
  make_groups(&f);
  g->facts |= IR_FUSED;
  return true;
}
