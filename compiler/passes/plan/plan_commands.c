/* Writes groups as commands of the plan. */
#include "plan.h"
#include "compiler/graph/optimizers.h"

/* A convolution in columns always takes two pointers: images and columns. */
void plan_kernels(Compile *c, ampc_program *p)
{
  const Graph *g = c->graph;
  ampc_kernel *out = arena_array(c->arena, ampc_kernel, g->groups.n + 1);
  for (uint32_t i = 1; i < g->groups.n; i++) {
    const Command *k = command_of(g, i);
    if (!command_owns_kernel(g, i)) continue;
    out[p->n_kernels++] = (ampc_kernel){.name = k->kernel_name, .n_args = k->n_args};
  }
  p->kernels = out;
}

/* Returns the bytes from the slice of one member to that of the next, for an argument that is the
 * range of a group, or 1 for the stream of the random numbers of an update; 0: the argument is no
 * such range, or the members have no slices. */
static int64_t slice_stride(Compile *c, const Node *n, const KernelArg *a)
{
  const Graph *g = c->graph;
  bool stream = a->role == ARG_stream; /* of an update: node_range() is -1 for other ops */
  bool sliced = a->role == ARG_grad || a->role == ARG_master || a->role == ARG_residue ||
                a->role == ARG_ema || a->role == ARG_copy || stream;
  if (g->members <= 1 || !sliced || node_range(g, n) < 0) return 0;
  const Optimizer *o = &g->optimizers.at[attr_int(n, "optimizer")];
  int64_t group = attr_int(n, op_takes(op_of(n), FILE_grad) ? "of" : "group");
  if (group < 0 || optimizer_slices(g, o) == 1) return 0;
  if (stream) return 1; /* the member's own stream: update_stream */
  return o->groups.at[group].slice * ir_dtype_size(c, a->type);
}

/* Whether the kernel updates weights, which the members of a process share, as a whole. */
static bool runs_once(Compile *c, const Node *n)
{
  const Graph *g = c->graph;
  bool updates = op_takes(op_of(n), FILE_ranges) || op_takes(op_of(n), FILE_weights);
  return g->members > 1 && updates &&
         optimizer_slices(g, &g->optimizers.at[attr_int(n, "optimizer")]) == 1;
}

static ampc_command launch_command(Compile *c, uint32_t group, uint32_t kernel)
{
  const Command *k = command_of(c->graph, group);
  const KernelArgs *args = &k->whole.args;
  ampc_operand *operands = arena_array(c->arena, ampc_operand, args->n + 1);
  const Node *anchor = ir_node(c->graph, c->graph->groups.at[group].anchor);
  for (uint32_t i = 0; i < args->n; i++) {
    const KernelArg *a = &args->at[i];
    operands[i] = (ampc_operand){a->place, slice_stride(c, anchor, a)};
    if (a->value.id && (a->role == ARG_in || a->role == ARG_out))
      operands[i] = value_operand(c, a->value, a->role == ARG_out);
    if (operands[i].at.space == AMPC_NONE && a->role != ARG_stream)
      ir_bug(c, "plan", a->value, "a kernel takes it, and it has no place in memory");
  }
  return (ampc_command){.kind = AMPC_LAUNCH_KERNEL,
                        .as.launch = {.kernel = kernel,
                                      .grid = k->whole.at.grid,
                                      .block = k->whole.at.block,
                                      .n_args = args->n,
                                      .args = operands,
                                      .library = k->library,
                                      .once = runs_once(c, anchor),
                                      .deferred = k->deferred}};
}

/* Returns the place of an operand of a library command. */
static ampc_operand library_operand(Compile *c, uint32_t group, uint32_t i)
{
  Value v = command_of(c->graph, group)->operands[i];
  return value_operand(c, value_root(c->graph, v), false);
}

static ampc_command gemm_command(Compile *c, uint32_t group)
{
  ampc_command out = {.kind = AMPC_GEMM, .as.gemm = {.desc = command_of(c->graph, group)->gemm}};
  out.as.gemm.a = library_operand(c, group, 0);
  out.as.gemm.b = library_operand(c, group, 1);
  out.as.gemm.bias = library_operand(c, group, 2);
  out.as.gemm.c = library_operand(c, group, 3);
  out.as.gemm.workspace.at = c->graph->groups.at[group].workspace;
  return out;
}

/* Returns the command of a convolution. desc.grid is not 0 if `kernel` makes its columns (CUDA). */
static ampc_command conv_command(Compile *c, uint32_t group, uint32_t kernel)
{
  const Command *k = command_of(c->graph, group);
  ampc_command out = {.kind = AMPC_CONV, .as.conv = {.desc = k->conv}};
  if (k->conv.grid) out.as.conv.desc.columns = kernel;
  out.as.conv.x = library_operand(c, group, 0);
  out.as.conv.w = library_operand(c, group, 1);
  out.as.conv.bias = library_operand(c, group, 2);
  out.as.conv.y = library_operand(c, group, 3);
  out.as.conv.workspace.at = c->graph->groups.at[group].workspace;
  return out;
}

/* Returns the command of a group. `kernel`: index of its kernel in the program's table, if any. */
static ampc_command group_command(Compile *c, uint32_t group, uint32_t kernel)
{
  CommandKind kind = command_of(c->graph, group)->kind;
  if (kind == COMMAND_kernel) return launch_command(c, group, kernel);
  return kind == COMMAND_conv ? conv_command(c, group, kernel) : gemm_command(c, group);
}

/* Lists the commands of a block; the commands of a loop are a list of their own. */
typedef struct Listing {
  Compile *c;
  uint32_t block;
  uint32_t *kernel; /* group -> its kernel in the program's table */
} Listing;

typedef VEC(ampc_command) Commands;

static ampc_command exchange_of(ampc_exchange_kind kind, ampc_space space, int64_t offset,
                                DType type, int64_t count, bool closing)
{
  ampc_command out = {.kind = AMPC_EXCHANGE};
  out.as.exchange.desc =
      (ampc_exchange){.kind = kind, .type = type, .count = count, .closing = closing};
  out.as.exchange.at.at = (ampc_ref){space, offset};
  return out;
}

static bool is_of_group(const ParamGroup *group, const Parameter *p)
{
  return !p->buffer && p->offset >= group->first && p->offset < group->first + group->count;
}

bool plan_reads_masters(const Compile *c, const ParamGroup *group)
{
  const Graph *g = c->graph;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (!n->group || g->blocks.at[n->block].kind == AMPC_INFER) continue;
    for (uint32_t i = 0; i < n->n_in; i++) {
      const Node *x = ir_node(g, value_root(g, n->in[i]));
      const Parameter *p = ir_parameter(g, x);
      if (p && x->place.space == AMPC_MASTER && is_of_group(group, p)) return true;
    }
  }
  return false;
}

/* Lists the gathers of the weights of a group, in each space that steps read. If each member has
 * updated all of them, only the gradients of the others remain to be cleared. */
static uint32_t gather_weights(Compile *c, const Optimizer *o, const ParamGroup *group,
                               ampc_command *out)
{
  const Graph *g = c->graph;
  uint32_t copies = 0, n = 0;
  int64_t f32 = ir_dtype_size(c, AMPC_F32);
  if (group->slice == group->count) {
    out[0] = exchange_of(AMPC_CLEAR, AMPC_GRAD, group->first * f32, AMPC_F32, group->count, true);
    return 1;
  }
  for (uint32_t i = 0; i < g->params.n; i++)
    if (is_of_group(group, &g->params.at[i])) copies |= g->params.at[i].copies;
  if (plan_reads_masters(c, group))
    out[n++] = exchange_of(AMPC_GATHER, AMPC_MASTER, group->master * ir_dtype_size(c, g->weights),
                           g->weights, group->count, true);
  if (o->ema)
    out[n++] =
        exchange_of(AMPC_GATHER, AMPC_EMA, group->master * f32, AMPC_F32, group->count, true);
  for (DType d = 0; d < AMPC_DTYPE_COUNT; d++)
    if (copies >> d & 1)
      out[n++] = exchange_of(AMPC_GATHER, ampc_type_of(d)->copies,
                             group->master * ampc_dtype_size(d), d, group->count, true);
  return n;
}

enum { MOST_EXCHANGES = 4 };

/* Lists what members exchange at a node. A value is first copied to the place of the result. */
static uint32_t exchanges_of(Compile *c, uint32_t group, ampc_command *out)
{
  const Graph *g = c->graph;
  Value v = g->groups.at[group].anchor;
  const Node *n = ir_node(g, v);
  const Optimizer *o = NULL;
  const ParamGroup *own = NULL;
  if (!n->n_in) {
    o = &g->optimizers.at[attr_int(n, "optimizer")];
    own = &o->groups.at[attr_int(n, "group")];
    if (op_takes(op_of(n), FILE_group_weights)) return gather_weights(c, o, own, out);
    ampc_exchange_kind kind = optimizer_slices(g, o) == 1 ? AMPC_SUM : AMPC_SLICE;
    out[0] = exchange_of(kind, AMPC_GRAD, own->first * ir_dtype_size(c, AMPC_F32), AMPC_F32,
                         own->count, true);
    out[0].as.exchange.desc.mode = g->exchange;
    return 1;
  }
  const Node *x = ir_in(c, n, 0);
  bool rows = ir_elements(x) != ir_elements(n);
  out[0] = (ampc_command){.kind = AMPC_COPY};
  out[0].as.copy.to = value_operand(c, v, true);
  if (rows) out[0].as.copy.to.stride = ir_bytes(c, x);
  out[0].as.copy.from = value_operand(c, value_root(g, n->in[0]), false);
  out[0].as.copy.bytes = ir_bytes(c, x);
  out[1] = exchange_of(rows ? AMPC_GATHER : AMPC_SUM, n->place.space, n->place.offset, n->dtype,
                       ir_elements(n), rows);
  return 2;
}

static void list_exchanges(const Listing *l, uint32_t group, Commands *out)
{
  Compile *c = l->c;
  ampc_command all[MOST_EXCHANGES];
  uint32_t n = exchanges_of(c, group, all);
  for (uint32_t i = 0; i < n; i++) {
    all[i].label = command_of(c->graph, group)->name;
    all[i].line = node_line(c, c->graph->groups.at[group].nodes[0]);
    vec_push(c->arena, out, all[i]);
  }
}

/* Whether the command reads gradients that members may still exchange. */
static bool reads_slices(const Graph *g, uint32_t group, const Commands *before)
{
  const Node *n = ir_node(g, g->groups.at[group].anchor);
  if (g->members <= 1 || !op_takes(op_of(n), FILE_grad)) return false;
  for (uint32_t i = before->n; i > 0; i--) {
    const ampc_command *k = &before->at[i - 1];
    if (k->kind == AMPC_EXCHANGE && k->as.exchange.desc.kind == AMPC_SLICE) return true;
    if (k->kind == AMPC_EXCHANGE && k->as.exchange.desc.kind == AMPC_JOIN) return false;
  }
  return false;
}

static void list_command(const Listing *l, uint32_t group, Commands *out)
{
  Compile *c = l->c;
  const Group *p = &c->graph->groups.at[group];
  if (command_of(c->graph, group)->kind == COMMAND_exchange) {
    list_exchanges(l, group, out);
    return;
  }
  if (reads_slices(c->graph, group, out)) {
    ampc_command join = exchange_of(AMPC_JOIN, AMPC_NONE, 0, AMPC_F32, 0, true);
    join.label = "join";
    vec_push(c->arena, out, join);
  }
  ampc_command command = group_command(c, group, l->kernel[group]);
  command.label = command_of(c->graph, group)->name;
  command.line = node_line(c, p->nodes[p->n - 1]);
  if (command.kind == AMPC_GEMM) command.as.gemm.desc.line = command.line;
  if (command.kind == AMPC_CONV) command.as.conv.desc.line = command.line;
  vec_push(c->arena, out, command);
}

static bool gathers_weights(const ampc_command *k)
{
  return k->kind == AMPC_EXCHANGE && k->as.exchange.desc.kind == AMPC_GATHER &&
         k->as.exchange.at.at.space != AMPC_WORK;
}

/* Makes one row of the weights' gathers that follow each other. */
static void join_gathers(Commands *list)
{
  for (uint32_t i = 0; i + 1 < list->n; i++)
    if (gathers_weights(&list->at[i]) && gathers_weights(&list->at[i + 1]))
      list->at[i].as.exchange.desc.kind = AMPC_GATHER_WITH_NEXT;
}

/* Lists the groups from `first` on, up to the end of their loop. Returns the group after that
 * end. */
static uint32_t list_groups(const Listing *l, uint32_t first, Commands *out)
{
  Compile *c = l->c;
  const Graph *g = c->graph;
  uint32_t i = first;
  while (i < g->groups.n) {
    const Group *group = &g->groups.at[i];
    const Node *n = ir_node(g, group->nodes[group->n - 1]);
    uint32_t own = i++;
    if (n->block != l->block) continue;
    if (ir_ends_loop(n)) break;
    if (!ir_begins_loop(n)) {
      if (command_of(g, own)->kind) list_command(l, own, out);
      continue;
    }
    Commands body = {0};
    i = list_groups(l, i, &body);
    ampc_command repeat = {.kind = AMPC_REPEAT,
                           .label = command_of(g, own)->name,
                           .line = node_line(c, group->nodes[0])};
    repeat.as.repeat.count = g->loops.at[ir_begins_loop(n)].count;
    repeat.as.repeat.commands = body.at;
    repeat.as.repeat.n_commands = body.n;
    vec_push(c->arena, out, repeat);
  }
  return i;
}

/* Groups are in the order of execution. Kernels are numbered over all blocks, so the groups of
 * other blocks count too. */
const ampc_command *plan_commands(Compile *c, uint32_t block, uint32_t *out_n)
{
  const Graph *g = c->graph;
  Listing l = {.c = c, .block = block, .kernel = arena_array(c->arena, uint32_t, g->groups.n)};
  uint32_t n_kernels = 0;
  for (uint32_t i = 1; i < g->groups.n; i++)
    l.kernel[i] = command_owns_kernel(g, i) ? n_kernels++ : l.kernel[command_of(g, i)->kernel];
  Commands out = {0};
  list_groups(&l, 1, &out);
  join_gathers(&out);
  *out_n = out.n;
  return c->options.poison ? poison_commands(c, block, out.at, out_n) : out.at;
}
