/* Means over the elements that count, such as the labels that are not ignored.
 *
 * Note [bodies]
 * A step of K bodies must give the result of one body with all their samples. If each body has the
 * same divisor, the loss of the step is the mean of the K losses. But a mean over the elements that
 * count has a divisor that depends on the data of its body. Let Sk / dk be the loss of body k. Then
 * the loss of the step is
 *   (S1 + .. + SK) / (d1 + .. + dK)
 * After each body, the slots hold the gradient of the loss over all bodies so far. Let E be the
 * divisor of the bodies before this one, and D the divisor with this one. The body multiplies the
 * slots by E / D, and adds its own gradients times d / D. So the size of the gradients does not
 * depend on K, and neither does a good loss scale. A body in which nothing counts changes nothing.
 *
 * As in pass members, a loss is a sum over samples through linear ops. `d` may be any function of
 * one such sum c that no parameter reaches, as in clamp(mask.sum(), min=1). Then D and E are this
 * function of the sum of c over the bodies. */
#include "counted.h"
#include "compiler/rules/rules.h"
#include <string.h>

bool *needed_for(Compile *c, Value v)
{
  bool *out = arena_array(c->arena, bool, v.id + 1);
  out[v.id] = true;
  for (uint32_t id = v.id; id > 0; id--) {
    const Node *n = &c->graph->nodes.at[id];
    for (uint32_t i = 0; i < n->n_in && out[id]; i++) out[n->in[i].id] = true;
  }
  return out;
}

/* ---- how bodies enter a loss ---- */

typedef struct Divisor {
  Value of;    /* the divisor of the loss of one body; {0}: all bodies count alike */
  Value count; /* a sum over samples, from which `of` is computed */
  bool mixed;  /* the loss is no mean with one divisor, so the bodies do not give the step's loss */
} Divisor;

typedef enum Kind {
  ALIKE, /* the same in all bodies */
  OTHER, /* depends on the data, in another way than those below */
  SUM,   /* a sum over elements, one number */
  MEAN,
  RATIO, /* a SUM divided by a number that depends on data alone */
  MIXED  /* computed from a RATIO, or with a divisor, in another way than linearly */
} Kind;

typedef struct Part {
  bool data, trained; /* the value depends on samples, on a parameter */
  bool several;       /* it depends on samples in another way than through `count` */
  Kind kind;
  Value divisor;       /* of a RATIO */
  Value count;         /* a SUM or MEAN from which the value is computed; {0}: there is none */
  uint32_t first_mean; /* the first counted_mean from which the value is computed; 0: none */
} Part;

struct Counted {
  Compile *c;
  OpKind sub, mul, div, neg, mean, counted_mean;
  VEC(Part) parts; /* by node id, up to the last value that was asked for */
};

Counted *counted_new(Compile *c)
{
  Counted *p = arena_new(c->arena, Counted);
  *p = (Counted){.c = c,
                 .sub = op_named("sub"),
                 .mul = op_named("mul"),
                 .div = op_named("div"),
                 .neg = op_named("neg"),
                 .mean = op_named("mean"),
                 .counted_mean = op_named("counted_mean")};
  vec_push(c->arena, &p->parts, (Part){.kind = ALIKE}); /* id 0 is no node */
  return p;
}

static const Part *part_in(const Counted *p, const Node *n, uint32_t i)
{
  return &p->parts.at[n->in[i].id];
}

static bool is_mixed(const Counted *p, const Node *n)
{
  bool mixed = false;
  for (uint32_t i = 0; i < n->n_in; i++) mixed = mixed || part_in(p, n, i)->kind >= RATIO;
  return mixed;
}

/* Whether both compute the same value. Pass simplify, which shares such nodes, runs later. Values
 * are taken for different after *left comparisons of nodes. */
static bool compute_the_same(const Graph *g, Value a, Value b, int *left)
{
  const Node *x = ir_node(g, a), *y = ir_node(g, b);
  if (a.id == b.id) return true;
  bool same = (*left)-- > 0 && x->op == y->op && x->stream == y->stream && x->n_in == y->n_in &&
              !memcmp(x->attr, y->attr, sizeof x->attr) && !op_draws(x);
  for (uint32_t i = 0; i < x->n_in && same; i++)
    same = compute_the_same(g, x->in[i], y->in[i], left);
  return same;
}

static bool is_same(const Graph *g, Value a, Value b)
{
  int left = 1000;
  return compute_the_same(g, a, b, &left);
}

static void divided(const Counted *p, const Node *n, Part *out)
{
  const Part *x = part_in(p, n, 0), *d = part_in(p, n, 1);
  bool one = ir_elements(ir_in(p->c, n, 1)) == 1 && d->count.id;
  if (d->kind == ALIKE) {
    out->divisor = x->divisor;
    out->kind = x->kind;
  } else if (!one) {
    out->kind = is_mixed(p, n) ? MIXED : OTHER;
  } else if (x->kind != SUM || d->several || d->trained || p->parts.at[d->count.id].kind != SUM) {
    out->kind = MIXED;
  } else {
    out->divisor = n->in[1];
    out->kind = RATIO;
  }
}

static void added(const Counted *p, const Node *n, Part *out)
{
  const Part *x = part_in(p, n, 0), *y = part_in(p, n, 1);
  Kind a = x->kind, b = y->kind, other = a == ALIKE ? b : a;
  bool ratios = a == RATIO && b == RATIO && is_same(p->c->graph, x->divisor, y->divisor);
  out->divisor = x->divisor.id ? x->divisor : y->divisor;
  if (ratios || (a == b && a < RATIO))
    out->kind = a;
  else if (a == ALIKE || b == ALIKE)
    out->kind = other >= RATIO ? other : OTHER;
  else
    out->kind = is_mixed(p, n) ? MIXED : OTHER;
}

/* If the op of one number is linear in one input and the others are alike, returns that input. */
static Value passed_on(const Counted *p, const Node *n)
{
  const Node *x = ir_in(p->c, n, 0);
  if (n->op == OP_slice && x->op == OP_member_sum) { /* several numbers in one exchange */
    const Node *all = ir_in(p->c, x, 0);
    if (all->op == OP_cat && all->n_in == ir_elements(all)) return all->in[attr_int(n, "start")];
  }
  bool linear = op_has(n, T_linear) || n->op == p->neg || n->op == OP_member_sum;
  if (linear && ir_elements(x) == 1) return n->in[0];
  for (uint32_t i = 0; i < 2 && n->op == p->mul; i++)
    if (part_in(p, n, !i)->kind == ALIKE) return n->in[i];
  return (Value){0};
}

static void set_kind(const Counted *p, const Node *n, Part *out)
{
  bool sums = op_has(n, T_sums) || op_of(n)->tmpl == TMPL_gemm, mixed = is_mixed(p, n);
  out->kind = mixed ? MIXED : OTHER;
  if (!out->data) out->kind = ALIKE;
  if (!out->data || ir_elements(n) > 1) return;
  if (n->op == OP_add || n->op == p->sub) {
    added(p, n, out);
  } else if (n->op == p->div || n->op == p->counted_mean) {
    divided(p, n, out);
  } else if (sums && part_in(p, n, 0)->kind == OTHER && !mixed) {
    out->kind = n->op == p->mean ? MEAN : SUM;
  } else {
    Value from = passed_on(p, n);
    if (!from.id) return;
    out->kind = p->parts.at[from.id].kind;
    out->divisor = p->parts.at[from.id].divisor;
  }
}

static void set_count(const Counted *p, const Node *n, uint32_t id, Part *out)
{
  if (out->kind == SUM || out->kind == MEAN) {
    out->count = (Value){id};
    return;
  }
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Part *x = part_in(p, n, i);
    if (!x->data) continue;
    bool other = out->count.id && x->count.id && !is_same(p->c->graph, out->count, x->count);
    out->several = out->several || x->several || other || !x->count.id;
    if (x->count.id) out->count = x->count;
  }
}

static Part part_of(const Counted *p, uint32_t id)
{
  const Node *n = &p->c->graph->nodes.at[id];
  bool mean = n->op == p->counted_mean && !n->loop && ir_elements(n) == 1;
  Part out = {.data = n->op == OP_source || op_draws(n),
              .trained = ir_parameter(p->c->graph, n),
              .first_mean = mean ? id : 0};
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Part *x = part_in(p, n, i);
    out.data = out.data || x->data;
    out.trained = out.trained || x->trained;
    bool earlier = !out.first_mean || x->first_mean < out.first_mean;
    if (x->first_mean && earlier) out.first_mean = x->first_mean;
  }
  set_kind(p, n, &out);
  set_count(p, n, id, &out);
  return out;
}

static const Part *part_at(Counted *p, Value v)
{
  while (p->parts.n <= v.id) {
    Part next = part_of(p, p->parts.n);
    vec_push(p->c->arena, &p->parts, next);
  }
  return &p->parts.at[v.id];
}

static Divisor divisor_of(Counted *p, Value loss)
{
  const Part *x = part_at(p, loss);
  Divisor d = {.mixed = x->kind == MIXED};
  if (x->kind == RATIO) d.of = x->divisor;
  if (d.of.id) d.count = p->parts.at[d.of.id].count;
  return d;
}

/* ---- metrics ---- */

/* Appends a bool: true if v is computed from a mean of no elements. {0}: v has no such mean. */
static Value is_empty(Counted *p, const Cursor *at, Value v)
{
  Compile *c = p->c;
  const uint32_t first = part_at(p, v)->first_mean;
  Value out = {0};
  if (!first) return out;
  bool *needed = arena_array(c->arena, bool, v.id - first + 1);
  needed[v.id - first] = true;
  for (uint32_t id = v.id; id >= first; id--) {
    const Node *n = &c->graph->nodes.at[id];
    for (uint32_t i = 0; i < n->n_in && needed[id - first]; i++)
      if (n->in[i].id >= first) needed[n->in[i].id - first] = true;
  }
  for (uint32_t id = first; id <= v.id; id++) {
    const Node *n = &c->graph->nodes.at[id];
    if (!needed[id - first] || n->op != p->counted_mean || n->loop || ir_elements(n) > 1) continue;
    Value count = ir_reshape(c, at, n->in[1], NULL, 0);
    Value one = ir_binary(c, at, op_named("eq"), count, ir_number(c, at, 0));
    out = out.id ? ir_binary(c, at, op_named("logical_or"), out, one) : one;
  }
  return out;
}

void counted_weigh(Counted *p, Node *metric)
{
  Cursor at = ir_cursor_at(metric, WHY_state);
  const Graph *g = p->c->graph;
  bool is_loss = g->metrics.at[attr_int(metric, "metric")].is_loss;
  metric->in[1] = is_empty(p, &at, metric->in[0]);
  if (!is_loss || g->blocks.at[metric->block].accumulate > 1)
    metric->in[2] = divisor_of(p, metric->in[0]).of;
}

/* ---- the shares of bodies ---- */

/* Appends v, computed from `value` in the place of `count`. done: results by node id; at first {0}.
 */
static Value with_count(Compile *c, const Cursor *at, Value v, Value count, Value value,
                        Value *done)
{
  Node n = *ir_node(c->graph, v);
  if (is_same(c->graph, v, count)) return value;
  if (done[v.id].id) return done[v.id];
  Value *in = arena_array(c->arena, Value, n.n_in ? n.n_in : 1);
  bool changed = false;
  for (uint32_t i = 0; i < n.n_in; i++) {
    in[i] = n.in[i].id ? with_count(c, at, n.in[i], count, value, done) : n.in[i];
    changed = changed || in[i].id != n.in[i].id;
  }
  return done[v.id] = changed ? ir_append_values(c, at, n.op, in, n.n_in, n.attr) : v;
}

/* Returns x / y, or 0 if y is 0: nothing has counted so far. */
static Value quotient(Compile *c, const Cursor *at, Value x, Value y)
{
  Value zero = ir_number(c, at, 0), none = ir_binary(c, at, op_named("eq"), y, zero);
  Value ratio = ir_binary(c, at, op_named("div"), x, y);
  return ir_append(c, at, op_named("where"), (Value[]){none, zero, ratio}, 3, NULL);
}

/* Appends the sum of the counts of the step's bodies, kept in the metric. *out_share is the part of
 * this body in the loss of the bodies so far, *out_kept that of the earlier bodies. */
static void append_shares(Compile *c, const Cursor *at, const Divisor *d, int64_t metric,
                          Value *out_share, Value *out_kept)
{
  Value own = ir_cast(c, at, ir_reshape(c, at, d->of, NULL, 0), AMPC_F32), divisor[2];
  Value count = ir_cast(c, at, ir_reshape(c, at, d->count, NULL, 0), AMPC_F32);
  for (int64_t i = 0; i < 2; i++) {
    Value sum = ir_append(c, at, op_named("body_sum"), &count, 1,
                          ATTRS({"metric", {.i = metric}}, {"adds", {.i = i}}));
    Node shape = *ir_node(c->graph, d->count);
    sum = ir_reshape(c, at, sum, shape.dim, shape.rank);
    Value *done = arena_array(c->arena, Value, d->of.id + 1);
    divisor[i] = with_count(c, at, d->of, d->count, sum, done);
    divisor[i] = ir_cast(c, at, ir_reshape(c, at, divisor[i], NULL, 0), AMPC_F32);
  }
  *out_share = quotient(c, at, own, divisor[1]);
  *out_kept = quotient(c, at, divisor[0], divisor[1]);
}

static void warn_mixed(Compile *c, const Node *minimize, int64_t bodies)
{
  diag_warning(
      c, W611, minimize->span,
      "this loss is not one mean over the labels that are not ignored, or over the mask, so "
      "accumulating %lld batches does not equal one batch %lld times as large",
      (long long)bodies, (long long)bodies);
  diag_help(
      c,
      "divide one sum over samples by one count; or replace `accumulate=%lld` by a batch %lld "
      "times as large, whose memory several ranks can share",
      (long long)bodies, (long long)bodies);
}

/* Returns the metric that reports the loss: pass lower has appended it before its `minimize`. */
static int64_t loss_metric(const Graph *g, uint16_t block)
{
  uint32_t id = g->nodes.n - 1;
  for (;; id--) {
    const Node *n = &g->nodes.at[id];
    bool found = n->op == OP_metric && n->block == block;
    if (found && g->metrics.at[attr_int(n, "metric")].is_loss) return attr_int(n, "metric");
  }
}

Value counted_share(Counted *p, const Node *minimize, uint32_t n, Value loss)
{
  Compile *c = p->c;
  Cursor at = ir_cursor_at(minimize, WHY_state);
  const BlockInfo *b = &c->graph->blocks.at[minimize->block];
  Divisor d = b->accumulate > 1 ? divisor_of(p, loss) : (Divisor){.mixed = false};
  Value share = {0}, kept;
  at.origin = loss;
  if (d.mixed && b->variant_of < 0) warn_mixed(c, minimize, b->accumulate);
  if (!d.of.id) return share;
  append_shares(c, &at, &d, loss_metric(c->graph, minimize->block), &share, &kept);
  for (uint32_t i = 0; i < n; i++)
    ir_append(c, &at, op_named("grad_rescale"), &kept, 1,
              ATTRS({"optimizer", {.i = attr_int(&minimize[i], "optimizer")}}));
  return share;
}
