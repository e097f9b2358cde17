/* Forward differentiation: the derivative of a value along a direction of what it is made of, as
 * nodes that stand in the program like those that the user wrote: typed, differentiated and fused
 * by the passes behind.
 *
 * Note [tangents]
 * Hardly an op says its tangent; it follows from what the table has:
 *   elementwise ops    The Jacobian by an input is diagonal, so it is its own transpose: what the
 *                      gradient rule makes of dy, it makes of a tangent in the place of dy.
 *   T_linear           The op itself, of the tangents.
 *   T_bilinear         The op itself, with a tangent in the place of one factor, then of the other.
 *   one value a row    The gradient of that value is the row's slope: the sum of slope times
 * tangent. Norms, softmax and picks are written out below. All that is made here has a gradient,
 * since it is trained by: so the ops that gradient rules use, such as tanh_backward, have rules of
 * their own (gradient_slope.c), and tangents may be made of tangents again. An op that is left out,
 * such as max_pool2d, is answered with a message. */
#include "gradient.h"

typedef struct Forward {
  Back b;         /* to build with; without dy */
  const Value *v; /* by input: its tangent; {0}: it has none */
} Forward;

/* ---- what the table has ---- */

static Value sum_of(Forward *f, Value a, Value b)
{
  return !a.id ? b : !b.id ? a : back_binary(&f->b, OP_add, a, b);
}

static Value filled_like(Forward *f, Value x, double number)
{
  return back_binary(&f->b, OP_full_like, x, back_number(&f->b, number));
}

static Value in_shape_of_y(Forward *f, Value v)
{
  return ir_reshape(f->b.c, &f->b.at, v, f->b.n.dim, f->b.n.rank);
}

/* What the gradient rule gives for input i. */
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
    sum = sum_of(f, sum, by_rule(f, whole, i));
  }
  return ir_expand(f->b.c, &f->b.at, sum, n->dim, n->rank);
}

/* What the op adds itself, the `value` of pad, is constant. */
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
    if (!in[i].id && !info->optional) in[i] = filled_like(f, n->in[i], 0);
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

/* What is added goes with the product that is made first. */
static Value bilinear(Forward *f)
{
  const Value *x = f->b.n.in, *v = f->v, none = {0};
  Value added = f->b.n.n_in > 2 ? v[2] : none, first = none, second = none;
  if (v[0].id || !v[1].id)
    first = product(f, v[0].id ? v[0] : filled_like(f, x[0], 0), x[1], added);
  if (v[1].id) second = product(f, x[0], v[1], first.id ? none : added);
  return sum_of(f, first, second);
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
  Value slope = by_rule(f, filled_like(f, f->b.y, 1), 0);
  return in_shape_of_y(f, reduced(f, OP_sum, back_mul(&f->b, slope, f->v[0])));
}

/* y = sum (x - mean)^2 / (n - correction): 2 sum (x - mean) v / (n - correction) */
static Value variance(Forward *f)
{
  Back *b = &f->b;
  double n = (double)back_in(b, 0)->dim[attr_int(&b->n, "dim")];
  Value off = back_binary(b, OP_sub, b->n.in[0], reduced(f, OP_mean, b->n.in[0]));
  Value sum = in_shape_of_y(f, reduced(f, OP_sum, back_mul(b, off, f->v[0])));
  return back_binary(b, OP_div, back_scale(b, sum, 2),
                     back_number(b, n - attr_float(&b->n, "correction")));
}

/* y = sqrt(var); 0 where y is 0, as its gradient */
static Value deviation(Forward *f)
{
  Back *b = &f->b;
  Value zero = back_binary(b, OP_eq, b->y, back_number(b, 0));
  Value y = back_where(b, zero, back_number(b, 1), b->y);
  Value root = back_binary(b, OP_div, variance(f), back_scale(b, y, 2));
  return back_where(b, zero, back_number(b, 0), root);
}

/* Of y (d - sum(d y)): the same of v_d, and v_y (d - sum(d y)) - y sum(d v_y). */
static Value softmax_backward(Forward *f)
{
  Back *b = &f->b;
  Value d = b->n.in[0], y = b->n.in[1], part = {0};
  if (f->v[0].id) part = back_like(b, OP_softmax_backward, (Value[]){f->v[0], y}, 2);
  if (!f->v[1].id) return part;
  Value off = back_binary(b, OP_sub, d, reduced(f, OP_sum, back_mul(b, d, y)));
  Value moved = back_mul(b, y, reduced(f, OP_sum, back_mul(b, d, f->v[1])));
  part = sum_of(f, part, back_mul(b, f->v[1], off));
  return back_binary(b, OP_sub, part, moved);
}

/* v - sum(exp(y) v) */
static Value log_softmax(Forward *f)
{
  Back *b = &f->b;
  Value share = back_mul(b, back_unary(b, OP_exp, b->y), f->v[0]);
  return back_binary(b, OP_sub, f->v[0], reduced(f, OP_sum, share));
}

/* y = z weight + bias, where z = (x - mean) r of layer_norm, x r of rms_norm:
 *   r (v - mean(v) - z mean(z v)) weight + z v_weight + v_bias
 * z and r once more, as ops that have gradients. */
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
  if (f->v[1].id) part = sum_of(f, part, back_mul(b, z, f->v[1]));
  if (centred) part = sum_of(f, part, f->v[2]);
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

/* The tangent of the element that is picked. */
static Value picked(Forward *f)
{
  Back *b = &f->b;
  OpKind index = b->n.op == OP_max_along ? OP_argmax : OP_argmin;
  int64_t dim = attr_int(&b->n, "dim");
  Value at = ir_append(b->c, &b->at, index, b->n.in, 1,
                       ATTRS({"dim", {.i = dim}}, {"keepdim", {.i = true}}));
  Value in[] = {f->v[0], at};
  return in_shape_of_y(f, ir_append(b->c, &b->at, OP_gather, in, 2, ATTRS({"dim", {.i = dim}})));
}

/* ---- which it is ---- */

typedef Value TangentRule(Forward *f);

static TangentRule *rule_of(const OpInfo *op, OpKind kind)
{
  static const struct {
    OpKind op;
    TangentRule *rule;
  } written_out[] = {
      {OP_softmax, elementwise}, /* its Jacobian is symmetric, too */
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
  };
  uint32_t attr;
  bool of_channels = attr_find(op, "channel", &attr), of_loop = attr_find(op, "loop", &attr);
  if (op->traits & T_linear) return linear;
  if (op->traits & T_bilinear) return bilinear;
  for (size_t i = 0; i < sizeof written_out / sizeof *written_out; i++)
    if (written_out[i].op == kind) return written_out[i].rule;
  if (op->gradient == grad_none || of_channels || of_loop || kind == OP_next) return NULL;
  return op->tmpl == TMPL_map ? elementwise : NULL;
}

bool op_has_tangent(OpKind op)
{
  return rule_of(op_row(op), op) != NULL;
}

/* ---- the walk ---- */

/* As for gradients: integers, ops without a rule, and what is made under no_grad, unless all of it
 * is. */
static bool stops(const Tangents *t, const Node *n)
{
  const Graph *g = t->c->graph;
  bool kept_out = g->regions.at[n->region].no_grad && !g->regions.at[t->region].no_grad;
  bool constant = op_of(n)->gradient == grad_none && !op_has(n, T_linear);
  return kept_out || constant || !dtype_is_float(n->dtype);
}

static bool reads_tangent(const Tangents *t, const Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++)
    if (t->of[n->in[i].id].id) return true;
  return false;
}

static void refuse(const Tangents *t, const Node *n)
{
  uint32_t loop;
  bool scan = n->loop || attr_find(op_of(n), "loop", &loop);
  diag_error(t->c, E208, n->span, "jvp through `%s` is not supported yet",
             scan ? "scan" : op_of(n)->name);
  diag_note(t->c, t->span, "jvp asks for the derivative here");
}

/* Gradient rules make nodes that name y as their origin; these are no nodes of backward. */
static void find_tangent(Tangents *t, Value y, TangentRule *rule)
{
  Graph *g = t->c->graph;
  Forward f = {.b = back_begin(t->c, y, (Value){0})};
  Value *v = arena_array(t->c->arena, Value, f.b.n.n_in);
  uint32_t first = g->nodes.n;
  for (uint32_t i = 0; i < f.b.n.n_in; i++) v[i] = t->of[f.b.n.in[i].id];
  f.v = v;
  t->of[y.id] = rule(&f);
  for (uint32_t id = first; id < g->nodes.n; id++) {
    g->nodes.at[id].origin = (Value){0};
    g->nodes.at[id].why = WHY_none;
  }
}

bool tangents_find(Tangents *t, const Value *x, const Value *along, uint32_t n_x)
{
  const Graph *g = t->c->graph;
  t->n = g->nodes.n;
  t->of = arena_array(t->c->arena, Value, t->n);
  for (uint32_t i = 0; i < n_x; i++) t->of[x[i].id] = along[i];
  for (uint32_t id = t->first; id < t->n; id++) {
    const Node *n = &g->nodes.at[id];
    if (!reads_tangent(t, n) || stops(t, n)) continue;
    TangentRule *rule = n->loop || n->row ? NULL : rule_of(op_of(n), n->op);
    if (!rule) return refuse(t, n), false;
    find_tangent(t, (Value){id}, rule);
  }
  return true;
}
