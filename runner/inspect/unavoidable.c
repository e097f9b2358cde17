/* Note [unavoidable bytes]
 * Estimates the bytes that a step must move, however well its kernels are fused. A library reads
 * and writes its operands. Between library commands, kernels can compute any value in registers,
 * repeatedly if necessary. The exception is a reduction (channel statistics, a sum over the batch):
 * its result is complete only after all data have been read. An op that needs result and data
 * reads the data again, in another walk. (A walk is one pass over the data.)
 *
 * These values stay in memory: inputs of the step, parameters, operands and results of the library,
 * and results of reductions. Each has a depth, the number of walks before it. One walk computes all
 * values of the same depth. It reads each value that it needs once and writes its results.
 *
 * A value that was stored for the library is computed again if that reads fewer bytes than the
 * value has, since the walk reads most of its inputs anyway. An earlier walk may also store a value
 * that it computed in passing, such as the sum that residual blocks add to. Later walks then read
 * it instead of all its terms. The estimate is made with and without such stores. The result is the
 * smallest of both estimates and the bytes that the program moves.
 *
 * State (optimizers, running statistics) counts as its commands move it. No fusion into the
 * library's kernels is assumed, such as statistics of the output of a convolution. */
#include <string.h>
#include "inspect.h"

typedef enum Kept { KEPT_not, KEPT_leaf, KEPT_result, KEPT_computed, KEPT_stored } Kept;

typedef struct Walk {
  const Inspection *in;
  const Graph *g;
  Kept *kept; /* KEPT_result: result of the library or a reduction; KEPT_computed: can be computed
                 again */
  int32_t *depth;  /* depth of kept values: see the note */
  uint32_t *seen;  /* for each value: the last search that visited it */
  uint32_t *tried; /* for each value: the last trial that visited it */
  int32_t *made;   /* for each value: the first walk that computes it in passing; 0: none */
  uint32_t search, trial;
  VEC(Value) puts; /* values that walks store */
  VEC(Value) read; /* values that the current walk reads */
  int32_t deepest;
  bool stores; /* walks may store values for later walks */
  double bytes;
} Walk;

static double bytes_of(const Walk *w, Value v)
{
  return (double)ir_bytes(w->in->c, ir_node(w->g, v));
}

/* Returns how v is kept. Inputs, parameters and working copies are in memory before the step. */
static Kept kept(const Walk *w, Value v)
{
  bool leaf = op_of(ir_node(w->g, v))->tmpl == TMPL_leaf || is_working_copy(w->g, v);
  return leaf ? KEPT_leaf : w->kept[v.id];
}

static void keep(Walk *w, Value v, Kept how, int32_t depth)
{
  w->kept[v.id] = how;
  w->depth[v.id] = depth;
}

/* Returns the largest depth of the values that a walk reads to compute v. */
static int32_t depth_before(Walk *w, Value v)
{
  int32_t most = 0;
  const Node *n = ir_node(w->g, v);
  for (uint32_t i = 0; i < n->n_in; i++) {
    Value from = n->in[i];
    if (!from.id || w->seen[from.id] == w->search) continue;
    w->seen[from.id] = w->search;
    Kept how = kept(w, from);
    int32_t depth = how == KEPT_not        ? depth_before(w, from)
                    : how == KEPT_leaf     ? 0
                    : how == KEPT_computed ? w->depth[from.id] - 1
                                           : w->depth[from.id];
    if (depth > most) most = depth;
  }
  return most;
}

/* True if v is a reduction whose results are not known before the walk ends. */
static bool is_reduction(const Walk *w, Value v)
{
  const Node *n = ir_node(w->g, v);
  if (op_of(n)->tmpl != TMPL_row || !n->n_in) return false;
  return ir_elements(n) < ir_elements(ir_node(w->g, n->in[0])) && row_shape(w->g, v).inner > 1;
}

/* Marks v as computed and stored by the walk of its depth. */
static void put(Walk *w, Value v)
{
  if (kept(w, v)) return;
  w->search++;
  int32_t depth = 1 + depth_before(w, v);
  keep(w, v, is_reduction(w, v) ? KEPT_result : KEPT_computed, depth);
  vec_push(w->in->c->arena, &w->puts, v);
  if (depth > w->deepest) w->deepest = depth;
}

static void take_product(Walk *w, const CommandRow *row)
{
  const Group *group = &w->g->groups.at[row->group];
  const Value *operands = command_of(w->g, row->group)->operands;
  int32_t depth = 0;
  for (int i = 0; i < 4; i++) {
    Value v = value_root(w->g, operands[i]);
    if (!operands[i].id || ir_node(w->g, v)->group == row->group) continue;
    put(w, v);
    if (w->depth[v.id] > depth) depth = w->depth[v.id];
  }
  for (uint32_t i = 0; i < group->n; i++) keep(w, group->nodes[i], KEPT_result, depth + 1);
  w->bytes += row->facts.read + row->facts.written;
}

static void take_part(Walk *w, const KernelPart *part)
{
  const Group *group = part->group;
  for (uint32_t i = 0; i < group->n; i++) {
    const Node *n = ir_node(w->g, group->nodes[i]);
    if (is_reduction(w, group->nodes[i])) put(w, group->nodes[i]);
    if (!op_has(n, T_effect) || op_of(n)->tmpl != TMPL_file) continue;
    w->bytes += (double)part_bytes(w->in->c, part);
    for (uint32_t k = 0; k < n->n_in; k++)
      if (n->in[k].id) put(w, value_root(w->g, n->in[k]));
  }
}

/* ---- the reads of a walk ---- */

/* Returns the bytes that the current walk must read to compute v, in addition to what it reads
 * anyway. */
static double missing(Walk *w, Value v)
{
  double bytes = 0;
  const Node *n = ir_node(w->g, v);
  for (uint32_t i = 0; i < n->n_in; i++) {
    Value from = n->in[i];
    if (!from.id || w->seen[from.id] == w->search || w->tried[from.id] == w->trial) continue;
    w->tried[from.id] = w->trial;
    bytes += kept(w, from) ? bytes_of(w, from) : missing(w, from);
  }
  return bytes;
}

/* Whether an earlier walk that computed v in passing should store it. Writing and reading v must
 * move fewer bytes than computing v again. */
static bool is_worth_storing(Walk *w, Value v, int32_t depth)
{
  if (!w->stores || !w->made[v.id] || w->made[v.id] == depth) return false;
  w->trial++;
  return missing(w, v) > 2 * bytes_of(w, v);
}

/* Adds to w->read the values that walk number `depth` reads to compute v. */
static void read_for(Walk *w, Value v, int32_t depth)
{
  const Node *n = ir_node(w->g, v);
  for (uint32_t i = 0; i < n->n_in; i++) {
    Value from = n->in[i];
    if (!from.id || w->seen[from.id] == w->search) continue;
    bool own = kept(w, from) == KEPT_computed && w->depth[from.id] == depth;
    if (!kept(w, from) && is_worth_storing(w, from, depth)) {
      keep(w, from, KEPT_stored, w->made[from.id]);
      w->bytes += bytes_of(w, from);
    }
    w->seen[from.id] = w->search;
    if (kept(w, from) && !own) {
      vec_push(w->in->c->arena, &w->read, from);
    } else {
      if (!w->made[from.id]) w->made[from.id] = depth;
      read_for(w, from, depth);
    }
  }
}

static void read_all(Walk *w, int32_t depth)
{
  w->search++;
  w->read.n = 0;
  for (uint32_t i = 0; i < w->puts.n; i++)
    if (w->depth[w->puts.at[i].id] == depth) read_for(w, w->puts.at[i], depth);
  for (uint32_t i = 0; i < w->read.n; i++) {
    Value v = w->read.at[i];
    w->trial++;
    if (kept(w, v) == KEPT_computed && missing(w, v) < bytes_of(w, v))
      read_for(w, v, depth); /* appends the missing inputs to w->read */
    else
      w->bytes += bytes_of(w, v);
  }
}

static double bytes_of_walks(const Inspection *in, uint16_t block, bool stores)
{
  const Graph *g = in->c->graph;
  Arena *a = in->c->arena;
  Walk w = {.in = in,
            .g = g,
            .stores = stores,
            .kept = arena_array(a, Kept, g->nodes.n),
            .depth = arena_array(a, int32_t, g->nodes.n),
            .seen = arena_array(a, uint32_t, g->nodes.n),
            .tried = arena_array(a, uint32_t, g->nodes.n),
            .made = arena_array(a, int32_t, g->nodes.n)};
  for (uint32_t i = 0; i < in->rows.n; i++) {
    const CommandRow *r = &in->rows.at[i];
    if (r->block != block) continue;
    const Command *k = command_of(g, r->group);
    if (command_by_library(k)) take_product(&w, r);
    for (uint32_t p = 0; p < k->n_parts; p++) take_part(&w, &k->parts[p]);
  }
  for (uint32_t i = 1; i < g->nodes.n; i++)
    if (g->nodes.at[i].block == block && g->nodes.at[i].op == OP_output) {
      Value v = value_root(g, g->nodes.at[i].in[0]);
      put(&w, v);
    }
  for (uint32_t i = 0; i < w.puts.n; i++) w.bytes += bytes_of(&w, w.puts.at[i]);
  for (int32_t depth = 1; depth <= w.deepest; depth++) read_all(&w, depth);
  return w.bytes;
}

double gpu_unavoidable(const Inspection *in, uint16_t block, double moved)
{
  double without = bytes_of_walks(in, block, false), with = bytes_of_walks(in, block, true);
  double least = with < without ? with : without;
  return least < moved ? least : moved;
}
