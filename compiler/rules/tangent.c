/* Forward differentiation: the derivative of a value in a direction of its inputs, as ordinary
 * nodes. Later passes type, differentiate and fuse them like those that the user wrote.
 *
 * Note [tangents]
 * Few ops have a tangent rule of their own. For most, the tangent follows from the table:
 *   elementwise ops    The Jacobian for an input is diagonal, so it equals its transpose: the
 *                      gradient rule, applied to a tangent instead of dy, computes the tangent.
 *   T_linear           The op itself, applied to the tangents.
 *   T_bilinear         The op itself with a tangent as one factor, plus the same for the other.
 *   one value a row    The gradient of that value is the slope of the row: the tangent is the sum
 *                      of slope times tangent.
 *   own ops            Their backward, transposed: passes/own_tangent.c.
 * Rules of norms, softmax and picks are below, others in the files tangent_*.c.
 *
 * A training loss may depend on tangents, so all nodes that are created here have a gradient. The
 * ops that gradient rules use, such as tanh_backward, therefore have gradient rules of their own
 * (ops.def). So tangents of tangents also work.
 *
 * Note [tangents of loops]
 * The tangents of a loop (Note [loops] in node.h) are computed in the loop itself. Each carried
 * value gets a carried tangent, so an iteration computes both, and no value is stacked. Which
 * carried values have a tangent is determined first: if the value at the end of an iteration has
 * one, so has the value at the start of the next. The tangents' nodes are appended after all
 * others. In that order pass gradient could not see that a loop ends before its results are read,
 * so it first moves the nodes of each loop together (loops_together). */
#include "tangent.h"
#include "compiler/graph/own.h"
#include <assert.h>

/* ---- tangents that follow from the table ---- */

Value tangent_sum(Forward *f, Value a, Value b)
{
  return !a.id ? b : !b.id ? a : back_binary(&f->b, OP_add, a, b);
}

Value tangent_filled(Forward *f, Value x, double number)
{
  return back_binary(&f->b, OP_full_like, x, back_number(&f->b, number));
}

Value tangent_shaped(Forward *f, Value v)
{
  return ir_reshape(f->b.c, &f->b.at, v, f->b.n.dim, f->b.n.rank);
}

/* Calls the gradient rule of the node and returns its result for input i. */
static Value by_rule(Forward *f, Value dy, uint32_t i)
{
  Value *dx = arena_array(f->b.c->arena, Value, f->b.n.n_in);
  op_of(&f->b.n)->gradient(f->b.c, f->b.y, dy, dx);
  return dx[i];
}

static Value elementwise(Forward *f)
{
  const Node *n = &f->b.n;
  Value sum = {0};
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!f->v[i].id) continue;
    Value whole = ir_expand(f->b.c, &f->b.at, f->v[i], n->dim, n->rank);
    sum = tangent_sum(f, sum, by_rule(f, whole, i));
  }
  return sum.id ? ir_expand(f->b.c, &f->b.at, sum, n->dim, n->rank) : sum;
}

/* Applies the op to the tangents. A constant that the op adds (`value` of pad) becomes 0. */
static Value linear(Forward *f)
{
  const Node *n = &f->b.n;
  const OpSignature *sig = &op_of(n)->signature;
  Value *in = arena_array(f->b.c->arena, Value, n->n_in);
  Attr attr[MAX_ATTR];
  uint32_t value;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const InputInfo *info = &sig->input[i < sig->n_inputs ? i : sig->n_inputs - 1];
    bool joined = i == 0 || info->variadic || info->optional;
    in[i] = joined ? f->v[i] : n->in[i];
    if (!in[i].id && !info->optional) in[i] = tangent_filled(f, n->in[i], 0);
  }
  for (uint32_t i = 0; i < sig->n_attrs; i++) attr[i] = n->attr[i];
  if (attr_find(op_of(n), "value", &value)) attr[value].f = 0;
  return ir_append_values(f->b.c, &f->b.at, n->op, in, n->n_in, attr);
}

static Value product(Forward *f, Value a, Value b, Value added)
{
  const Node *n = &f->b.n;
  return ir_append_values(f->b.c, &f->b.at, n->op, (Value[]){a, b, added}, n->n_in, n->attr);
}

/* Sums the products of one factor and the other's tangent. The first also adds the added
 * input's. */
static Value bilinear(Forward *f)
{
  const Value *x = f->b.n.in, *v = f->v, none = {0};
  bool third = f->b.n.n_in > 2 && x[2].id;
  bool index = third && dtype_is_integer(back_in(&f->b, 2)->dtype); /* of both products */
  Value added = !third ? none : index ? x[2] : v[2], first = none, second = none;
  if (v[0].id || !v[1].id)
    first = product(f, v[0].id ? v[0] : tangent_filled(f, x[0], 0), x[1], added);
  if (v[1].id) second = product(f, x[0], v[1], first.id && !index ? none : added);
  return tangent_sum(f, first, second);
}

/* ---- rows ---- */

static uint64_t reduced_axes(const Node *n)
{
  uint64_t axes;
  return op_axes(n, &axes) ? axes : 1ull << attr_int(n, "dim");
}

static Value reduced(Forward *f, OpKind op, Value x)
{
  return ir_reduce(f->b.c, &f->b.at, op, x, reduced_axes(&f->b.n), true);
}

static Value by_slope(Forward *f)
{
  Value slope = by_rule(f, tangent_filled(f, f->b.y, 1), 0);
  return tangent_shaped(f, reduced(f, OP_sum, back_mul(&f->b, slope, f->v[0])));
}

/* y = sum (x - mean)^2 / (n - correction): the tangent is 2 sum (x - mean) v / (n - correction). */
static Value variance(Forward *f)
{
  Back *b = &f->b;
  double n = (double)back_in(b, 0)->dim[attr_int(&b->n, "dim")];
  Value off = back_binary(b, OP_sub, b->n.in[0], reduced(f, OP_mean, b->n.in[0]));
  Value sum = tangent_shaped(f, reduced(f, OP_sum, back_mul(b, off, f->v[0])));
  return back_binary(b, OP_div, back_scale(b, sum, 2),
                     back_number(b, n - attr_float(&b->n, "correction")));
}

/* y = sqrt(var): the tangent is that of var / (2 y). Tangent and gradient are 0 if y is 0. */
static Value deviation(Forward *f)
{
  Back *b = &f->b;
  Value zero = back_binary(b, OP_eq, b->y, back_number(b, 0));
  Value y = back_where(b, zero, back_number(b, 1), b->y);
  Value root = back_binary(b, OP_div, variance(f), back_scale(b, y, 2));
  return back_where(b, zero, back_number(b, 0), root);
}

/* The tangent of y (d - sum(d y)) is the op applied to v_d, plus v_y (d - sum(d y)) - y sum(d
 * v_y). */
static Value softmax_backward(Forward *f)
{
  Back *b = &f->b;
  Value d = b->n.in[0], y = b->n.in[1], part = {0};
  if (f->v[0].id) part = back_like(b, OP_softmax_backward, (Value[]){f->v[0], y}, 2);
  if (!f->v[1].id) return part;
  Value off = back_binary(b, OP_sub, d, reduced(f, OP_sum, back_mul(b, d, y)));
  Value moved = back_mul(b, y, reduced(f, OP_sum, back_mul(b, d, f->v[1])));
  part = tangent_sum(f, part, back_mul(b, f->v[1], off));
  return back_binary(b, OP_sub, part, moved);
}

/* The tangent is v - sum(exp(y) v). */
static Value log_softmax(Forward *f)
{
  Back *b = &f->b;
  Value share = back_mul(b, back_unary(b, OP_exp, b->y), f->v[0]);
  return back_binary(b, OP_sub, f->v[0], reduced(f, OP_sum, share));
}

/* y = z weight + bias, with z = (x - mean) r for layer_norm, z = x r for rms_norm:
 *   r (v - mean(v) - z mean(z v)) weight + z v_weight + v_bias
 * z and r are computed again, by ops that have gradients. */
static Value normed(Forward *f, bool centred)
{
  Back *b = &f->b;
  Value x = b->n.in[0], z = back_like(b, b->n.op, &x, 1), t = f->v[0], part = {0};
  const NamedAttr *along = ATTRS({"dim", {.i = attr_int(&b->n, "dim")}}, {"correction", {.f = 0}});
  if (t.id) {
    Value square = centred ? ir_append(b->c, &b->at, OP_row_var, &x, 1, along)
                           : reduced(f, OP_mean, back_mul(b, x, x));
    Node row = *back_in(b, 0);
    row.dim[attr_int(&b->n, "dim")] = 1;
    square = ir_reshape(b->c, &b->at, square, row.dim, row.rank);
    Value eps = back_number(b, attr_float(&b->n, "eps"));
    Value r = back_unary(b, OP_rsqrt, back_binary(b, OP_add, square, eps));
    if (centred) t = back_binary(b, OP_sub, t, reduced(f, OP_mean, t));
    Value through = back_mul(b, z, reduced(f, OP_mean, back_mul(b, z, f->v[0])));
    part = back_mul(b, back_binary(b, OP_sub, t, through), r);
    if (b->n.in[1].id) part = back_mul(b, part, b->n.in[1]);
  }
  if (f->v[1].id) part = tangent_sum(f, part, back_mul(b, z, f->v[1]));
  if (centred) part = tangent_sum(f, part, f->v[2]);
  return ir_expand(b->c, &b->at, part, b->n.dim, b->n.rank);
}

static Value layer_norm(Forward *f)
{
  return normed(f, true);
}

static Value rms_norm(Forward *f)
{
  return normed(f, false);
}

/* Returns the tangent of the selected element. */
static Value picked(Forward *f)
{
  Back *b = &f->b;
  OpKind index = b->n.op == OP_max_along ? OP_argmax : OP_argmin;
  int64_t dim = attr_int(&b->n, "dim");
  Value at = ir_append(b->c, &b->at, index, b->n.in, 1,
                       ATTRS({"dim", {.i = dim}}, {"keepdim", {.i = true}}));
  Value in[] = {f->v[0], at};
  return tangent_shaped(f, ir_append(b->c, &b->at, OP_gather, in, 2, ATTRS({"dim", {.i = dim}})));
}

/* The loss of a row is log(sum(exp(x))) minus x at the target. So its tangent is the sum of
 * softmax(x) v minus v at the target. With label smoothing e, the subtracted term is (1 - e) times
 * v at the target plus e times the mean of v. */
static Value cross_entropy(Forward *f)
{
  Back *b = &f->b;
  Value x = b->n.in[0], v = f->v[0];
  double e = attr_float(&b->n, "label_smoothing");
  int64_t dim = attr_int(&b->n, "dim");
  Node row = *back_in(b, 0);
  row.dim[dim] = 1;
  Value target = ir_cast(b->c, &b->at, b->n.in[1], AMPC_I64);
  Value kept = ir_integer(b->c, &b->at, attr_int(&b->n, "ignore_index"));
  kept = back_binary(b, OP_ne, target, kept);
  Value place = back_where(b, kept, target, ir_integer(b->c, &b->at, 0));
  place = ir_reshape(b->c, &b->at, place, row.dim, row.rank);
  Value at = ir_append(b->c, &b->at, OP_gather, (Value[]){v, place}, 2, ATTRS({"dim", {.i = dim}}));
  if (e != 0) {
    Value mean = back_scale(b, reduced(f, OP_mean, v), e);
    at = back_binary(b, OP_add, back_scale(b, at, 1 - e), mean);
  }
  Value share = ir_append(b->c, &b->at, OP_softmax, &x, 1, ATTRS({"dim", {.i = dim}}));
  Value sum = reduced(f, OP_sum, back_mul(b, share, v));
  Value t = tangent_shaped(f, back_binary(b, OP_sub, sum, at));
  return back_where(b, kept, t, back_number(b, 0));
}

/* ---- loops: Note [tangents of loops] ---- */

static uint32_t carried_in(const Graph *g, int64_t loop)
{
  uint32_t count = 0;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    count += n->op == OP_carry && attr_int(n, "loop") == loop;
  }
  return count;
}

static Value carry(Forward *f)
{
  int64_t loop = attr_int(&f->b.n, "loop"), index = carried_in(f->b.c->graph, loop);
  Value first = f->v[0].id ? f->v[0] : tangent_filled(f, f->b.n.in[0], 0);
  return ir_append(f->b.c, &f->b.at, OP_carry, &first, 1,
                   ATTRS({"loop", {.i = loop}}, {"index", {.i = index}}));
}

static Value next(Forward *f)
{
  Value left = f->v[1].id ? f->v[1] : tangent_filled(f, f->b.n.in[1], 0);
  return back_binary(&f->b, OP_next, f->v[0], left);
}

/* ---- selecting a rule ---- */

TangentRule *tangent_rule(const OpInfo *op, OpKind kind)
{
  static const struct {
    OpKind op;
    TangentRule *rule;
  } written_out[] = {
      {OP_softmax, elementwise}, /* its Jacobian is symmetric */
      {OP_softmax_backward, softmax_backward},
      {OP_log_softmax, log_softmax},
      {OP_amax, by_slope},
      {OP_amin, by_slope},
      {OP_logsumexp, by_slope},
      {OP_row_var, variance},
      {OP_row_std, deviation},
      {OP_layer_norm, layer_norm},
      {OP_rms_norm, rms_norm},
      {OP_max_along, picked},
      {OP_min_along, picked},
      {OP_cross_entropy_rows, cross_entropy},
      {OP_prod, tangent_prod},
      {OP_cumprod, tangent_cumprod},
      {OP_line_sums, tangent_line_sums},
      {OP_batch_norm, tangent_batch_norm},
      {OP_batch_norm_eval, tangent_batch_norm_eval},
      {OP_max_pool2d, tangent_max_pool2d},
      {OP_attention, tangent_attention},
      {OP_carry, carry},
      {OP_next, next},
      {OP_own, tangent_own},
      {OP_own_result, tangent_own},
  };
  if (op->traits & T_linear) return linear;
  if (op->traits & T_bilinear) return bilinear;
  for (size_t i = 0; i < sizeof written_out / sizeof *written_out; i++)
    if (written_out[i].op == kind) return written_out[i].rule;
  return op->gradient != grad_none && op->tmpl == TMPL_map ? elementwise : NULL;
}

bool op_has_tangent(OpKind op)
{
  return tangent_rule(op_row(op), op) != NULL;
}

/* ---- the walk ---- */

/* True if n has no tangent. As for gradients, this holds for integers, ops without a rule, and
 * nodes created under no_grad, unless the call itself is under no_grad. */
static bool stops(const Tangents *t, const Node *n)
{
  const Graph *g = t->c->graph;
  bool kept_out = g->regions.at[n->region].no_grad && !g->regions.at[t->region].no_grad;
  bool constant = op_of(n)->gradient == grad_none && !op_has(n, T_linear);
  return kept_out || constant || !dtype_is_float(n->dtype);
}

/* Returns for each node id whether the node depends on x. A carry also depends on x if the value
 * that an iteration leaves depends on x. Then the search repeats, for readers of the carry. */
static bool *find_moving(const Tangents *t)
{
  const Graph *g = t->c->graph;
  bool *moves = arena_array(t->c->arena, bool, t->n), again = true;
  for (uint32_t id = 1; id < t->n; id++) moves[id] = t->of[id].id != 0;
  while (again) {
    again = false;
    for (uint32_t id = t->first; id < t->n; id++) {
      const Node *n = &g->nodes.at[id];
      for (uint32_t i = 0; i < n->n_in && !stops(t, n); i++)
        moves[id] = moves[id] || (n->in[i].id && moves[n->in[i].id]);
      if (n->op != OP_next || !moves[id] || moves[n->in[0].id]) continue;
      moves[n->in[0].id] = again = true;
    }
  }
  return moves;
}

/* True if n reads a tangent. A node that depends on x may read none, since a gradient may be 0 for
 * every input. True for carried values and outputs of own ops: other nodes rely on their
 * tangents. */
static bool reads_tangent(const Tangents *t, const Node *n)
{
  bool any = n->op == OP_carry || n->op == OP_next || n->op == OP_own_result;
  for (uint32_t i = 0; i < n->n_in; i++) any = any || t->of[n->in[i].id].id;
  return any;
}

/* True after a message if an own op has no backward. Only the backward defines its derivative. */
static bool lacks_backward(const Tangents *t, Value y, const Node *n)
{
  const OwnOp *own = own_of(n);
  if (!own || own_has_backward(t->c->graph, y)) return false;
  diag_error(t->c, E701, n->span, "op `%s` has no `backward`, which jvp needs for its derivative",
             own->name);
  diag_note(t->c, t->span, "jvp needs the derivative here");
  diag_note(t->c, own->span, "the op is declared here");
  diag_help(t->c, "add `def backward(d%s)` to it, or call `.detach()` on its arguments",
            own->output[0].name);
  return true;
}

/* Returns the loop in which the tangent of y changes. y itself may be outside of this loop: then
 * the direction differs between iterations, but the point does not. */
static uint16_t innermost(const Graph *g, const Node *y, const Value *v)
{
  uint16_t loop = y->loop;
  for (uint32_t i = 0; i < y->n_in; i++) {
    uint16_t own = v[i].id ? ir_loop_of(g, v[i]) : 0;
    if (ir_loop_within(g, own, loop)) loop = own;
  }
  return loop;
}

void tangent_turn_loops(Graph *g, uint16_t inner, bool on)
{
  for (uint16_t loop = inner;; loop = g->loops.at[loop].parent) {
    g->loops.at[loop].back = on ? inner : 0;
    if (!loop) return;
  }
}

/* Computes the tangent of y. Gradient rules create nodes with y as their origin; tangents are not
 * nodes of backward, so origin and reason are reset. */
static void find_tangent(Tangents *t, Value y, TangentRule *rule)
{
  Graph *g = t->c->graph;
  const Node *n = ir_node(g, y);
  Value *v = arena_array(t->c->arena, Value, n->n_in);
  for (uint32_t i = 0; i < n->n_in; i++) v[i] = t->of[n->in[i].id];
  uint16_t loop = innermost(g, n, v);
  assert(!g->loops.at[loop].back); /* pass gradient creates backward loops later */
  tangent_turn_loops(g, loop, true);
  Forward f = {.b = back_begin(t->c, y, (Value){0}), .v = v, .of = t->of};
  uint32_t first = g->nodes.n;
  t->of[y.id] = rule(&f);
  for (uint32_t id = first; id < g->nodes.n; id++) {
    g->nodes.at[id].origin = (Value){0};
    g->nodes.at[id].why = WHY_none;
  }
  tangent_turn_loops(g, loop, false);
}

bool tangents_find(Tangents *t, const Value *x, const Value *along, uint32_t n_x)
{
  const Graph *g = t->c->graph;
  t->n = g->nodes.n;
  t->of = arena_array(t->c->arena, Value, t->n);
  for (uint32_t i = 0; i < n_x; i++) t->of[x[i].id] = along[i];
  const bool *moves = find_moving(t);
  uint32_t errors = diag_error_count(t->c);
  for (uint32_t id = t->first; id < t->n; id++) {
    const Node *n = &g->nodes.at[id];
    if (!moves[id] || stops(t, n) || !reads_tangent(t, n)) continue;
    if (lacks_backward(t, (Value){id}, n)) return false;
    TangentRule *rule = tangent_rule(op_of(n), n->op);
    assert(rule);
    find_tangent(t, (Value){id}, rule);
    if (diag_error_count(t->c) > errors) return false;
  }
  return true;
}
