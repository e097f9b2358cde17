/* Pass probe. Note [probe]: measures how large the values of a step are. With options.probe_every
 * this pass adds nodes `ranges`. These measure the values that the language computes, the
 * parameters, the gradients of parameters, and the changes that updates make to parameters. Each
 * result stays in memory until the block ends, where the runner reads it (runner/probe/).
 *
 * Needs IR_LAID. Why here: casts, backward and layouts exist already. The next passes, split and
 * fuse, break up the ops that the language names into parts and groups. A kernel that would keep a
 * measured value in a register also stores it. So the same kernels compute the same bits; only
 * memory and time differ.
 *
 * The pass changes only variants of train blocks that fire with the period probe_every
 * (lower/block/every.c). Ops that only move, repeat or widen their input are not measured, since
 * they have the values of the input. A value in a loop is stacked over all iterations, and the
 * stack is measured. */
#include "compiler/command/command.h"
#include "compiler/graph/ops.h"
#include "passes.h"
#include <math.h>
#include <string.h>

typedef struct Weight { /* a parameter that the block's optimizers update */
  uint32_t param, optimizer;
  Value before; /* a copy of the parameter before the update */
} Weight;

typedef struct Looking {
  Compile *c;
  Rewrite r;
  /* old id -> 1 + probe of the value, or of the value that it moves; 0: no probe */
  uint32_t *probe;
  VEC(uint32_t) stacked; /* old ids of values of the current loop, measured after it */
  VEC(Weight) weights;   /* of the current block */
  uint32_t *weight;      /* indexed by parameter: 1 + its probe in this block; 0: none yet */
} Looking;

static bool is_looked_at(const Graph *g, uint32_t block, uint32_t every)
{
  const BlockInfo *b = &g->blocks.at[block];
  for (uint32_t i = 0; i < b->n_periods; i++)
    if (b->period[i] == every) return b->kind == AMPC_TRAIN && (b->fires >> i & 1);
  return b->kind == AMPC_TRAIN; /* `every 1` */
}

/* ---- which nodes ---- */

/* True if n has the values of input 0, perhaps with other zeros, and so the probe of the input. */
static bool only_moves(const Node *n, const Node *from)
{
  OpTemplate tmpl = op_of(n)->tmpl;
  if (op_has(n, T_casts)) return n->dtype == AMPC_F32 && dtype_is_float(from->dtype);
  return tmpl == TMPL_alias || tmpl == TMPL_move || op_has(n, T_repeats) || op_has(n, T_crosses);
}

/* True for values of the language; false for arithmetic of settings and clones of recompute. */
static bool is_value(const Graph *g, uint32_t id)
{
  const Node *n = &g->nodes.at[id];
  OpTemplate tmpl = op_of(n)->tmpl;
  if (!dtype_is_float(n->dtype) || n->weak || n->why == WHY_state || n->after.id) return false;
  if (op_has(n, T_effect) || op_has(n, T_kept) || is_working_copy(g, (Value){id})) return false;
  return (tmpl != TMPL_leaf || n->op == OP_source) && tmpl != TMPL_alias && tmpl != TMPL_loop;
}

/* True if the job itself puts an infinite constant into n, such as the -inf of a mask. */
static bool is_masked(const Looking *p, const Node *n)
{
  for (uint32_t i = 0; i < n->n_in; i++) {
    const Node *in = &p->r.old[n->in[i].id];
    while (in->n_in && only_moves(in, &p->r.old[in->in[0].id])) in = &p->r.old[in->in[0].id];
    if (in->op == OP_number && isinf(attr_float(in, "value"))) return true;
  }
  return false;
}

/* ---- probes ---- */

/* Returns x as a vector, whatever its layout. */
static Value flat(Compile *c, const Cursor *at, Value x)
{
  int64_t n = ir_elements(ir_node(c->graph, x));
  return ir_reshape(c, at, x, &n, 1);
}

/* Adds a probe of x and returns 1 + its index. of: the node by which people know the value. */
static uint32_t add_probe(Looking *p, Value x, ProbeKind kind, const Node *of, uint32_t param)
{
  Compile *c = p->c;
  Graph *g = c->graph;
  Probe probe = {.kind = kind, .of = *of, .param = param};
  Cursor at = ir_cursor_at(of, WHY_state);
  at.loop = 0;
  int64_t index = g->probes.n;
  Value ranges = ir_append(c, &at, OP_ranges, &x, 1, NULL);
  vec_push(c->arena, &g->probes, probe);
  g->probes.at[index].kept =
      ir_append(c, &at, OP_probed, &ranges, 1, ATTRS({"index", {.i = index}}));
  return (uint32_t)index + 1;
}

static void look_at(Looking *p, uint32_t id, Value x)
{
  const Node *old = &p->r.old[id];
  Node of = *ir_node(p->c->graph, p->r.map[id]);
  uint32_t *in = arena_array(p->c->arena, uint32_t, old->n_in + 1u);
  for (uint32_t i = 0; i < old->n_in; i++) in[i] = p->probe[old->in[i].id];
  p->probe[id] = add_probe(p, x, PROBE_value, &of, 0);
  Probe *probe = &p->c->graph->probes.at[p->probe[id] - 1];
  probe->in = in;
  if (of.origin.id) probe->origin = op_of(ir_node(p->c->graph, of.origin))->name;
  probe->masked = is_masked(p, old);
}

/* Adds probes of the stacks of values of a loop, after the loop: a value in a loop is not kept. */
static void look_at_stacked(Looking *p)
{
  for (uint32_t i = 0; i < p->stacked.n; i++) {
    uint32_t id = p->stacked.at[i];
    Node n = *ir_node(p->c->graph, p->r.map[id]);
    Cursor at = ir_cursor_like(&n);
    Value x = flat(p->c, &at, p->r.map[id]);
    look_at(p, id, ir_stack(p->c, &at, x, n.loop));
  }
  p->stacked.n = 0;
}

/* ---- parameters ---- */

static Value param_at(Looking *p, const Cursor *at, uint32_t param, int64_t version)
{
  const NamedAttr *which = ATTRS({"index", {.i = param}}, {"version", {.i = version}});
  return flat(p->c, at, ir_append(p->c, at, OP_param, NULL, 0, which));
}

/* Measures a weight once a block, where it is first read. */
static void look_at_weight(Looking *p, uint32_t id)
{
  Node n = *ir_node(p->c->graph, p->r.map[id]);
  uint32_t param = (uint32_t)attr_int(&n, "index");
  if (!dtype_is_float(n.dtype)) return;
  if (!p->weight[param]) p->weight[param] = add_probe(p, p->r.map[id], PROBE_weight, &n, param);
  p->probe[id] = p->weight[param];
}

static bool is_kept_before(const Looking *p, uint32_t param)
{
  for (uint32_t i = 0; i < p->weights.n; i++)
    if (p->weights.at[i].param == param) return true;
  return false;
}

/* Measures the loss scale of the gradients here, since the step may change it at its end. */
static uint32_t look_at_scale(Looking *p, const Node *norm)
{
  Graph *g = p->c->graph;
  Cursor at = ir_cursor_at(norm, WHY_state);
  bool own = norm->n_in && norm->in[0].id; /* these optimizers have a scale of their own */
  if (!g->scaler.on) return 0;
  Value scale = own ? p->r.map[norm->in[0].id] : ir_append(p->c, &at, OP_loss_scale, NULL, 0, NULL);
  Node n = *ir_node(g, scale);
  return add_probe(p, scale, PROBE_scale, &n, 0);
}

/* Before the optimizer's first kernel: measures its gradients and copies the weights. */
static void look_before_step(Looking *p, const Node *norm)
{
  Graph *g = p->c->graph;
  Cursor at = ir_cursor_at(norm, WHY_state);
  uint32_t scale = look_at_scale(p, norm);
  for (uint32_t i = 0; i < g->params.n; i++) {
    if (g->params.at[i].buffer || g->params.at[i].optimizer != attr_int(norm, "optimizer"))
      continue;
    uint32_t of = g->params.at[i].of < 0 ? i : (uint32_t)g->params.at[i].of;
    Value slot = ir_append(p->c, &at, OP_gradient, NULL, 0, ATTRS({"index", {.i = i}}));
    Node n = *ir_node(g, slot);
    uint32_t probe = add_probe(p, slot, PROBE_gradient, &n, of);
    g->probes.at[probe - 1].scale = scale;
    if (is_kept_before(p, of)) continue;
    Value weight = param_at(p, &at, of, 0), copy = ir_unary(p->c, &at, OP_copy, weight);
    vec_push(p->c->arena, &p->weights, ((Weight){of, (uint32_t)attr_int(norm, "optimizer"), copy}));
  }
}

/* At the end of the body: measures how much each weight has changed. */
static void look_after_step(Looking *p, const Node *last)
{
  Cursor at = ir_cursor_at(last, WHY_state);
  for (uint32_t i = 0; i < p->weights.n; i++) {
    const Weight *w = &p->weights.at[i];
    Value now = param_at(p, &at, w->param, 1);
    Value change = ir_binary(p->c, &at, op_named("sub"), now, w->before);
    Node n = *ir_node(p->c->graph, change);
    uint32_t probe = add_probe(p, change, PROBE_update, &n, w->param);
    p->c->graph->probes.at[probe - 1].optimizer = w->optimizer;
  }
  p->weights.n = 0;
}

/* ---- the pass ---- */

static void look(Looking *p, uint32_t id)
{
  const Graph *g = p->c->graph;
  const Node *old = &p->r.old[id];
  if (!old->loop) look_at_stacked(p);
  /* With one member, norms.c measures the gradients of a group again. */
  bool again = g->members <= 1 && old->op == OP_grad_norm && attr_int(old, "of") >= 0;
  if (old->op == OP_grad_norm && !again) look_before_step(p, old);
  if (op_has(old, T_ends_body)) look_after_step(p, old);
  uint32_t to = ir_rewrite_copy(&p->r, id).id;
  if (ir_parameter(g, old)) {
    look_at_weight(p, id);
  } else if (is_working_copy(g, (Value){to})) {
    p->probe[id] = p->probe[old->in[0].id];
  } else if (old->op == OP_carry) {
    p->probe[id] = 0; /* its input is only the initial value */
  } else if (old->n_in && only_moves(old, &p->r.old[old->in[0].id])) {
    p->probe[id] = p->probe[old->in[old->op == OP_next].id];
  } else if (is_value(g, to)) {
    if (old->loop)
      vec_push(p->c->arena, &p->stacked, id);
    else
      look_at(p, id, p->r.map[id]);
  }
}

bool pass_probe(Compile *c)
{
  Graph *g = c->graph;
  Looking p = {.c = c};
  if (!c->options.probe_every) return true;
  ir_rewrite_begin(&p.r, c);
  p.probe = arena_array(c->arena, uint32_t, p.r.n_old);
  p.weight = arena_array(c->arena, uint32_t, g->params.n + 1);
  uint32_t block = UINT32_MAX;
  for (uint32_t id = 1; id < p.r.n_old; id++) {
    const Node *n = &p.r.old[id];
    if (n->block != block) memset(p.weight, 0, g->params.n * sizeof *p.weight);
    block = n->block;
    if (is_looked_at(g, block, c->options.probe_every))
      look(&p, id);
    else
      ir_rewrite_copy(&p.r, id);
  }
  return true;
}
