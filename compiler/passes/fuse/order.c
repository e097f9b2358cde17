/* Part of pass fuse: the order of nodes that does not follow from operands.
 *
 * Effects change weights, gradients, buffers, metrics, the scale and the decisions of optimizers.
 * Other nodes read these without naming the effects. Each state that effects change is a *thing*
 * here. A reader of a thing comes after the last node that changed it. A node that changes the
 * thing comes after the previous change and after all readers since then. There is no order between
 * other nodes, such as an update of running statistics and one of weights. The words of a file op,
 * traits, and leaves among the inputs of an op determine what it reads and changes. */
#include "fuse.h"

/* Things of one block. From THING_first on: optimizers, metrics, parameters, slots of gradients. */
enum {
  THING_scale,   /* the loss scale, counters of steps, the seed */
  THING_verdict, /* flags for the host: overflow, a loss that is not finite */
  THING_meeting, /* exchanges: members with other shares run them in the same order */
  THING_first
};

typedef struct Thing {
  uint32_t changed;   /* the last node that changed the thing; 0: no node */
  VEC(uint32_t) seen; /* nodes that have read the thing since that change */
} Thing;

typedef struct Things {
  Compile *c;
  const Graph *g;
  Order *out;
  Thing *at;         /* things of all blocks */
  uint32_t n;        /* number of things of one block */
  uint32_t *adds_to; /* product -> 1 + the parameter to whose slot it may add; 0: no parameter */
} Things;

static uint32_t optimizer_thing(int64_t optimizer)
{
  return THING_first + (uint32_t)optimizer;
}

static uint32_t metric_thing(const Things *t, int64_t metric)
{
  return THING_first + t->g->optimizers.n + (uint32_t)metric;
}

static uint32_t param_thing(const Things *t, int64_t param)
{
  return THING_first + t->g->optimizers.n + t->g->metrics.n + (uint32_t)param;
}

static uint32_t slot_thing(const Things *t, int64_t param)
{
  return param_thing(t, param) + t->g->params.n;
}

static void must_follow(Things *t, uint32_t id, uint32_t before)
{
  if (!before || before == id) return;
  uint32_t last = t->out->first[id];
  if (last && t->out->edges.at[last].before == before) return;
  t->out->first[id] = t->out->edges.n;
  vec_push(t->c->arena, &t->out->edges, ((Edge){before, last}));
}

static Thing *thing_of(Things *t, uint32_t id, uint32_t thing)
{
  return &t->at[t->g->nodes.at[id].block * t->n + thing];
}

static void reads(Things *t, uint32_t id, uint32_t thing)
{
  Thing *at = thing_of(t, id, thing);
  must_follow(t, id, at->changed);
  vec_push(t->c->arena, &at->seen, id);
}

static void changes(Things *t, uint32_t id, uint32_t thing)
{
  Thing *at = thing_of(t, id, thing);
  must_follow(t, id, at->changed);
  for (uint32_t i = 0; i < at->seen.n; i++) must_follow(t, id, at->seen.at[i]);
  at->seen.n = 0;
  at->changed = id;
}

/* ---- what a node reads and changes ---- */

static void reads_leaf(Things *t, uint32_t id, Value input)
{
  Value root = value_root(t->g, input);
  const Node *n = ir_node(t->g, root);
  if (!root.id) return;
  if (is_working_copy(t->g, root)) n = ir_node(t->g, n->in[0]);
  if (ir_parameter(t->g, n)) reads(t, id, param_thing(t, attr_int(n, "index")));
  if (n->op == OP_gradient) reads(t, id, slot_thing(t, attr_int(n, "index")));
  if (n->op == OP_steps_taken) reads(t, id, optimizer_thing(attr_int(n, "optimizer")));
  if (n->op == OP_loss_scale || n->op == OP_step) reads(t, id, THING_scale);
}

typedef void Touch(Things *t, uint32_t id, uint32_t thing);

/* Touches the parameters of an optimizer, or of one of its groups; `group` -1: all groups. */
static void touch_params(Things *t, uint32_t id, int64_t group, Touch *weight, Touch *slot)
{
  const Graph *g = t->g;
  int64_t optimizer = attr_int(&g->nodes.at[id], "optimizer");
  for (uint32_t i = 0; i < g->params.n; i++) {
    const Parameter *p = &g->params.at[i];
    if (p->optimizer != optimizer || (group >= 0 && p->group != group)) continue;
    if (weight) weight(t, id, param_thing(t, p->of < 0 ? i : (uint32_t)p->of));
    slot(t, id, slot_thing(t, i));
  }
}

/* Touches the state of the step. A metric affects it only if it is the loss. */
static void touch_state(Things *t, uint32_t id)
{
  const Node *n = &t->g->nodes.at[id];
  if (n->op == OP_metric && !t->g->metrics.at[attr_int(n, "metric")].is_loss) return;
  if (op_has(n, T_ends_body))
    changes(t, id, THING_scale);
  else
    reads(t, id, THING_scale);
  changes(t, id, THING_verdict);
}

/* An update writes the learning rate to the state of its optimizer, for people. No node in a step
 * reads it, so the update only touches the decision, as a reader. */
static void touch_optimizer(Things *t, uint32_t id)
{
  const Node *n = &t->g->nodes.at[id];
  uint32_t thing = optimizer_thing(attr_int(n, "optimizer"));
  bool decides = node_range(t->g, n) < 0;
  (decides ? changes : reads)(t, id, thing);
}

static void touch_argument(Things *t, uint32_t id, FileArg arg)
{
  const Node *n = &t->g->nodes.at[id];
  switch (arg) {
  case FILE_inputs:
  case FILE_out:
  case FILE_random: /* touch() handles it */
    break;
  case FILE_state:
    touch_state(t, id);
    break;
  case FILE_const_state:
    reads(t, id, THING_scale);
    break;
  case FILE_metric:
    changes(t, id, metric_thing(t, attr_int(n, "metric")));
    break;
  case FILE_optimizer:
    touch_optimizer(t, id);
    break;
  case FILE_const_optimizer:
    reads(t, id, optimizer_thing(attr_int(n, "optimizer")));
    break;
  case FILE_buffer:
    changes(t, id, param_thing(t, attr_int(n, "param")));
    break;
  case FILE_grad:
    touch_params(t, id, attr_int(n, "of"), NULL, op_has(n, T_partials) ? reads : changes);
    break;
  case FILE_group_grad:
    touch_params(t, id, attr_int(n, "group"), NULL, changes);
    break;
  case FILE_moments: /* no other node uses the moments */
    touch_params(t, id, attr_int(n, "group"), reads, changes);
    break;
  case FILE_ranges:
  case FILE_weights:
  case FILE_group_weights:
    touch_params(t, id, attr_int(n, "group"), changes, changes);
    break;
  }
}

static void touch(Things *t, uint32_t id)
{
  const Node *n = &t->g->nodes.at[id];
  const OpInfo *op = op_of(n);
  for (uint32_t i = 0; i < n->n_in; i++) reads_leaf(t, id, n->in[i]);
  if (op_draws(n)) reads(t, id, THING_scale);
  if (op->tmpl == TMPL_exchange) changes(t, id, THING_meeting);
  /* Members of a process share weights. The first member updates its slice after the exchange, so
   * each member reads what it assigns before the exchange. */
  if (n->op == OP_copy || op_has(n, T_assigns)) reads(t, id, THING_meeting);
  if (ir_adds_to(n) >= 0) changes(t, id, slot_thing(t, ir_adds_to(n)));
  if (t->adds_to[id]) changes(t, id, slot_thing(t, t->adds_to[id] - 1));
  for (uint32_t i = 0; i < op->n_file_args; i++) touch_argument(t, id, op->file_args[i]);
}

/* Orders a clone of pass recompute after the gradient in Node.after. */
static void waits(Things *t, uint32_t id)
{
  uint32_t after = value_root(t->g, t->g->nodes.at[id].after).id;
  if (after && fuse_has_command(t->g, after)) must_follow(t, id, after);
}

/* Fills adds_to. If pass memory decides so, a product adds to the slot itself, and the
 * grad_accumulate that reads it does nothing. So the product takes the order of that node. */
static void find_products(Things *t)
{
  for (uint32_t id = 1; id < t->g->nodes.n; id++) {
    const Node *n = &t->g->nodes.at[id];
    if (ir_adds_to(n) < 0) continue;
    Value root = value_root(t->g, n->in[0]);
    if (op_may_add(op_of(ir_node(t->g, root)))) t->adds_to[root.id] = (uint32_t)ir_adds_to(n) + 1;
  }
}

/* ---- loops ---- */

/* Orders the `scan` of a loop, which all nodes of the loop follow, after all outside nodes that
 * these must follow. A carried value is overwritten after all its readers. */
static void order_loops(Things *t)
{
  const Graph *g = t->g;
  uint32_t *begin = arena_array(t->c->arena, uint32_t, g->loops.n);
  const Value *next = ir_nexts(t->c);
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    begin[ir_begins_loop(n)] = id;
    if (!n->loop || !fuse_has_command(g, id)) continue;
    for (uint32_t e = t->out->first[id]; e; e = t->out->edges.at[e].next)
      for (uint16_t loop = n->loop; loop; loop = g->loops.at[loop].parent)
        if (!ir_loop_within(g, g->nodes.at[t->out->edges.at[e].before].loop, loop))
          must_follow(t, begin[loop], t->out->edges.at[e].before);
    must_follow(t, id, begin[n->loop]);
    for (uint32_t i = 0; i < n->n_in; i++) {
      uint32_t x = value_root(g, n->in[i]).id, to = next[x].id;
      if (to && to != id && ir_loop_within(g, n->loop, g->nodes.at[to].loop))
        must_follow(t, to, id);
    }
  }
}

void order_effects(Compile *c, Order *out)
{
  const Graph *g = c->graph;
  Things t = {.c = c, .g = g, .out = out};
  t.n = THING_first + g->optimizers.n + g->metrics.n + 2 * g->params.n;
  t.at = arena_array(c->arena, Thing, ((size_t)g->blocks.n + 1) * t.n);
  t.adds_to = arena_array(c->arena, uint32_t, g->nodes.n);
  out->first = arena_array(c->arena, uint32_t, g->nodes.n);
  out->edges.n = 0;
  vec_push(c->arena, &out->edges, (Edge){0});
  find_products(&t);
  for (uint32_t id = 1; id < g->nodes.n; id++)
    if (fuse_has_command(g, id)) touch(&t, id), waits(&t, id);
  if (g->loops.n > 1) order_loops(&t);
}
