/* Pass gradient. It needs types. Replaces every `minimize` by the backward nodes, the accumulation
 * of gradients and the update of the optimizer. Backward runs in the types of forward, and each of
 * its nodes names the forward node that it comes from. */
#include "compiler/graph/optimizers.h"
#include "compiler/graph/shares.h"
#include "backward.h"
#include "counted.h"
#include "norms.h"
#include "orthogonal.h"

typedef struct Gradient {
  Compile *c;
  Rewrite r;
  uint32_t *updated; /* indexed by block and optimizer: id of the last update; 0: none yet */
  VEC(Node) running; /* updates of running statistics that are not in the graph yet */
  uint32_t *stepped; /* indexed by block: 1 + the optimizer of its last step; 0: none yet */
  Counted *counted;
} Gradient;

typedef struct Minimize { /* the minimize nodes of one loss; one backward serves all of them */
  VEC(Node) nodes;        /* inputs are ids of the new array */
  Value loss, scale;      /* scale: lowest scale of the optimizers; 0: the job's scale */
  Value share;            /* of this body in the loss of the step; 0: an equal share */
} Minimize;

static uint32_t *updated_at(Gradient *p, uint16_t block, int64_t optimizer)
{
  return &p->updated[block * p->c->graph->optimizers.n + (uint64_t)optimizer];
}

/* ---- what is differentiated ---- */

static bool trained_by(const Graph *g, const Node *n, int64_t optimizer)
{
  if (!ir_parameter(g, n) || reads_average(g, n)) return false;
  return share_find(g, (uint32_t)attr_int(n, "index"), optimizer) != NO_SHARE;
}

/* True if n is a parameter of an optimizer that minimizes this loss. Parameters of other optimizers
 * get no gradient from it. */
static bool is_wanted(const Graph *g, const Node *n, const Minimize *m)
{
  if (n->block != m->nodes.at[0].block) return false;
  for (uint32_t i = 0; i < m->nodes.n; i++)
    if (trained_by(g, n, attr_int(&m->nodes.at[i], "optimizer"))) return true;
  return false;
}

/* Returns the first minimize whose optimizer has no parameter that affects the loss, or NULL. */
static const Node *without_gradient(const Backward *b, const Minimize *m)
{
  const Graph *g = b->c->graph;
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    bool any = false;
    for (uint32_t id = 1; id < b->n && !any; id++) {
      int64_t optimizer = attr_int(&m->nodes.at[i], "optimizer");
      any = b->wanted[id] && b->active[id] && trained_by(g, &g->nodes.at[id], optimizer);
    }
    if (!any) return &m->nodes.at[i];
  }
  return NULL;
}

static void report_independent(Backward *b, const Node *minimize, Value loss)
{
  Compile *c = b->c;
  int64_t optimizer = attr_int(minimize, "optimizer");
  const Optimizer *o = &c->graph->optimizers.at[optimizer];
  for (uint32_t id = 1; id < b->n; id++)
    if (b->wanted[id]) b->wanted[id] = trained_by(c->graph, &c->graph->nodes.at[id], optimizer);
  diag_error(c, E601, minimize->span, "the loss does not depend on any parameter of `%s`", o->name);
  backward_note_cut(b, loss);
}

/* Returns the parameter that v views or casts (such as its 16-bit copy), or NULL. */
static const Node *as_parameter(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  bool same_bytes = op_has(n, T_casts) || op_of(n)->tmpl == TMPL_alias;
  if (same_bytes) return as_parameter(g, n->in[0]);
  return ir_parameter(g, n) ? n : NULL;
}

/* Returns the last update of the parameter by any optimizer, which is *out; 0: no update yet. */
static uint32_t last_update(Gradient *p, uint16_t block, uint32_t param, uint32_t *out)
{
  const Graph *g = p->c->graph;
  uint32_t last = 0;
  for (uint32_t i = 0; i < g->optimizers.n; i++) {
    uint32_t at = *updated_at(p, block, i);
    if (at <= last || share_find(g, param, i) == NO_SHARE) continue;
    last = at;
    *out = i;
  }
  return last;
}

/* Reports weights that have changed since forward read them, and returns false. In a block with two
 * `minimize`, the backward of the second reads weights that the first may have updated. Its
 * gradients would belong to other weights than forward used. */
static bool check_fresh(Gradient *p, const Backward *b, const Minimize *m)
{
  const Graph *g = p->c->graph;
  for (uint32_t id = 1; id < b->n; id++) {
    for (uint32_t i = 0; b->active[id] && i < g->nodes.at[id].n_in; i++) {
      const Node *n = as_parameter(g, g->nodes.at[id].in[i]);
      if (!n) continue;
      uint32_t index = (uint32_t)attr_int(n, "index"), by = 0;
      uint32_t at = last_update(p, n->block, index, &by);
      if ((uint32_t)(n - g->nodes.at) >= at) continue;
      diag_error(p->c, E602, m->nodes.at[0].span,
                 "this loss uses values of `%s` from before `minimize ... with %s`, line %u",
                 g->params.at[index].model, g->optimizers.at[by].name,
                 diag_place(p->c, g->nodes.at[at].span).line);
      diag_help(p->c, "call `%s(...)` again after that `minimize`", g->params.at[index].model);
      return false;
    }
  }
  return true;
}

/* ---- gradients ---- */

/* True if v contains sums into rows of a weight, such as the gradient of an embedding. If a product
 * also reads the weight, the gradient has other terms. Then each term is added to the slot by
 * itself, so that these sums need no tensor of their own. */
static bool has_row_sums(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  while (op_of(n)->tmpl == TMPL_alias) n = ir_node(g, n->in[0]);
  if (n->op == OP_add && n->dtype == AMPC_F32)
    return has_row_sums(g, n->in[0]) || has_row_sums(g, n->in[1]);
  return op_may_add(op_of(n)) && !op_by_library(op_of(n));
}

typedef struct Slots { /* the gradient slots of the optimizers of one loss */
  Compile *c;
  const Minimize *of;
  uint32_t **left; /* by optimizer of the loss and group: parameters without a gradient so far */
} Slots;

/* Counts a complete gradient. After the last one of a group, members exchange its gradients, while
 * backward continues. */
static void exchange(const Slots *slots, const Node *minimize, uint32_t *left, uint32_t group)
{
  if (slots->c->graph->members <= 1 || --left[group]) return;
  Cursor at = ir_cursor_at(minimize, WHY_state);
  ir_append(slots->c, &at, OP_grad_exchange, NULL, 0,
            ATTRS({"optimizer", {.i = attr_int(minimize, "optimizer")}}, {"group", {.i = group}}));
}

/* Adds the gradient of parameter v to the f32 slot of the parameter, for each of the optimizers. */
static void accumulate(void *data, Value v, Value gradient)
{
  const Slots *slots = data;
  Compile *c = slots->c;
  const Node *sum = ir_node(c->graph, gradient);
  if (sum->op == OP_add && has_row_sums(c->graph, gradient)) {
    Value parts[] = {sum->in[0], sum->in[1]};
    for (uint32_t i = 0; i < 2; i++) accumulate(data, v, parts[i]);
    return;
  }
  Node n = *ir_node(c->graph, v);
  Cursor at = ir_cursor_at(&n, WHY_state);
  at.origin = v;
  gradient = ir_cast(c, &at, gradient, AMPC_F32);
  for (uint32_t i = 0; i < slots->of->nodes.n; i++) {
    int64_t optimizer = attr_int(&slots->of->nodes.at[i], "optimizer");
    uint32_t entry = share_find(c->graph, (uint32_t)attr_int(&n, "index"), optimizer);
    if (entry == NO_SHARE) continue;
    ir_append(c, &at, OP_grad_accumulate, &gradient, 1, ATTRS({"param", {.i = entry}}));
  }
}

/* Called when the gradient of parameter v is complete. */
static void finish(void *data, Value v, Value gradient)
{
  const Slots *slots = data;
  const Graph *g = slots->c->graph;
  accumulate(data, v, gradient);
  for (uint32_t i = 0; i < slots->of->nodes.n; i++) {
    const Node *minimize = &slots->of->nodes.at[i];
    uint32_t param = (uint32_t)attr_int(ir_node(g, v), "index");
    if (share_find(g, param, attr_int(minimize, "optimizer")) == NO_SHARE) continue;
    exchange(slots, minimize, slots->left[i], g->params.at[param].group);
  }
}

/* Counts the parameters of each group. */
static void count_left(const Slots *slots)
{
  const Graph *g = slots->c->graph;
  for (uint32_t i = 0; i < slots->of->nodes.n; i++) {
    int64_t optimizer = attr_int(&slots->of->nodes.at[i], "optimizer");
    uint32_t n = g->optimizers.at[optimizer].groups.n;
    slots->left[i] = arena_array(slots->c->arena, uint32_t, n);
    for (uint32_t k = 0; k < g->params.n; k++)
      if (g->params.at[k].optimizer == optimizer) slots->left[i][g->params.at[k].group]++;
  }
}

/* Exchanges the groups of which some parameters have no gradient. */
static void exchange_rest(const Slots *slots)
{
  const Graph *g = slots->c->graph;
  for (uint32_t i = 0; i < slots->of->nodes.n; i++) {
    const Node *minimize = &slots->of->nodes.at[i];
    const Optimizer *o = &g->optimizers.at[attr_int(minimize, "optimizer")];
    for (uint32_t k = 0; k < o->groups.n; k++) {
      bool waits = slots->left[i][k] > 0;
      slots->left[i][k] = 1;
      if (waits) exchange(slots, minimize, slots->left[i], k);
    }
  }
}

/* If each optimizer has a scale of its own, returns the lowest scale of the optimizers of this
 * loss; else {0}. All of them share one backward and divide by that scale. */
static Value own_scale(Gradient *p, const Minimize *m)
{
  Compile *c = p->c;
  Cursor at = ir_cursor_at(&m->nodes.at[0], WHY_state);
  Value lowest = {0};
  at.origin = m->loss;
  for (uint32_t i = 0; i < m->nodes.n && c->graph->scaler.per_optimizer; i++) {
    int64_t index = attr_int(&m->nodes.at[i], "optimizer");
    Value one = ir_append(c, &at, OP_loss_scale, NULL, 0, ATTRS({"optimizer", {.i = index}}));
    lowest = i ? ir_binary(c, &at, op_named("minimum"), lowest, one) : one;
  }
  return lowest;
}

/* Returns the gradient of the scaled loss with respect to the loss: the loss scale, or 1. It is
 * divided by K if K bodies make a step, even in the last step of an epoch, which may have fewer.
 * Of several members each has its share of the samples. The result is a tensor, so that all
 * products with it have the loss's type. */
static Value seed(Gradient *p, const Minimize *m)
{
  Compile *c = p->c;
  Cursor at = ir_cursor_at(&m->nodes.at[0], WHY_state);
  at.origin = m->loss;
  Value one = m->scale;
  if (!one.id && c->graph->scaler.on) one = ir_append(c, &at, OP_loss_scale, NULL, 0, NULL);
  if (!one.id) one = ir_number(c, &at, 1);
  ir_node(c->graph, one)->weak = false;
  const BlockInfo *b = &c->graph->blocks.at[m->nodes.at[0].block];
  if (m->share.id)
    one = ir_binary(c, &at, op_named("mul"), one, m->share);
  else if (b->accumulate > 1)
    one = ir_binary(c, &at, op_named("div"), one, ir_number(c, &at, (double)b->accumulate));
  double share = b->idle ? 0 : (double)b->batch / (double)b->whole;
  if (c->graph->members > 1)
    one = ir_binary(c, &at, op_named("mul"), one, ir_number(c, &at, share));
  at.why = WHY_forward;
  return ir_cast(c, &at, one, ir_node(c->graph, m->loss)->dtype);
}

/* ---- running statistics ---- */

/* True if a later node assigns to the same buffer before the same step. */
static bool assigned_again(const Gradient *p, uint32_t i)
{
  const Node *n = &p->running.at[i];
  for (uint32_t k = i + 1; k < p->running.n; k++) {
    const Node *m = &p->running.at[k];
    if (m->op == n->op && m->block == n->block && attr_int(m, "param") == attr_int(n, "param"))
      return true;
  }
  return false;
}

/* True if the n nodes have an update of Buffer `param` by each body of a step. */
static bool has_update(const Node *nodes, uint32_t n, uint16_t block, int64_t param)
{
  for (uint32_t i = 1; i < n; i++) {
    const Node *m = &nodes[i];
    bool once = op_has(m, T_assigns) && attr_int(m, "once");
    if (op_has(m, T_running) && !once && m->block == block && attr_int(m, "param") == param)
      return true;
  }
  return false;
}

/* With `accumulate` a statement runs once, in the last body of a step. Reports one that reads
 * running statistics which the earlier bodies have changed, but not the last one yet. */
static void check_settled(Gradient *p, const Node *n)
{
  Compile *c = p->c;
  const Graph *g = c->graph;
  int64_t bodies = g->blocks.at[n->block].accumulate;
  if (bodies < 2 || !attr_int(n, "once") || diag_error_count(c)) return;
  bool *needed = needed_for(c, n->in[0]);
  for (uint32_t id = 1; id <= n->in[0].id; id++) {
    const Node *m = &g->nodes.at[id];
    const Parameter *of = needed[id] ? ir_parameter(g, m) : NULL;
    if (!of || !of->buffer) continue;
    int64_t param = attr_int(m, "index");
    if (!has_update(p->r.old, p->r.n_old, n->block, param) ||
        has_update(g->nodes.at, g->nodes.n, n->block, param))
      continue;
    diag_error(
        c, E605, n->span,
        "this reads `%s` in the middle of a step: with accumulate=%lld each batch of the step "
        "changes it",
        of->path, (long long)bodies);
    diag_help(c,
              "move this statement after `minimize`: there it reads the value with which the next "
              "step begins");
    return;
  }
}

/* Appends updates of running statistics. The running mean and variance of batch norm must not
 * change if a step is skipped because of an overflow. So their updates come right after the
 * decision of the first optimizer whose loss needs them. Updates that no loss needs stay in
 * p->running and are never emitted. If a method assigns to a Buffer, the next step performs the
 * update. */
static void append_running(Gradient *p, const Node *minimize)
{
  Value loss = minimize->in[0];
  bool *needed = needed_for(p->c, loss);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->running.n; i++) {
    Node n = p->running.at[i];
    Value *last = &n.in[n.n_in - 1];
    uint32_t of = last->id ? last->id : n.in[0].id;
    bool goes = op_has(&n, T_assigns) || (of <= loss.id && needed[of]);
    if (n.block != minimize->block || !goes) {
      p->running.at[kept++] = n;
      continue;
    }
    if (op_has(&n, T_assigns) && assigned_again(p, i)) continue; /* overwritten before any read */
    if (op_has(&n, T_assigns)) check_settled(p, &n);
    /* Only this pass reads input `of` */
    if (n.n_in > 1 && !op_has(&n, T_assigns)) *last = (Value){0};
    attr_set_int(&n, "optimizer", attr_int(minimize, "optimizer"));
    vec_push(p->c->arena, &p->c->graph->nodes, n);
  }
  p->running.n = kept;
}

/* Appends backward for one loss. Returns false if it has reported an error. */
static bool append_backward(Gradient *p, Minimize *m)
{
  Backward b;
  Graph *g = p->c->graph;
  backward_init(&b, p->c, g->nodes.n);
  for (uint32_t id = 1; id < b.n; id++) b.wanted[id] = is_wanted(g, &g->nodes.at[id], m);
  backward_find(&b, m->loss);
  const Node *without = without_gradient(&b, m);
  if (without) {
    report_independent(&b, without, m->loss);
    return false;
  }
  if (!check_fresh(p, &b, m)) return false;
  m->share = counted_share(p->counted, m->nodes.at, m->nodes.n, m->loss);
  m->scale = own_scale(p, m);
  Slots slots = {p->c, m, arena_array(p->c->arena, uint32_t *, m->nodes.n)};
  count_left(&slots);
  backward_run(&b, m->loss, seed(p, m), finish, &slots);
  exchange_rest(&slots);
  return true;
}

/* ---- the update ---- */

/* Appends an op that updates a group. Its inputs are the settings of their names; `last`, if it is
 * not 0, is the last input. */
static Value append_op(Compile *c, const Cursor *at, const OptimizerInfo *row, OpKind op,
                       const Value *settings, Value last, const NamedAttr *attrs)
{
  const OpSignature *sig = &op_row(op)->signature;
  Value in[MAX_SIGNATURE] = {{0}};
  for (uint32_t i = 0, k; i < sig->n_inputs; i++)
    if (optimizer_setting_find(row, sig->input[i].name, &k)) in[i] = settings[k];
  if (last.id) in[sig->n_inputs - 1] = last;
  return ir_append(c, at, op, in, sig->n_inputs, attrs);
}

/* Appends the update of a group. If it needs norms of whole parameters, two nodes come before it:
 * one measures parts of the parameters and one combines the parts. Pass fuse makes the last blocks
 * of the first kernel do the work of the second. If it needs whole matrices, the nodes of
 * orthogonal.c come before it. */
static Value append_group(Compile *c, const Cursor *at, const Node *minimize, uint32_t group)
{
  int64_t optimizer = attr_int(minimize, "optimizer");
  const Optimizer *o = &c->graph->optimizers.at[optimizer];
  const OptimizerInfo *row = optimizer_of(o);
  const Value *settings = minimize->in + 1 + o->groups.at[group].settings * row->n_settings;
  const NamedAttr *own = ATTRS({"optimizer", {.i = optimizer}}, {"group", {.i = group}});
  Value first = {0}, ratio = {0};
  if (row->measure != OP_COUNT) first = append_op(c, at, row, row->measure, settings, ratio, own);
  if (row->matrices)
    orthogonal_append(c, at, minimize->in[0], first, optimizer, group);
  else if (first.id)
    ratio = ir_append(c, at, OP_trust_ratio, &first, 1, own);
  const NamedAttr *all = ATTRS(own[0], own[1], {"sums", {.i = c->options.norms}});
  return append_op(c, at, row, row->update, settings, ratio, all);
}

/* An assignment to the path of a Buffer after a step is part of that step. It stays at its place,
 * where it reads the new weights. Of several optimizers, the one that updates what it reads decides
 * if the step is skipped. Returns false if there was no step yet. */
static bool append_assignment(Gradient *p, const Node *n)
{
  const Graph *g = p->c->graph;
  if (!op_has(n, T_assigns) || !attr_int(n, "once") || !p->stepped[n->block]) return false;
  uint32_t by = p->stepped[n->block] - 1, last = 0;
  bool *needed = g->optimizers.n > 1 ? needed_for(p->c, n->in[0]) : NULL;
  for (uint32_t id = 1; needed && id <= n->in[0].id; id++) {
    const Node *m = &g->nodes.at[id];
    uint32_t other = by;
    if (!needed[id] || !ir_parameter(g, m)) continue;
    uint32_t at = last_update(p, n->block, (uint32_t)attr_int(m, "index"), &other);
    if (at > last) last = at, by = other;
  }
  check_settled(p, n);
  Node own = *n;
  attr_set_int(&own, "optimizer", by);
  vec_push(p->c->arena, &p->c->graph->nodes, own);
  return true;
}

/* Appends one update for each group that has parameters, after the decision of the optimizer. Then
 * members exchange all weights in one row. check_fresh() needs the id of the last node. Returns the
 * updates by group. */
static Value *append_updates(Gradient *p, const Node *minimize)
{
  Compile *c = p->c;
  Cursor at = ir_cursor_at(minimize, WHY_state);
  int64_t index = attr_int(minimize, "optimizer");
  const Optimizer *o = &c->graph->optimizers.at[index];
  Value *updates = arena_array(c->arena, Value, o->groups.n);
  for (uint32_t i = 0; i < o->groups.n; i++) {
    if (!optimizer_has_group(c->graph, index, i)) continue;
    updates[i] = append_group(c, &at, minimize, i);
    *updated_at(p, minimize->block, index) = updates[i].id;
  }
  for (uint32_t i = 0; i < o->groups.n && c->graph->members > 1; i++)
    if (optimizer_has_group(c->graph, index, i))
      *updated_at(p, minimize->block, index) =
          ir_append(c, &at, OP_weight_exchange, NULL, 0,
                    ATTRS({"optimizer", {.i = index}}, {"group", {.i = i}}))
              .id;
  return updates;
}

/* Note [replay]
 * With scaler(on_overflow="replay") a step whose gradients overflow runs again, at the lower scale
 * that the scaler has chosen, with the same batches and the same random numbers. The decisions that
 * optimizers made before the overflow stay: the new attempt runs the whole step again but does not
 * repeat their updates. The optimizers after the overflow decide in the next attempt. So each
 * optimizer updates once and in the order of the text, with the weights that the earlier ones left,
 * as if the scale had been low enough from the start.
 *
 * The optimizers of one loss share a backward that runs before any of their updates. So all their
 * gradients are checked before the first decision, and these optimizers wait together. The device
 * records the decisions (ampc_state.passed) and predicates the updates by them, as it does for
 * skipped steps. The host waits for each step to read ampc_state.replay, and supplies the batches
 * again. Replay cannot cure a loss that is not finite or an overflow at the lowest scale: such a
 * step is skipped, as without replay. */
static void append_looks(Gradient *p, const Minimize *m, const Value *partials)
{
  for (uint32_t i = 0; i < m->nodes.n; i++) {
    const Node *n = &m->nodes.at[i];
    Cursor at = ir_cursor_at(n, WHY_state);
    ir_append(p->c, &at, OP_optimizer_control, (Value[]){partials[i], n->in[1], {0}, {0}, m->scale},
              5, ATTRS({"optimizer", {.i = attr_int(n, "optimizer")}}, {"looks", {.i = true}}));
  }
}

/* Appends the decision (clip factor, skip), running statistics, updates. Inputs of minimize are the
 * loss, the settings of each group, then clip_norm and skip_above. */
static void append_update(Gradient *p, const Node *minimize, Value scale, Value partials)
{
  Compile *c = p->c;
  int64_t index = attr_int(minimize, "optimizer");
  const Optimizer *o = &c->graph->optimizers.at[index];
  Cursor at = ir_cursor_at(minimize, WHY_state);
  Value skip = o->skip ? minimize->in[minimize->n_in - 1] : (Value){0};
  Value clip = o->clip ? minimize->in[minimize->n_in - 1 - o->skip] : (Value){0};
  const Value in[] = {partials, minimize->in[1], clip, skip, scale};
  ir_append(c, &at, OP_optimizer_control, in, 5, ATTRS({"optimizer", {.i = index}}));
  append_running(p, minimize);
  bool norms = c->options.norms;
  Value *gradients = norms ? norms_of_gradients(c, minimize, scale, partials) : NULL;
  Value *updates = append_updates(p, minimize);
  if (norms) norms_append(c, minimize, gradients, updates);
  p->stepped[minimize->block] = (uint32_t)index + 1;
}

/* ---- the pass ---- */

static bool same_loss(const Node *a, const Node *b)
{
  return b->op == OP_minimize && a->block == b->block && a->in[0].id == b->in[0].id;
}

/* `minimize L with a, b` is two minimize nodes, whose gradients all come before the first update.
 * Takes the minimize at *id and the later ones of the same loss. Nodes between them (settings) are
 * copied in front. *id becomes the id of the last minimize taken. */
static void collect(Gradient *p, uint32_t *id, Minimize *m)
{
  const Node *first = &p->r.old[*id];
  vec_push(p->c->arena, &m->nodes, ir_rewrite_mapped(&p->r, *id));
  m->loss = m->nodes.at[0].in[0];
  for (uint32_t next = *id + 1; next < p->r.n_old; next++) {
    const Node *n = &p->r.old[next];
    bool together = same_loss(first, n);
    bool harmless = op_has(n, T_adds) || !op_has(n, T_effect);
    if (!together && (!harmless || n->op == OP_param || n->block != first->block)) return;
    if (!together) continue;
    for (uint32_t k = *id + 1; k < next; k++) ir_rewrite_copy(&p->r, k);
    vec_push(p->c->arena, &m->nodes, ir_rewrite_mapped(&p->r, next));
    *id = next;
  }
}

/* Reports assigned buffers that no step updates, in first variants: others may lack the step. */
static void report_unassigned(const Gradient *p)
{
  for (uint32_t i = 0; i < p->running.n; i++) {
    const Node *n = &p->running.at[i];
    if (!op_has(n, T_assigns) || p->c->graph->blocks.at[n->block].variant_of >= 0) continue;
    bool once = attr_int(n, "once");
    diag_error(p->c, E210, n->span, "no `minimize` %s: a Buffer is updated together with a step",
               once ? "is in the block of this assignment" : "follows this assignment");
    diag_help(p->c, once ? "assign it in a train block that has a `minimize`"
                         : "assign it before the last `minimize` of the block");
  }
}

static void copy_metric(Gradient *p, uint32_t id)
{
  Node n = ir_rewrite_mapped(&p->r, id);
  counted_weigh(p->counted, &n);
  ir_rewrite_add(&p->r, id, &n);
}

static void keep_running(Gradient *p, uint32_t id)
{
  Node n = ir_rewrite_mapped(&p->r, id);
  if (!append_assignment(p, &n)) vec_push(p->c->arena, &p->running, n);
}

static void expand_minimize(Gradient *p, uint32_t *id)
{
  Minimize m = {.loss = {0}};
  collect(p, id, &m);
  if (!append_backward(p, &m)) return;
  bool together = m.nodes.n > 1 && p->c->graph->scaler.replay;
  Value *partials = arena_array(p->c->arena, Value, m.nodes.n);
  for (uint32_t i = 0; i < m.nodes.n && together; i++)
    partials[i] = norm_partials(p->c, &m.nodes.at[i], m.scale);
  if (together) append_looks(p, &m, partials);
  for (uint32_t i = 0; i < m.nodes.n; i++) {
    if (!together) partials[i] = norm_partials(p->c, &m.nodes.at[i], m.scale);
    append_update(p, &m.nodes.at[i], m.scale, partials[i]);
  }
}

bool pass_gradient(Compile *c)
{
  Gradient p = {.c = c, .counted = counted_new(c)};
  uint32_t blocks = c->graph->blocks.n + 1;
  p.updated = arena_array(c->arena, uint32_t, blocks * (c->graph->optimizers.n + 1));
  p.stepped = arena_array(c->arena, uint32_t, blocks);
  loops_together(c);
  ir_rewrite_begin(&p.r, c);
  for (uint32_t id = 1; id < p.r.n_old; id++) {
    const Node *n = &p.r.old[id];
    if (n->op == OP_minimize)
      expand_minimize(&p, &id);
    else if (n->op == OP_metric)
      copy_metric(&p, id);
    else if (op_has(n, T_running))
      keep_running(&p, id);
    else
      ir_rewrite_copy(&p.r, id);
  }
  if (c->graph->loops.n > 1) settle_loops(c);
  report_unassigned(&p);
  return diag_error_count(c) == 0;
}
