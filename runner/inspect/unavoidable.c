/* Note [unavoidable bytes]
 * What a step moves however well its kernels are joined. A library reads and writes its operands.
 * Between its commands anything can be computed on the way, again if need be, but for a reduction
 * (channel statistics, a sum over the batch): whoever uses its result walks the data once more. So
 * values that stay in memory are the step's inputs, parameters, what the library reads and writes,
 * and results of reductions; each has a depth, how many walks stand before it. All that has the
 * same depth is made in one walk, which reads each value that it needs once and writes its own.
 * State (optimizers, running statistics) is moved as its commands say. Lower bounds all: no fusion
 * within the library's kernels, such as statistics of what a convolution writes, is assumed. */
#include <string.h>
#include "gpu.h"

typedef struct Walk {
  const Inspection *in;
  const Graph *g;
  int32_t *depth;    /* of a value that stays in memory; -1: it is computed on the way */
  uint32_t *seen;    /* the search that has met it last */
  uint64_t *readers; /* depths at which it has been read: bit depth % 64 */
  uint32_t search;
  double bytes;
} Walk;

static double bytes_of(const Walk *w, Value v)
{
  return (double)ir_bytes(w->in->c, ir_node(w->g, v));
}

/* Inputs and parameters lie there; so do the working copies of weights. */
static bool is_leaf(const Walk *w, Value v)
{
  return op_of(ir_node(w->g, v))->tmpl == TMPL_leaf || is_working_copy(w->g, v);
}

/* Finds the values in memory from which v is computed; with `at` 0 gives the greatest depth, else
 * reads them at that depth. */
static int32_t search(Walk *w, Value v, int32_t at)
{
  int32_t most = 0;
  const Node *n = ir_node(w->g, v);
  for (uint32_t i = 0; i < n->n_in; i++) {
    Value from = n->in[i];
    if (!from.id || w->seen[from.id] == w->search) continue;
    w->seen[from.id] = w->search;
    int32_t depth = is_leaf(w, from) ? 0 : w->depth[from.id];
    if (depth < 0)
      depth = search(w, from, at);
    else if (at && !(w->readers[from.id] >> at % 64 & 1)) {
      w->readers[from.id] |= 1ull << at % 64;
      w->bytes += bytes_of(w, from);
    }
    if (depth > most) most = depth;
  }
  return most;
}

/* A walk of its own depth computes v and leaves it in memory. */
static void put(Walk *w, Value v)
{
  if (w->depth[v.id] >= 0 || is_leaf(w, v)) return;
  w->search++;
  int32_t depth = 1 + search(w, v, 0);
  w->search++;
  search(w, v, depth);
  w->depth[v.id] = depth;
  w->bytes += bytes_of(w, v);
}

/* Fewer results than elements: only after all of them are known can anybody use one. */
static bool is_reduction(const Walk *w, Value v)
{
  const Node *n = ir_node(w->g, v);
  if (op_of(n)->tmpl != TMPL_row || !n->n_in) return false;
  return ir_elements(n) < ir_elements(ir_node(w->g, n->in[0])) && row_shape(w->g, v).inner > 1;
}

static void take_product(Walk *w, const CommandRow *row)
{
  Compile *c = w->in->c;
  const Group *group = &w->g->groups.at[row->group];
  Value operands[4] = {{0}};
  int32_t depth = 0;
  if (row->kind == ROW_conv) {
    Convolution p = convolution_of(c, row->group);
    memcpy(operands, (Value[4]){p.x, p.w, p.bias, p.y}, sizeof operands);
  } else {
    Product p = product_of(c, row->group);
    memcpy(operands, (Value[4]){p.a, p.b, p.bias, p.c}, sizeof operands);
  }
  for (int i = 0; i < 4; i++) {
    Value v = value_root(w->g, operands[i]);
    if (!operands[i].id || ir_node(w->g, v)->group == row->group) continue;
    put(w, v);
    if (w->depth[v.id] > depth) depth = w->depth[v.id];
  }
  for (uint32_t i = 0; i < group->n; i++) w->depth[group->nodes[i].id] = depth + 1;
  w->bytes += (double)(row->read + row->written);
}

static void take_kernel(Walk *w, const Group *group)
{
  for (uint32_t i = 0; i < group->n_parts; i++) take_kernel(w, &group->parts[i]);
  for (uint32_t i = 0; i < group->n && !group->n_parts; i++) {
    const Node *n = ir_node(w->g, group->nodes[i]);
    if (is_reduction(w, group->nodes[i])) put(w, group->nodes[i]);
    if (op_has(n, T_effect) && op_of(n)->tmpl == TMPL_file)
      w->bytes += (double)inspect_kernel_bytes(w->in, group);
  }
}

double gpu_unavoidable(const Inspection *in, uint16_t block)
{
  const Graph *g = in->c->graph;
  Arena *a = in->c->arena;
  Walk w = {.in = in,
            .g = g,
            .depth = arena_array(a, int32_t, g->nodes.n),
            .seen = arena_array(a, uint32_t, g->nodes.n),
            .readers = arena_array(a, uint64_t, g->nodes.n)};
  for (uint32_t i = 0; i < g->nodes.n; i++) w.depth[i] = -1;
  for (uint32_t i = 0; i < in->rows.n; i++) {
    const CommandRow *r = &in->rows.at[i];
    if (r->block != block) continue;
    if (r->kind != ROW_kernel)
      take_product(&w, r);
    else
      take_kernel(&w, &g->groups.at[r->group]);
  }
  for (uint32_t i = 1; i < g->nodes.n; i++)
    if (g->nodes.at[i].block == block && g->nodes.at[i].op == OP_output) {
      Value v = value_root(g, g->nodes.at[i].in[0]);
      put(&w, v);
    }
  return w.bytes;
}
