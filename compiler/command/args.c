/* The arguments of kernels: see args.h. */
#include "command_parts.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/own.h"
#include "compiler/graph/shares.h"
#include "ampc_state.h"

/* Collects the arguments of one kernel. */
typedef struct ArgBuild {
  Compile *c;
  VEC(KernelArg) args;
} ArgBuild;

static bool same(const KernelArg *a, const KernelArg *b)
{
  if (a->value.id || b->value.id)
    return a->value.id == b->value.id || (a->over.id && a->over.id == b->value.id);
  return a->role == b->role && a->place.space == b->place.space &&
         a->place.offset == b->place.offset;
}

uint32_t same_argument(const KernelArgs *args, const KernelArg *a)
{
  uint32_t i = 0;
  while (i < args->n && !same(&args->at[i], a)) i++;
  return i;
}

/* Adds an argument unless the list contains it: several parts of a launch may take it. */
static void add_argument(ArgBuild *b, KernelArg a)
{
  KernelArgs have = {b->args.at, b->args.n};
  uint32_t at = same_argument(&have, &a);
  if (at == have.n)
    vec_push(b->c->arena, &b->args, a);
  else
    have.at[at].only_read &= a.only_read;
}

static void add(ArgBuild *b, ArgRole role, Value v, DType type, ampc_space space, int64_t offset)
{
  add_argument(b, (KernelArg){.role = role, .value = v, .type = type, .place = {space, offset}});
}

/* Adds the pointer to the bytes of v, once for all its readers. Literals are printed in the kernel
 * text and have no pointer. */
static void add_value(ArgBuild *b, ArgRole role, Value v)
{
  const Graph *g = b->c->graph;
  v = value_root(g, v);
  const Node *n = ir_node(g, v);
  if (!v.id || op_has(n, T_literal)) return;
  for (uint32_t i = 0; i < b->args.n; i++) {
    if (b->args.at[i].value.id == v.id) return;
  }
  vec_push(b->c->arena, &b->args,
           (KernelArg){.role = role, .value = v, .type = n->dtype, .place = n->place});
}

/* Adds a result. If the result overwrites an input (Node.over), the list already contains that
 * pointer. It becomes the pointer of the result, and the kernel reads and writes through it. */
static void add_result(ArgBuild *b, Value v)
{
  const Node *n = ir_node(b->c->graph, v);
  for (uint32_t i = 0; i < b->args.n && n->over.id; i++) {
    KernelArg *a = &b->args.at[i];
    if (a->value.id != n->over.id) continue;
    a->role = ARG_out;
    a->value = v;
    a->over = n->over;
    return;
  }
  add_value(b, ARG_out, v);
}

/* Returns the size of an f32 element in bytes: 8 under Note [real64]. */
static int64_t float_bytes(const Compile *c)
{
  return ir_dtype_size(c, AMPC_F32);
}

static void add_state(ArgBuild *b, bool only_read)
{
  add_argument(
      b, (KernelArg){
             .role = ARG_state, .type = AMPC_U8, .place = {AMPC_STATE, 0}, .only_read = only_read});
}

/* Random numbers depend on the seed and the step in STATE and on a stream. The stream is an
 * argument, not a literal, so that layers of the same shape share a kernel. */
static void add_random(ArgBuild *b, const Node *n)
{
  if (!op_draws(n)) return;
  add_state(b, true);
  add_argument(b,
               (KernelArg){.role = ARG_stream, .type = AMPC_I32, .place = {AMPC_NONE, n->stream}});
}

/* Adds the optimizer's entry of STATE. STATE is an ampc_state, an ampc_optimizer for each
 * optimizer, an ampc_metric for each metric, then the settings: ampc_state.h. */
static void add_optimizer(ArgBuild *b, int64_t index, bool only_read)
{
  int64_t offset = ampc_state_optimizer((uint32_t)index);
  add_argument(b, (KernelArg){.role = ARG_optimizer,
                              .index = (uint32_t)index,
                              .type = AMPC_U8,
                              .place = {AMPC_STATE, offset},
                              .only_read = only_read});
}

/* True if forward reads the weights in this type. Only then does the update write such copies. */
static bool copies_in_use(const Graph *g, int optimizer, DType type)
{
  for (uint32_t i = 0; i < g->params.n; i++) {
    const Parameter *p = &g->params.at[i];
    const Parameter *weight = share_weight(g, p);
    if (p->optimizer == optimizer && weight->copies >> type & 1) return true;
  }
  return false;
}

/* Adds a buffer and, if a step has several bodies, the place for its value before the first
 * body. */
static void add_buffer(ArgBuild *b, const Node *n)
{
  const Graph *g = b->c->graph;
  int64_t param = attr_int(n, "param");
  const Parameter *p = &g->params.at[param];
  KernelArg buffer = {.role = ARG_buffer,
                      .index = (uint32_t)param,
                      .type = p->dtype,
                      .place = {param_space(p), p->offset}};
  KernelArg kept = buffer;
  kept.role = ARG_kept;
  kept.place.space = AMPC_KEPT;
  add_argument(b, buffer);
  bool once = op_has(n, T_assigns) && attr_int(n, "once");
  if (g->blocks.at[n->block].accumulate > 1 && !once) add_argument(b, kept);
}

/* Returns the first stream of the group's random numbers. Each member that updates a slice has its
 * own, so they do not depend on the number of processes. Streams of ops in the job begin at 0;
 * bit 30 is for the second word of an element. */
static int64_t update_stream(const Graph *g, const Node *n)
{
  int64_t at = attr_int(n, "group"), optimizer = attr_int(n, "optimizer");
  for (int64_t i = 0; i < optimizer; i++) at += g->optimizers.at[i].groups.n;
  return (int64_t)1 << 31 | at * (g->members > 1 ? g->members : 1);
}

/* Adds the range of the group in each space that an update kernel uses. Gradients
 * and moments have one numbering (`first`); weights, averages and 16-bit copies have another
 * (`master`). They differ only for shares. If an update has two kernels, the first updates the
 * moments. The second updates the weights, the averages and the copies. */
static void add_ranges(ArgBuild *b, const Node *n, FileArg which)
{
  const bool moments = which != FILE_weights, weights = which != FILE_moments;
  const Graph *g = b->c->graph;
  int64_t index = attr_int(n, "optimizer");
  const Optimizer *o = &g->optimizers.at[index];
  const ParamGroup *own = &o->groups.at[attr_int(n, "group")];
  int64_t at = own->moment * ir_dtype_size(b->c, g->moment_type);
  int64_t master = own->master * ir_dtype_size(b->c, g->weights);
  add(b, ARG_grad, (Value){0}, AMPC_F32, AMPC_GRAD, own->first * float_bytes(b->c));
  add_argument(b, (KernelArg){.role = ARG_master,
                              .type = g->weights,
                              .place = {AMPC_MASTER, master},
                              .only_read = !weights});
  if (g->rounds == ROUND_kahan)
    add_argument(b, (KernelArg){.role = ARG_residue,
                                .type = AMPC_BF16,
                                .place = {AMPC_RESIDUE, master},
                                .only_read = !weights});
  for (uint32_t i = 0; moments && i < MAX_MOMENTS; i++) {
    if (!(own->moments >> i & 1)) continue;
    add(b, ARG_moment1 + i, (Value){0}, g->moment_type, AMPC_MOMENT1 + i, at);
    if (g->moment_type == AMPC_U8)
      add(b, ARG_scale1 + i, (Value){0}, AMPC_F32, AMPC_SCALE1 + i,
          at / AMPC_CODE_BLOCK * float_bytes(b->c));
  }
  if (weights && o->ema)
    add(b, ARG_ema, (Value){0}, AMPC_F32, AMPC_EMA, own->master * float_bytes(b->c));
  for (DType d = 0; weights && d < AMPC_DTYPE_COUNT; d++)
    if (copies_in_use(g, (int)index, d))
      add(b, ARG_copy, (Value){0}, d, ampc_type_of(d)->copies, own->master * ampc_dtype_size(d));
  if (!update_words(g, n)) return;
  add_state(b, true);
  add_argument(
      b,
      (KernelArg){.role = ARG_stream, .type = AMPC_I32, .place = {AMPC_NONE, update_stream(g, n)}});
}

static void add_metric(ArgBuild *b, int64_t index)
{
  const Graph *g = b->c->graph;
  int64_t offset = ampc_state_metric(g->optimizers.n, ir_metric_slots(g, (uint32_t)index));
  add_argument(b, (KernelArg){.role = ARG_metric,
                              .index = (uint32_t)index,
                              .type = AMPC_U8,
                              .place = {AMPC_STATE, offset}});
}

static void add_gradients(ArgBuild *b, const Node *n)
{
  const Optimizer *o = &b->c->graph->optimizers.at[attr_int(n, "optimizer")];
  int64_t of = attr_int(n, "of"), first = of < 0 ? o->first : o->groups.at[of].first;
  add(b, ARG_grad, (Value){0}, AMPC_F32, AMPC_GRAD, first * float_bytes(b->c));
}

/* True if the kernel of `n` computes v itself. */
static bool is_of_part(const Graph *g, const Node *n, Value v)
{
  const Node *root = ir_node(g, value_root(g, v));
  return root->group == n->group && root->part == n->part;
}

/* Adds the values that the part reads and does not compute. */
static void add_inputs(ArgBuild *b, const Group *p)
{
  const Graph *g = b->c->graph;
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(g, p->nodes[i]);
    for (uint32_t k = 0; k < n->n_in; k++)
      if (!is_of_part(g, n, n->in[k])) add_value(b, ARG_in, n->in[k]);
  }
}

static void add_outputs(ArgBuild *b, const Group *p)
{
  for (uint32_t i = 0; i < p->n; i++)
    if (ir_node(b->c->graph, p->nodes[i])->place.space != AMPC_NONE) add_result(b, p->nodes[i]);
}

static void add_file_arg(ArgBuild *b, const Group *p, FileArg arg)
{
  Value v = p->anchor;
  const Node *n = ir_node(b->c->graph, v);
  switch (arg) {
  case FILE_inputs:
    add_inputs(b, p);
    break;
  case FILE_out:
    add_outputs(b, p);
    break;
  case FILE_state:
  case FILE_const_state:
    add_state(b, arg == FILE_const_state);
    break;
  case FILE_metric:
    add_metric(b, attr_int(n, "metric"));
    break;
  case FILE_optimizer:
  case FILE_const_optimizer:
    add_optimizer(b, attr_int(n, "optimizer"), arg == FILE_const_optimizer);
    break;
  case FILE_buffer:
    add_buffer(b, n);
    break;
  case FILE_grad:
    add_gradients(b, n);
    break;
  case FILE_ranges:
  case FILE_moments:
  case FILE_weights:
    add_ranges(b, n, arg);
    break;
  case FILE_random:
    add_random(b, n);
    break;
  case FILE_group_grad:
  case FILE_group_weights: /* members exchange them; no kernel takes them */
    break;
  }
}

/* Adds the arguments of a file op, in the order in which its code in ops.def lists them. */
static void file_args(ArgBuild *b, const Group *p)
{
  const OpInfo *op = op_of(ir_node(b->c->graph, p->anchor));
  for (uint32_t i = 0; i < op->n_file_args; i++) add_file_arg(b, p, op->file_args[i]);
}

/* Adds the arguments of an own op: inputs, results, scratch. */
static void own_args(ArgBuild *b, const Group *p)
{
  const OwnOp *own = own_of(ir_node(b->c->graph, p->anchor));
  add_inputs(b, p);
  for (uint32_t i = 0; i < own->n_outputs; i++)
    add_value(b, ARG_out, own_tensor(b->c->graph, p, own->n_inputs + i));
  if (own_scratch(b->c, p) > 0)
    add_argument(b, (KernelArg){.role = ARG_scratch, .type = AMPC_F32, .place = p->workspace});
}

/* Adds the arguments of a part. File ops and own ops have their own lists. All others take values
 * from outside, results with a place (other results stay in registers), slots of gradients, and
 * STATE and streams of random numbers, in this order. */
static void add_part(ArgBuild *b, const Group *p)
{
  const Graph *g = b->c->graph;
  OpTemplate tmpl = p->anchor.id ? op_of(ir_node(g, p->anchor))->tmpl : TMPL_map;
  if (tmpl == TMPL_file || tmpl == TMPL_exchange) {
    file_args(b, p);
    return;
  }
  if (p->anchor.id && own_of(ir_node(g, p->anchor))) {
    own_args(b, p);
    return;
  }
  add_inputs(b, p);
  add_outputs(b, p);
  for (uint32_t i = 0; i < p->n; i++) {
    int64_t param = ir_adds_to(ir_node(g, p->nodes[i]));
    if (param >= 0)
      add(b, ARG_grad, p->nodes[i], AMPC_F32, AMPC_GRAD,
          g->params.at[param].offset * float_bytes(b->c));
  }
  for (uint32_t i = 0; i < p->n; i++) add_random(b, ir_node(g, p->nodes[i]));
}

KernelArgs part_args(Compile *c, const Group *part)
{
  ArgBuild b = {.c = c};
  add_part(&b, part);
  return (KernelArgs){b.args.at, b.args.n};
}

KernelArgs launch_args(Compile *c, const Group *p)
{
  ArgBuild b = {.c = c};
  for (uint32_t i = 0; i < p->n_parts; i++) add_part(&b, &p->parts[i]);
  if (p->last < p->n_parts) add_state(&b, false); /* STATE counts the blocks that have finished */
  return (KernelArgs){b.args.at, b.args.n};
}
