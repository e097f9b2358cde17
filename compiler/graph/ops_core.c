/* The ops that the graph itself consists of: see ops_core.h. */
#include "ops.h"
#include <string.h>

/* ---- nodes that are made often ---- */

Value ir_unary(Compile *c, const Cursor *at, OpKind op, Value x)
{
  return ir_append(c, at, op, &x, 1, NULL);
}

Value ir_binary(Compile *c, const Cursor *at, OpKind op, Value a, Value b)
{
  return ir_append(c, at, op, (Value[]){a, b}, 2, NULL);
}

Value ir_number(Compile *c, const Cursor *at, double v)
{
  return ir_append(c, at, OP_number, NULL, 0, ATTRS({"value", {.f = v}}));
}

Value ir_integer(Compile *c, const Cursor *at, int64_t v)
{
  return ir_append(c, at, OP_integer, NULL, 0, ATTRS({"value", {.i = v}}));
}

Value ir_cast_asked(Compile *c, const Cursor *at, Value x, DType d)
{
  return ir_append(c, at, OP_cast, &x, 1, ATTRS({"dtype", {.i = d}}));
}

Value ir_cast(Compile *c, const Cursor *at, Value x, DType d)
{
  return !x.id || ir_node(c->graph, x)->dtype == d ? x : ir_cast_asked(c, at, x, d);
}

static bool has_dims(const Node *n, const int64_t *dim, uint32_t rank)
{
  return n->rank == rank && (!rank || memcmp(n->dim, dim, rank * sizeof *dim) == 0);
}

Value ir_zeros(Compile *c, const Cursor *at, Value like, DType d)
{
  Node n = *ir_node(c->graph, like);
  Value zero = ir_cast(c, at, ir_number(c, at, 0), d);
  return ir_append(c, at, OP_full, &zero, 1, ir_shape_attrs(c, n.dim, n.rank));
}

bool ir_is_itself(Compile *c, Value x, const int64_t *dim, uint32_t rank)
{
  bool twin = c->graph->members > 1 || c->options.decode;
  bool compared = twin && !(c->graph->facts & IR_SHAPED);
  return !x.id || (has_dims(ir_node(c->graph, x), dim, rank) && !compared);
}

Value ir_reshape(Compile *c, const Cursor *at, Value x, const int64_t *dim, uint32_t rank)
{
  if (ir_is_itself(c, x, dim, rank)) return x;
  return ir_append(c, at, OP_reshape, &x, 1, ir_shape_attrs(c, dim, rank));
}

Value ir_expand(Compile *c, const Cursor *at, Value x, const int64_t *dim, uint32_t rank)
{
  if (ir_is_itself(c, x, dim, rank)) return x;
  return ir_append(c, at, OP_expand, &x, 1, ir_shape_attrs(c, dim, rank));
}

Value ir_permute(Compile *c, const Cursor *at, Value x, const uint32_t *axes)
{
  return ir_append(c, at, OP_permute, &x, 1, ir_axis_attrs(c, axes, ir_node(c->graph, x)->rank));
}

/* Returns the highest run of adjacent axes in a mask. A node reduces one run. */
static uint64_t last_run(uint64_t axes)
{
  uint64_t run = 0;
  for (int i = MAX_RANK - 1; i >= 0; i--) {
    bool in = (axes >> i) & 1;
    if (!in && run) break;
    if (in) run |= 1ull << i;
  }
  return run;
}

bool ir_axes_touch(uint64_t axes)
{
  return last_run(axes) == axes;
}

Value ir_reduce(Compile *c, const Cursor *at, OpKind op, Value x, uint64_t axes, bool keepdim)
{
  while (axes && x.id) { /* rightmost run first, so that the remaining axes keep their numbers */
    uint64_t run = last_run(axes);
    x = ir_append(c, at, op, &x, 1,
                  ATTRS({"dim", {.i = (int64_t)run}}, {"keepdim", {.i = keepdim}}));
    axes &= ~run;
  }
  return x;
}

/* Example: x is [32, 4, 5], `like` is [4, 1]. `like` has no axis for axis 0 of x, and size 1 for
 * axis 2. So axes 0 and 2 are summed and the result is reshaped to [4, 1]. */
Value ir_sum_to(Compile *c, const Cursor *at, Value x, const Node *like)
{
  Node to = *like, from = *ir_node(c->graph, x);
  uint32_t missing = (uint32_t)from.rank - to.rank;
  uint64_t axes = (1ull << missing) - 1;
  for (uint32_t i = 0; i < to.rank; i++) {
    if (to.dim[i] == 1 && from.dim[missing + i] != 1) axes |= 1ull << (missing + i);
  }
  x = ir_reduce(c, at, OP_sum, x, axes, false);
  return ir_reshape(c, at, x, to.dim, to.rank);
}

/* ---- facts about them ---- */

Parameter *ir_parameter(const Graph *g, const Node *n)
{
  return n->op == OP_param ? &g->params.at[attr_int(n, "index")] : NULL;
}

int64_t ir_adds_to(const Node *n)
{
  return n->op == OP_grad_accumulate ? attr_int(n, "param") : -1;
}

bool ir_stops_gradient(const Graph *g, const Node *n)
{
  return op_of(n)->gradient == grad_none || g->regions.at[n->region].no_grad ||
         !dtype_is_float(n->dtype);
}

/* ---- loops ---- */

Value ir_next(Compile *c, const Cursor *at, Value carry, Value x)
{
  return ir_binary(c, at, OP_next, carry, x);
}

Value ir_turn(Compile *c, const Cursor *at, Value sequence, uint16_t loop)
{
  return ir_append(c, at, OP_turn, &sequence, 1, ATTRS({"loop", {.i = loop}}));
}

Value ir_stack(Compile *c, const Cursor *at, Value x, uint16_t loop)
{
  return ir_append(c, at, OP_stack, &x, 1, ATTRS({"loop", {.i = loop}}));
}

uint16_t ir_carries(const Node *n)
{
  return n->op == OP_carry ? (uint16_t)attr_int(n, "loop") : 0;
}

uint16_t ir_begins_loop(const Node *n)
{
  return n->op == OP_scan ? (uint16_t)attr_int(n, "loop") : 0;
}

uint16_t ir_ends_loop(const Node *n)
{
  return n->op == OP_scan_end ? (uint16_t)attr_int(n, "loop") : 0;
}

const Value *ir_nexts(const Compile *c)
{
  const Graph *g = c->graph;
  Value *next = arena_array(c->arena, Value, g->nodes.n);
  for (uint32_t id = 1; id < g->nodes.n; id++)
    if (g->nodes.at[id].op == OP_next) next[g->nodes.at[id].in[0].id].id = id;
  return next;
}

uint16_t ir_loop_of_node(const Graph *g, const Node *n)
{
  if (n->op == OP_carry) return ir_carries(n);
  if (n->op == OP_next || n->op == OP_stack) return g->loops.at[n->loop].parent;
  return n->loop;
}

uint16_t ir_loop_of(const Graph *g, Value v)
{
  return ir_loop_of_node(g, ir_node(g, v));
}

/* True if an input of n differs between iterations of `loop` or of its forward loop. */
static bool reads_iteration(const Graph *g, const Node *n, uint16_t loop)
{
  for (uint32_t i = 0; i < n->n_in; i++) {
    uint16_t from = n->in[i].id ? ir_loop_of(g, n->in[i]) : 0;
    if (from && (from == loop || from == g->loops.at[loop].of)) return true;
  }
  return false;
}

/* The attribute `loop` decides for ops that cross the border of a loop. Others move outwards. */
uint16_t ir_loop_for(const Graph *g, const Node *n)
{
  uint32_t own;
  uint16_t loop = n->loop;
  if (n->op == OP_next) return ir_loop_of(g, n->in[0]);
  if (attr_find(op_of(n), "loop", &own)) {
    loop = (uint16_t)n->attr[own].i;
    return n->op == OP_turn || n->op == OP_stack ? loop : g->loops.at[loop].parent;
  }
  while (loop && !reads_iteration(g, n, loop)) loop = g->loops.at[loop].parent;
  return loop;
}
