/* Reverse-mode differentiation. Walks the nodes from y back to the first one and calls the gradient
 * rule of each, which adds the gradients of its inputs. A rule may return a gradient with the
 * broadcast shape or another float type. This file sums such a gradient to the shape of the input
 * and casts it to the type of the input. So every gradient has the shape and type of its value. */
#include "backward.h"
#include "compiler/graph/own.h"
#include <assert.h>

enum { MAX_SLICES = 16 }; /* slices of one value that are concatenated */

void backward_init(Backward *b, Compile *c, uint32_t n)
{
  *b = (Backward){.c = c, .n = n};
  b->wanted = arena_array(c->arena, bool, n);
  b->active = arena_array(c->arena, bool, n);
  b->dx = arena_array(c->arena, Value, n);
  b->looped = arena_array(c->arena, bool, c->graph->loops.n);
  b->next = ir_nexts(c);
}

/* Returns the first input that n is computed from: 1 for `next`, which only writes input 0. */
static uint32_t first_operand(const Node *n)
{
  return n->op == OP_next ? 1 : 0;
}

/* Marks in `leads` the nodes that depend on a wanted node. A carried value depends on what its loop
 * computes, so the caller repeats the search while it returns true. */
static bool find_led(const Backward *b, Value y, bool *leads)
{
  const Graph *g = b->c->graph;
  bool more = false;
  for (uint32_t id = 1; id <= y.id; id++) {
    const Node *n = &g->nodes.at[id];
    bool led = leads[id] || b->wanted[id];
    for (uint32_t i = first_operand(n); i < n->n_in && !ir_stops_gradient(g, n); i++)
      led = led || leads[n->in[i].id];
    if (ir_carries(n)) led = led || leads[b->next[id].id];
    if (n->op == OP_next) more = more || (led && !leads[n->in[0].id]);
    leads[id] = led;
  }
  return more;
}

static bool find_leading(const Backward *b, Value y, const bool *leads)
{
  const Graph *g = b->c->graph;
  bool more = false;
  for (uint32_t id = y.id; id > 0; id--) {
    const Node *n = &g->nodes.at[id];
    if (!b->active[id]) continue;
    for (uint32_t i = first_operand(n); i < n->n_in && !ir_stops_gradient(g, n); i++)
      b->active[n->in[i].id] = b->active[n->in[i].id] || leads[n->in[i].id];
    uint32_t next = b->next[id].id;
    more = more || (next && leads[next] && !b->active[next]);
    if (next) b->active[next] = b->active[next] || leads[next];
  }
  return more;
}

/* A node is active if it depends on a wanted node (`leads`, the forward search) and y depends on it
 * (the backward search). No other gradients are computed. */
bool backward_find(Backward *b, Value y)
{
  bool *leads = arena_array(b->c->arena, bool, b->n), any = false;
  while (find_led(b, y, leads)) continue;
  b->active[y.id] = leads[y.id];
  while (find_leading(b, y, leads)) continue;
  for (uint32_t id = 1; id <= y.id; id++) any = any || (b->active[id] && b->wanted[id]);
  return any;
}

/* Returns the node that a message names: the first one on the way back from y that stops gradients
 * to a wanted node, such as a detach or an argmax. */
static const Node *find_cut(const Backward *b, Value y)
{
  const Graph *g = b->c->graph;
  bool *depends = arena_array(b->c->arena, bool, b->n);
  bool *reached = arena_array(b->c->arena, bool, b->n);
  for (uint32_t id = 1; id <= y.id; id++) {
    const Node *n = &g->nodes.at[id];
    depends[id] = b->wanted[id];
    for (uint32_t i = 0; i < n->n_in; i++) depends[id] = depends[id] || depends[n->in[i].id];
  }
  reached[y.id] = true;
  for (uint32_t id = y.id; id > 0; id--) {
    const Node *n = &g->nodes.at[id];
    if (!reached[id] || !depends[id]) continue;
    if (ir_stops_gradient(g, n) && !b->wanted[id]) return n;
    for (uint32_t i = 0; i < n->n_in; i++) reached[n->in[i].id] = true;
  }
  return NULL;
}

void backward_note_cut(const Backward *b, Value y)
{
  Compile *c = b->c;
  const Node *cut = find_cut(b, y);
  if (!cut) return;
  bool region = c->graph->regions.at[cut->region].no_grad;
  diag_note(c, cut->span, "%s is not differentiated%s, so no gradient passes through it",
            op_of(cut)->name, region ? " here" : "");
}

/* True if v is the 16-bit working copy of a weight that is stored in f32, cast(param), or a weight
 * without an f32 master. With --strict-rounding no weight is treated specially. */
static bool is_weight_copy(const Backward *b, Value v)
{
  const Graph *g = b->c->graph;
  const Node *cast = ir_node(g, v);
  if (b->c->options.strict_rounding || b->again) return false;
  if (ir_parameter(g, cast)) return cast->dtype != AMPC_F32;
  if (!op_has(cast, T_casts)) return false;
  const Node *from = ir_node(g, cast->in[0]);
  return ir_parameter(g, from) && from->dtype == AMPC_F32;
}

/* True if v is a cast of an f32 value to 16 bits that pass precision made for all readers at once.
 * PyTorch casts at each use: it rounds the gradient of each use to 16 bits and adds them in f32. A
 * sum in 16 bits would be rounded at each addition, and could overflow although no term does.
 * PyTorch casts weights once, so the function returns false for them. */
static bool is_shared_cast(const Backward *b, Value v)
{
  const Graph *g = b->c->graph;
  const Node *cast = ir_node(g, v);
  if (!op_has(cast, T_casts) || cast->why != WHY_cast_for || cast->dtype == AMPC_F32) return false;
  const Node *from = ir_node(g, cast->in[0]);
  return !ir_parameter(g, from) && from->dtype == AMPC_F32;
}

/* True if the gradient dx of a 16-bit weight may stay f32. PyTorch rounds such a gradient to 16
 * bits and then casts it to f32. A matrix product sums in f32 anyway. If its result stays f32, the
 * gradient cannot overflow and the cast is not needed. This is allowed only if dx is a product for
 * this use of the weight alone: other readers of dx would find another type. */
static bool made_for(const Graph *g, Value weight, Value dx)
{
  const Node *product = ir_node(g, dx);
  if (!op_has(product, T_keeps_sum)) return false;
  const Node *forward = ir_node(g, product->origin);
  for (uint32_t i = 0; i < forward->n_in; i++)
    if (forward->in[i].id == weight.id) return true;
  return false;
}

Cursor backward_cursor(const Graph *g, Value forward)
{
  Cursor at = ir_cursor_of(g, forward);
  at.origin = forward;
  at.why = WHY_forward;
  at.loop = g->loops.at[at.loop].back;
  return at;
}

/* Returns dx in the type of x. Before pass precision that type is not known yet. */
static Value in_type_of(const Backward *b, const Cursor *at, Value dx, Value x)
{
  if (!b->again) return ir_cast(b->c, at, dx, ir_node(b->c->graph, x)->dtype);
  return ir_append(b->c, at, OP_cast_like, (Value[]){dx, x}, 2, NULL);
}

/* Adds dx to the gradient of x. dx may have more axes or another float type than x: it is summed
 * and cast here, so that no rule needs to. The gradient of a weight copy is f32 if made_for()
 * allows it. Further gradients of a weight copy or of a shared cast are added in f32. */
void backward_add(Backward *b, const Cursor *at, Value x, Value dx)
{
  Node like = *ir_node(b->c->graph, x);
  if (!ir_same_dims(ir_node(b->c->graph, dx), &like)) dx = ir_sum_to(b->c, at, dx, &like);
  bool weight = is_weight_copy(b, x), adds_wide = weight || is_shared_cast(b, x);
  if (weight && made_for(b->c->graph, x, dx)) ir_node(b->c->graph, dx)->dtype = AMPC_F32;
  Value *sum = backward_sum(b, x);
  if (!weight || (!sum->id && ir_node(b->c->graph, dx)->dtype != AMPC_F32))
    dx = in_type_of(b, at, dx, x);
  if (adds_wide && sum->id) { /* x has several uses */
    *sum = ir_cast(b->c, at, *sum, AMPC_F32);
    dx = ir_cast(b->c, at, dx, AMPC_F32);
  }
  *sum = sum->id ? ir_binary(b->c, at, OP_add, *sum, dx) : dx;
}

/* ---- gradients of slices ---- */

typedef struct Slices {
  Value part[MAX_SLICES];
  uint32_t n;
} Slices;

/* Adds slice v to the slices, sorted by start. Returns false if v is not a slice that is padded
 * with zeros, or if there are too many slices. */
static bool add_slice(const Graph *g, Value v, Slices *out)
{
  const Node *n = ir_node(g, v);
  if (!op_has(n, T_places) || attr_int(n, "step") != 1 || out->n == MAX_SLICES) return false;
  uint32_t at = out->n++;
  for (; at && attr_int(ir_node(g, out->part[at - 1]), "start") > attr_int(n, "start"); at--)
    out->part[at] = out->part[at - 1];
  out->part[at] = v;
  return true;
}

/* Finds the slices of which v is the sum. Returns false if v also has other terms. */
static bool find_slices(const Graph *g, Value v, Slices *out)
{
  const Node *n = ir_node(g, v);
  if (n->op != OP_add) return false;
  for (; n->op == OP_add; v = n->in[0], n = ir_node(g, v))
    if (!add_slice(g, n->in[1], out)) return false;
  return add_slice(g, v, out);
}

/* If chunk() or slices split a value, its gradient `sum` adds one gradient per slice, padded with
 * zeros. If the slices cover the value without overlap, their concatenation is equal to `sum` and
 * moves each element once, so it is returned. Else returns `sum`. */
static Value joined_slices(Compile *c, const Cursor *at, Value sum)
{
  const Graph *g = c->graph;
  Slices s = {.n = 0};
  if (!find_slices(g, sum, &s)) return sum;
  int64_t dim = attr_int(ir_node(g, s.part[0]), "dim"), end = 0;
  for (uint32_t i = 0; i < s.n; i++) {
    const Node *n = ir_node(g, s.part[i]);
    if (attr_int(n, "dim") != dim || attr_int(n, "start") != end) return sum;
    end += ir_in(c, n, 0)->dim[dim];
    s.part[i] = n->in[0];
  }
  if (end != ir_node(g, sum)->dim[dim]) return sum;
  return ir_append(c, at, OP_cat, s.part, s.n, ATTRS({"dim", {.i = dim}}));
}

/* If the op of the job has no `backward` here, returns true and reports it. Only train blocks have
 * the backward of an op, since pass gradient differentiates nothing else. */
static bool lacks_backward(const Backward *b, Value v, const Node *n)
{
  const OwnOp *own = own_of(n);
  if (!own || own_has_backward(b->c->graph, v)) return false;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!b->active[n->in[i].id]) continue;
    if (b->c->graph->blocks.at[n->block].kind != AMPC_TRAIN) {
      diag_error(b->c, E701, n->span, "grad of op `%s` works only in train blocks", own->name);
      diag_help(b->c, "compute the gradient in a train block, or write `.detach()` here");
      break;
    }
    diag_error(b->c, E701, n->span, "op `%s` has no `backward`, but `%s` needs a gradient",
               own->name, own->input[i].name);
    diag_note(b->c, own->span, "the op is declared here");
    diag_help(b->c, "add `def backward(d%s)` to it, or `.detach()` here", own->output[0].name);
    break;
  }
  return true;
}

/* Makes sure that `op` has a gradient, zeros if need be. An op of the job has one backward for all
 * its outputs. It runs at the node of the op, which comes before the nodes of the other outputs.
 * So the nodes of the other outputs call this function; otherwise the op would be skipped. */
static void reach_own(Backward *b, Value op)
{
  Cursor at = backward_cursor(b->c->graph, op);
  Value *sum = backward_sum(b, op);
  if (!sum->id) *sum = ir_zeros(b->c, &at, op, ir_node(b->c->graph, op)->dtype);
}

static void own_back(const Backward *b, Value op, Value *out_dx)
{
  const Graph *g = b->c->graph;
  Value dy[MAX_RESULTS];
  for (uint32_t i = 0; i < own_of(ir_node(g, op))->n_outputs; i++)
    dy[i] = b->dx[own_result(g, op, i).id];
  own_gradients(b->c, op, dy, out_dx);
}

/* Calls the gradient rule of v. The rule appends nodes and so may move the array: n is a copy. */
static void step_back(Backward *b, Value v)
{
  Compile *c = b->c;
  Node n = *ir_node(c->graph, v);
  Value dy = b->dx[v.id];
  Value *dx = arena_array(c->arena, Value, n.n_in ? n.n_in : 1);
  assert(ir_same_dims(ir_node(c->graph, dy), &n));
  assert(ir_node(c->graph, dy)->dtype == n.dtype || is_weight_copy(b, v) || is_shared_cast(b, v));
  if (n.op == OP_own_result) {
    reach_own(b, n.in[0]);
    return;
  }
  if (lacks_backward(b, v, &n)) return;
  uint32_t first = c->graph->nodes.n;
  if (own_of(&n))
    own_back(b, v, dx);
  else
    op_of(&n)->gradient(c, v, dy, dx);
  if (b->again) backward_again(b, v, dy, first, dx);
  bool postponed = backward_postpone(b, v, dy);
  Cursor at = backward_cursor(c->graph, v);
  for (uint32_t i = 0; i < n.n_in; i++) {
    if (dx[i].id && b->active[n.in[i].id] && !(postponed && i))
      backward_add(b, &at, n.in[i], dx[i]);
  }
}

static void join_slices(Backward *b, Value v)
{
  Cursor at = backward_cursor(b->c->graph, v);
  b->dx[v.id] = joined_slices(b->c, &at, b->dx[v.id]);
}

void backward_step(Backward *b, Value v)
{
  join_slices(b, v);
  if (!ir_stops_gradient(b->c->graph, ir_node(b->c->graph, v))) step_back(b, v);
}

/* Visits nodes by descending id: all users of a node come first, so its gradient is complete. */
void backward_run(Backward *b, Value y, Value dy, BackwardDone *done, void *data)
{
  b->dx[y.id] = dy;
  for (uint32_t id = y.id; id > 0; id--) {
    Value v = {id};
    backward_loop(b, id);
    if (!b->active[id] || !b->dx[id].id || ir_node(b->c->graph, v)->loop) continue;
    join_slices(b, v);
    if (b->wanted[id]) done(data, v, b->dx[id]);
    if (!ir_stops_gradient(b->c->graph, ir_node(b->c->graph, v))) step_back(b, v);
  }
}

/* ---- for tests and other users ---- */

static void no_more(void *data, Value v, Value gradient)
{
  (void)data, (void)v, (void)gradient; /* gradient_of() reads dx at the end */
}

const Value *gradient_of(Compile *c, const Cursor *at, Value y, Value dy, const Value *xs,
                         uint32_t n)
{
  Backward b;
  Value *out = arena_array(c->arena, Value, n);
  backward_init(&b, c, c->graph->nodes.n);
  for (uint32_t i = 0; i < n; i++) b.wanted[xs[i].id] = true;
  dy = ir_cast(c, at, dy, ir_node(c->graph, y)->dtype);
  if (backward_find(&b, y)) backward_run(&b, y, dy, no_more, NULL);
  for (uint32_t i = 0; i < n; i++) out[i] = b.dx[xs[i].id];
  return out;
}
