/* Backward of a loop (Note [loops] in ir.h): appends a loop in the other direction.
 *
 * The new loop carries the gradients of the values that forward carries. The gradient of a `stack`
 * of forward is read slice by slice, and the gradients of values that forward reads slice by slice
 * are stacked. A value that the loop only reads gets the sum of the gradients of all iterations,
 * which is carried in f32. Weights of products and convolutions get their gradients from one
 * product for all iterations, after the loop: the operands of that product are stacked, and the
 * iterations become more rows of the same op.
 *
 * Gradient rules read values of forward's iterations as if both loops were one. settle_loops()
 * replaces these reads by slices of stacks. */
#include "compiler/graph/ops.h"
#include "backward.h"
#include <string.h>

typedef struct Postponed {
  Value v, dy;
} Postponed;

struct LoopBack {
  Backward *b;
  LoopBack *outer;
  uint16_t loop, back;
  uint32_t n_carried;
  /* indexed by id: the gradient, in one iteration, of a value that the loop only reads */
  Value *read;
  VEC(Value) carries, turns;
  VEC(Postponed) postponed;
};

/* Returns the position of a node outside of the loop of `l`. */
static Cursor cursor_outside(const LoopBack *l, Value forward)
{
  const Graph *g = l->b->c->graph;
  Cursor at = backward_cursor(g, forward);
  at.loop = g->loops.at[l->back].parent;
  return at;
}

Value *backward_sum(Backward *b, Value x)
{
  LoopBack *l = b->loop;
  bool own = !l || ir_loop_of(b->c->graph, x) == l->loop;
  return own ? &b->dx[x.id] : &l->read[x.id];
}

/* ---- products ---- */

/* True if each row of the result depends on one row of input 0, with the same other inputs. */
static bool treats_rows_alike(const LoopBack *l, const Node *n)
{
  const Graph *g = l->b->c->graph;
  uint32_t flag;
  if (!op_by_library(op_of(n)) || attr_find(op_of(n), "trans_a", &flag)) return false;
  if (op_of(n)->tmpl == TMPL_gemm && ir_node(g, n->in[1])->rank != 2) return false;
  for (uint32_t i = 1; i < n->n_in; i++)
    if (n->in[i].id && ir_loop_of(g, n->in[i]) == l->loop) return false;
  return ir_loop_of(g, n->in[0]) == l->loop;
}

bool backward_postpone(Backward *b, Value v, Value dy)
{
  LoopBack *l = b->loop;
  bool any = false;
  const Node *n = ir_node(b->c->graph, v);
  if (!l || !treats_rows_alike(l, n)) return false;
  for (uint32_t i = 1; i < n->n_in; i++) any = any || b->active[n->in[i].id];
  if (any) vec_push(b->c->arena, &l->postponed, ((Postponed){v, dy}));
  return any;
}

/* Returns all iterations of v as rows: [T, n, k] becomes [T n, k]; [T, k] is returned as it is. */
static Value as_rows(const LoopBack *l, const Cursor *at, Value v, uint16_t loop)
{
  Compile *c = l->b->c;
  const Node *n = ir_node(c->graph, v);
  Value all = n->op == OP_turn ? n->in[0] : ir_stack(c, at, v, loop);
  const Node *x = ir_node(c->graph, all);
  int64_t dim[MAX_RANK + 1];
  if (x->rank < 3) return all;
  dim[0] = x->dim[0] * x->dim[1];
  memcpy(dim + 1, x->dim + 2, (x->rank - 2u) * sizeof *dim);
  return ir_reshape(c, at, all, dim, x->rank - 1u);
}

/* Appends the op again, for the rows of all iterations, only to call its gradient rule. */
static void product_of_all(LoopBack *l, const Postponed *p)
{
  Backward *b = l->b;
  Compile *c = b->c;
  Cursor at = cursor_outside(l, p->v), forward = at;
  Node n = *ir_node(c->graph, p->v);
  Value *in = arena_array(c->arena, Value, n.n_in), *dx = arena_array(c->arena, Value, n.n_in);
  memcpy(in, n.in, n.n_in * sizeof *in);
  forward.loop = c->graph->loops.at[l->loop].parent;
  forward.origin = (Value){0};
  in[0] = as_rows(l, &forward, n.in[0], l->loop);
  Value dy = as_rows(l, &at, p->dy, l->back);
  Value all = ir_append_values(c, &forward, n.op, in, n.n_in, n.attr);
  const Node *y = ir_node(c->graph, all);
  dy = ir_reshape(c, &at, dy, y->dim, y->rank);
  uint32_t first = c->graph->nodes.n;
  op_of(&n)->gradient(c, all, dy, dx);
  for (uint32_t id = first; id < c->graph->nodes.n; id++) {
    Node *made = &c->graph->nodes.at[id];
    if (made->origin.id == all.id) made->origin = p->v;
  }
  for (uint32_t i = 1; i < n.n_in; i++)
    if (dx[i].id && b->active[n.in[i].id]) backward_add(b, &at, n.in[i], dx[i]);
}

/* ---- the loop ---- */

static Value add_carry(LoopBack *l, const Cursor *at, Value initial)
{
  return ir_append(l->b->c, at, OP_carry, &initial, 1,
                   ATTRS({"loop", {.i = l->back}}, {"index", {.i = l->n_carried++}}));
}

/* The gradient of the value that iteration t leaves is the gradient of the value that iteration t +
 * 1 finds. The last one is the gradient from after the loop. */
static void begin_carried(LoopBack *l, Value carry)
{
  Backward *b = l->b;
  Value next = b->next[carry.id], last = b->dx[next.id];
  if (!b->active[next.id] || !(last.id || b->active[carry.id])) return;
  Cursor at = cursor_outside(l, carry);
  if (!last.id) last = ir_zeros(b->c, &at, carry, ir_node(b->c->graph, carry)->dtype);
  Value sum = add_carry(l, &at, last);
  b->dx[next.id] = sum;
  vec_push(b->c->arena, &l->carries, carry);
}

static void slice_back(LoopBack *l, Value stack)
{
  Backward *b = l->b;
  if (!b->dx[stack.id].id || ir_stops_gradient(b->c->graph, ir_node(b->c->graph, stack))) return;
  Cursor at = backward_cursor(b->c->graph, stack);
  Value x = ir_node(b->c->graph, stack)->in[0];
  Value dy = ir_turn(b->c, &at, b->dx[stack.id], l->back);
  if (b->active[x.id]) backward_add(b, &at, x, dy);
}

static void next_back(LoopBack *l, Value next)
{
  Backward *b = l->b;
  Value x = ir_node(b->c->graph, next)->in[1];
  if (!b->dx[next.id].id || ir_stops_gradient(b->c->graph, ir_node(b->c->graph, next))) return;
  Cursor at = backward_cursor(b->c->graph, next);
  if (b->active[x.id]) backward_add(b, &at, x, b->dx[next.id]);
}

static void differentiate(Backward *b, uint16_t loop, uint32_t last);

static void node_back(LoopBack *l, uint32_t id)
{
  Backward *b = l->b;
  const Graph *g = b->c->graph;
  const Node *n = &g->nodes.at[id];
  Value v = {id};
  if (n->loop != l->loop) {
    uint16_t inner = n->loop;
    while (g->loops.at[inner].parent != l->loop) inner = g->loops.at[inner].parent;
    differentiate(b, inner, id);
  } else if (n->op == OP_stack) {
    slice_back(l, v);
  } else if (n->op == OP_next) {
    next_back(l, v);
  } else if (b->active[id] && b->dx[id].id) {
    if (n->op == OP_turn && !ir_stops_gradient(g, n))
      vec_push(b->c->arena, &l->turns, v);
    else if (n->op != OP_turn)
      backward_step(b, v);
  }
}

/* Ends an iteration of backward. The iteration leaves the gradients of the values that forward's
 * iteration found, and the running sums of the gradients of values that it only read. Afterwards
 * l->read has the sums over all iterations. */
static void end_carried(LoopBack *l)
{
  Backward *b = l->b;
  Compile *c = b->c;
  for (uint32_t i = 0; i < l->carries.n; i++) {
    Value carry = l->carries.at[i], sum = b->dx[b->next[carry.id].id], dx = b->dx[carry.id];
    Cursor at = cursor_outside(l, carry);
    DType type = ir_node(c->graph, sum)->dtype;
    if (!dx.id) dx = ir_zeros(c, &at, carry, type);
    dx = ir_cast(c, &at, dx, type);
    b->dx[carry.id] = ir_next(c, &at, sum, dx);
  }
  for (uint32_t id = 1; id < b->n; id++) {
    if (!l->read[id].id) continue;
    Value x = {id};
    Cursor at = cursor_outside(l, x), inner = at;
    inner.loop = l->back;
    Value sum = add_carry(l, &at, ir_zeros(c, &at, x, AMPC_F32));
    Value dx = ir_cast(c, &inner, l->read[id], AMPC_F32);
    dx = ir_binary(c, &inner, OP_add, sum, dx);
    l->read[id] = ir_next(c, &inner, sum, dx);
  }
}

/* Adds the gradients of values from outside of the loop. b->loop is the outer loop here. */
static void add_outside(LoopBack *l)
{
  Backward *b = l->b;
  Compile *c = b->c;
  VEC(Value) all = {0};
  for (uint32_t i = 0; i < l->turns.n; i++) {
    Cursor at = backward_cursor(c->graph, l->turns.at[i]);
    vec_push(c->arena, &all, ir_stack(c, &at, b->dx[l->turns.at[i].id], l->back));
  }
  for (uint32_t i = 0; i < l->turns.n; i++) {
    Cursor at = cursor_outside(l, l->turns.at[i]);
    Value x = ir_node(c->graph, l->turns.at[i])->in[0];
    if (b->active[x.id]) backward_add(b, &at, x, all.at[i]);
  }
  for (uint32_t id = 1; id < b->n; id++) {
    Cursor at = cursor_outside(l, (Value){id});
    if (l->read[id].id) backward_add(b, &at, (Value){id}, l->read[id]);
  }
  for (uint32_t i = 0; i < l->postponed.n; i++) product_of_all(l, &l->postponed.at[i]);
}

/* True if some result of the loop has a gradient. */
static bool is_asked(const Backward *b, uint16_t loop, uint32_t last)
{
  const Graph *g = b->c->graph;
  for (uint32_t id = last; id > 0; id--) {
    const Node *n = &g->nodes.at[id];
    if (n->loop == loop && (n->op == OP_stack || n->op == OP_next) && b->dx[id].id) return true;
  }
  return false;
}

static void differentiate(Backward *b, uint16_t loop, uint32_t last)
{
  Compile *c = b->c;
  Graph *g = c->graph;
  if (b->looped[loop]) return;
  b->looped[loop] = true;
  if (!is_asked(b, loop, last)) return;
  LoopBack l = {.b = b, .outer = b->loop, .loop = loop};
  Loop back = g->loops.at[loop];
  back.reversed = !back.reversed;
  back.parent = g->loops.at[back.parent].back;
  back.of = loop;
  back.back = 0;
  l.back = ir_add_loop(c, back);
  g->loops.at[loop].back = l.back;
  l.read = arena_array(c->arena, Value, b->n);
  b->loop = &l;
  for (uint32_t id = 1; id <= last; id++) {
    if (ir_carries(&g->nodes.at[id]) == loop) begin_carried(&l, (Value){id});
  }
  for (uint32_t id = last; id > 0; id--)
    if (ir_loop_within(g, g->nodes.at[id].loop, loop)) node_back(&l, id);
  end_carried(&l);
  b->loop = l.outer;
  add_outside(&l);
}

void backward_loop(Backward *b, uint32_t id)
{
  const Graph *g = b->c->graph;
  uint16_t loop = g->nodes.at[id].loop;
  if (!loop) return;
  while (g->loops.at[loop].parent) loop = g->loops.at[loop].parent;
  differentiate(b, loop, id);
}

/* ---- values of forward's iterations that backward reads ---- */

typedef VEC(Value) Values;
typedef struct Settle {
  Compile *c;
  Rewrite r;
  uint32_t *stacks; /* indexed by old id: how many axes of iterations the stack of the value has */
  Values stacked;   /* indexed by new id: the `stack` of the value; 0: no stack yet */
  Values turn;      /* indexed by new id: the last slice that was made of the value */
} Settle;

static Value *slot(Compile *c, Values *list, Value v)
{
  while (list->n <= v.id) vec_push(c->arena, list, (Value){0});
  return &list->at[v.id];
}

/* True if n stacks values of iterations, not a value that is the same in all of them. */
static bool stacks_iterations(const Settle *s, const Node *n)
{
  return n->op == OP_stack && ir_loop_of_node(s->c->graph, &s->r.old[n->in[0].id]) == n->loop;
}

/* Returns the innermost loop around `loop`, or itself, that is the backward of `of`; else 0. */
static uint16_t backward_of(const Graph *g, uint16_t loop, uint16_t of)
{
  while (loop && g->loops.at[loop].of != of) loop = g->loops.at[loop].parent;
  return loop;
}

/* Counts the stacks that value `id` of the old array needs, because a node in `loop` reads it. If
 * the value is itself a slice, the stack that it comes from is sliced again. Else its iterations
 * are stacked, for each loop around the value that is not around `loop`. */
static void count_stacks(Settle *s, uint32_t id, uint16_t loop)
{
  const Graph *g = s->c->graph;
  const Node *n = &s->r.old[id];
  uint16_t from = ir_loop_of_node(g, n);
  uint32_t count = 0;
  for (; !ir_loop_within(g, loop, from); from = g->loops.at[from].parent) {
    uint16_t back = backward_of(g, loop, from);
    if (!back) return;
    loop = g->loops.at[back].parent;
    if (n->op == OP_turn && !count) {
      count_stacks(s, n->in[0].id, loop);
      return;
    }
    count++;
  }
  if (s->stacks[id] < count) s->stacks[id] = count;
}

static Value stack_of(Settle *s, Value v)
{
  Compile *c = s->c;
  Value known = *slot(c, &s->stacked, v);
  if (known.id) return known;
  Cursor at = ir_cursor_of(c->graph, v);
  Value all = ir_stack(c, &at, v, ir_loop_of(c->graph, v));
  *slot(c, &s->stacked, v) = all;
  return all;
}

/* Returns what a node in `loop` reads for v, a new id: v itself or a slice of its stack. */
static Value fetch(Settle *s, Value v, uint16_t loop, const Cursor *user)
{
  Compile *c = s->c;
  Graph *g = c->graph;
  uint16_t from = ir_loop_of(g, v), back = backward_of(g, loop, from);
  if (ir_loop_within(g, loop, from) || !back) return v;
  Value all = ir_node(g, v)->op == OP_turn ? ir_node(g, v)->in[0] : stack_of(s, v);
  all = fetch(s, all, g->loops.at[back].parent, user);
  Value last = *slot(c, &s->turn, all);
  if (last.id && ir_node(g, last)->loop == back) return last;
  Cursor at = *user;
  Value v2 = ir_turn(c, &at, all, back);
  *slot(c, &s->turn, all) = v2;
  return v2;
}

static void settle_node(Settle *s, uint32_t id)
{
  Compile *c = s->c;
  const Node *old = &s->r.old[id];
  if (stacks_iterations(s, old)) {
    s->r.map[id] = stack_of(s, s->r.map[old->in[0].id]);
    Node *n = ir_node(c->graph, s->r.map[id]);
    if (!n->name) n->name = old->name;
  } else {
    Node n = ir_rewrite_mapped(&s->r, id);
    Cursor at = ir_cursor_like(&n);
    for (uint32_t i = 0; i < n.n_in && n.loop; i++)
      if (n.in[i].id) n.in[i] = fetch(s, n.in[i], n.loop, &at);
    ir_rewrite_add(&s->r, id, &n);
  }
  Value v = s->r.map[id];
  for (uint32_t i = 0; i < s->stacks[id]; i++) v = stack_of(s, v);
}

void settle_loops(Compile *c)
{
  Settle s = {.c = c};
  ir_rewrite_begin(&s.r, c);
  s.stacks = arena_array(c->arena, uint32_t, s.r.n_old);
  for (uint32_t id = 1; id < s.r.n_old; id++) {
    const Node *n = &s.r.old[id];
    for (uint32_t i = 0; i < n->n_in && n->loop; i++)
      if (n->in[i].id) count_stacks(&s, n->in[i].id, n->loop);
    if (stacks_iterations(&s, n) && !s.stacks[n->in[0].id]) s.stacks[n->in[0].id] = 1;
  }
  for (uint32_t id = 1; id < s.r.n_old; id++) settle_node(&s, id);
}
