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

/* Appends a bool: true if v is computed from a mean of no elements. {0}: v has no such mean. */
static Value is_empty(Compile *c, const Cursor *at, Value v)
{
  const bool *needed = needed_for(c, v);
  Value out = {0};
  for (uint32_t id = 1; id <= v.id; id++) {
    const Node *n = &c->graph->nodes.at[id];
    if (!needed[id] || n->op != op_named("counted_mean") || n->loop || ir_elements(n) > 1) continue;
    Value count = ir_reshape(c, at, n->in[1], NULL, 0);
    Value one = ir_binary(c, at, op_named("eq"), count, ir_number(c, at, 0));
    out = out.id ? ir_binary(c, at, op_named("logical_or"), out, one) : one;
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

typedef struct Parts { /* by node id */
  Compile *c;
  bool *data, *trained; /* the value depends on samples, on a parameter */
  Kind *kind;
  Value *divisor; /* of a RATIO */
} Parts;

static Kind kind_in(const Parts *p, const Node *n, uint32_t i)
{
  return p->kind[n->in[i].id];
}

static bool is_mixed(const Parts *p, const Node *n)
{
  bool mixed = false;
  for (uint32_t i = 0; i < n->n_in; i++) mixed = mixed || kind_in(p, n, i) >= RATIO;
  return mixed;
}

/* Whether both compute the same value. Pass simplify, which shares such nodes, runs later. Values
 * are taken for different after *left comparisons of nodes. */
static bool compare(const Graph *g, Value a, Value b, int *left)
{
  const Node *x = ir_node(g, a), *y = ir_node(g, b);
  if (a.id == b.id) return true;
  bool same = (*left)-- > 0 && x->op == y->op && x->stream == y->stream && x->n_in == y->n_in &&
              !memcmp(x->attr, y->attr, sizeof x->attr) && !op_draws(x);
  for (uint32_t i = 0; i < x->n_in && same; i++) same = compare(g, x->in[i], y->in[i], left);
  return same;
}

static bool is_same(const Graph *g, Value a, Value b)
{
  int left = 1000;
  return compare(g, a, b, &left);
}

/* Returns the sum or mean over samples from which v is computed; {0}: there is none. *single is
 * false if there are several. */
static Value find_count(const Parts *p, Value v, bool *single)
{
  const Node *n = ir_node(p->c->graph, v);
  Value out = {0};
  if (p->kind[v.id] == SUM || p->kind[v.id] == MEAN) return v;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!p->data[n->in[i].id]) continue;
    Value one = find_count(p, n->in[i], single);
    if (out.id && !is_same(p->c->graph, out, one)) *single = false;
    if (one.id) out = one;
  }
  return out;
}

static Kind divided(Parts *p, const Node *n, uint32_t id)
{
  bool single = true;
  Value d = n->in[1], count = {0};
  if (kind_in(p, n, 1) == ALIKE) {
    p->divisor[id] = p->divisor[n->in[0].id];
    return kind_in(p, n, 0);
  }
  if (ir_elements(ir_node(p->c->graph, d)) == 1) count = find_count(p, d, &single);
  if (!count.id) return is_mixed(p, n) ? MIXED : OTHER;
  bool sums = kind_in(p, n, 0) == SUM && p->kind[count.id] == SUM;
  if (!sums || !single || p->trained[d.id]) return MIXED;
  p->divisor[id] = d;
  return RATIO;
}

static Kind added(Parts *p, const Node *n, uint32_t id)
{
  Kind a = kind_in(p, n, 0), b = kind_in(p, n, 1), other = a == ALIKE ? b : a;
  Value d = p->divisor[n->in[0].id], e = p->divisor[n->in[1].id];
  bool ratios = a == RATIO && b == RATIO && is_same(p->c->graph, d, e);
  p->divisor[id] = d.id ? d : e;
  if (ratios || (a == b && a < RATIO)) return a;
  if (a == ALIKE || b == ALIKE) return other >= RATIO ? other : OTHER;
  return is_mixed(p, n) ? MIXED : OTHER;
}

/* If the op of one number is linear in one input and the others are alike, returns that input. */
static Value passed_on(const Parts *p, const Node *n)
{
  const Node *x = ir_in(p->c, n, 0);
  if (n->op == OP_slice && x->op == OP_member_sum) { /* several numbers in one exchange */
    const Node *all = ir_in(p->c, x, 0);
    if (all->op == OP_cat && all->n_in == ir_elements(all)) return all->in[attr_int(n, "start")];
  }
  bool linear = op_has(n, T_linear) || n->op == op_named("neg") || n->op == OP_member_sum;
  if (linear && ir_elements(x) == 1) return n->in[0];
  for (uint32_t i = 0; i < 2 && n->op == op_named("mul"); i++)
    if (kind_in(p, n, !i) == ALIKE) return n->in[i];
  return (Value){0};
}

static Kind kind_of(Parts *p, const Node *n, uint32_t id)
{
  bool sums = op_has(n, T_sums) || op_of(n)->tmpl == TMPL_gemm, mixed = is_mixed(p, n);
  if (!p->data[id]) return ALIKE;
  if (ir_elements(n) > 1) return mixed ? MIXED : OTHER;
  if (n->op == OP_add || n->op == op_named("sub")) return added(p, n, id);
  if (n->op == op_named("div") || n->op == op_named("counted_mean")) return divided(p, n, id);
  if (sums && kind_in(p, n, 0) == OTHER && !mixed) return n->op == op_named("mean") ? MEAN : SUM;
  Value from = passed_on(p, n);
  p->divisor[id] = p->divisor[from.id];
  if (from.id) return p->kind[from.id];
  return mixed ? MIXED : OTHER;
}

static Divisor divisor_of(Compile *c, Value loss)
{
  uint32_t n = loss.id + 1;
  Parts p = {c, arena_array(c->arena, bool, n), arena_array(c->arena, bool, n),
             arena_array(c->arena, Kind, n), arena_array(c->arena, Value, n)};
  bool single = true;
  for (uint32_t id = 1; id < n; id++) {
    const Node *node = &c->graph->nodes.at[id];
    p.data[id] = node->op == OP_source || op_draws(node);
    p.trained[id] = ir_parameter(c->graph, node);
    for (uint32_t i = 0; i < node->n_in; i++) {
      p.data[id] = p.data[id] || p.data[node->in[i].id];
      p.trained[id] = p.trained[id] || p.trained[node->in[i].id];
    }
    p.kind[id] = kind_of(&p, node, id);
  }
  Value d = p.kind[loss.id] == RATIO ? p.divisor[loss.id] : (Value){0};
  return (Divisor){d, d.id ? find_count(&p, d, &single) : d, p.kind[loss.id] == MIXED};
}

void counted_weigh(Compile *c, Node *metric)
{
  Cursor at = ir_cursor_at(metric, WHY_state);
  const Graph *g = c->graph;
  bool is_loss = g->metrics.at[attr_int(metric, "metric")].is_loss;
  metric->in[1] = is_empty(c, &at, metric->in[0]);
  if (!is_loss || g->blocks.at[metric->block].accumulate > 1)
    metric->in[2] = divisor_of(c, metric->in[0]).of;
}

/* ---- the shares of bodies ---- */

/* Appends v, computed from `value` in the place of `count`. */
static Value with_count(Compile *c, const Cursor *at, Value v, Value count, Value value)
{
  Node n = *ir_node(c->graph, v);
  if (is_same(c->graph, v, count)) return value;
  Value *in = arena_array(c->arena, Value, n.n_in ? n.n_in : 1);
  bool changed = false;
  for (uint32_t i = 0; i < n.n_in; i++) {
    in[i] = n.in[i].id ? with_count(c, at, n.in[i], count, value) : n.in[i];
    changed = changed || in[i].id != n.in[i].id;
  }
  return changed ? ir_append_values(c, at, n.op, in, n.n_in, n.attr) : v;
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
    divisor[i] = with_count(c, at, d->of, d->count, sum);
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

Value counted_share(Compile *c, const Node *minimize, uint32_t n, Value loss)
{
  Cursor at = ir_cursor_at(minimize, WHY_state);
  const BlockInfo *b = &c->graph->blocks.at[minimize->block];
  Divisor d = b->accumulate > 1 ? divisor_of(c, loss) : (Divisor){.mixed = false};
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
