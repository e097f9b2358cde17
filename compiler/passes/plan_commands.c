/* Writes groups as commands of the plan. */
#include "plan.h"
#include "memory_use.h"

/* A convolution in columns always takes two pointers: images and columns. */
void plan_kernels(Compile *c, ampc_program *p)
{
  const Graph *g = c->graph;
  ampc_kernel *out = arena_array(c->arena, ampc_kernel, g->groups.n + 1);
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!group_owns_kernel(c, i)) continue;
    uint32_t n_args = group_n_args(c, i);
    out[p->n_kernels++] = (ampc_kernel){.name = kernel_name(c, i), .n_args = n_args};
  }
  p->kernels = out;
}

/* Arguments, grid and block come from command/, as in the emitter, so call and kernel agree. */
static ampc_command launch_command(Compile *c, uint32_t group, uint32_t kernel)
{
  KernelArgs args = kernel_args(c, group);
  Geometry shape = kernel_geometry(c, group);
  const char *why;
  ampc_operand *operands = arena_array(c->arena, ampc_operand, args.n + 1);
  for (uint32_t i = 0; i < args.n; i++) {
    const KernelArg *a = &args.at[i];
    operands[i].at = a->place;
    if (a->value.id && (a->role == ARG_in || a->role == ARG_out))
      operands[i] = value_operand(c, a->value, a->role == ARG_out);
    if (operands[i].at.space == AMPC_NONE && a->role != ARG_stream)
      ir_bug(c, "plan", a->value, "a kernel takes it, and it has no place in memory");
  }
  return (ampc_command){.kind = AMPC_LAUNCH_KERNEL,
                        .as.launch = {.kernel = kernel,
                                      .grid = shape.grid,
                                      .block = shape.block,
                                      .n_args = args.n,
                                      .args = operands,
                                      .library = launch_for_library(c, group, &why),
                                      .deferred = launch_is_deferred(c, group)}};
}

static ampc_command gemm_command(Compile *c, uint32_t group)
{
  const Graph *g = c->graph;
  Product p = product_of(c, group);
  ampc_command out = {.kind = AMPC_GEMM, .as.gemm = {.desc = p.desc}};
  out.as.gemm.a = value_operand(c, value_root(g, p.a), false);
  out.as.gemm.b = value_operand(c, value_root(g, p.b), false);
  out.as.gemm.bias = value_operand(c, value_root(g, p.bias), false);
  out.as.gemm.c = value_operand(c, value_root(g, p.c), false);
  out.as.gemm.workspace.at = g->groups.at[group].workspace;
  return out;
}

/* Returns the command of a convolution. desc.grid is not 0 if `kernel` makes its columns (CUDA). */
static ampc_command conv_command(Compile *c, uint32_t group, uint32_t kernel)
{
  const Graph *g = c->graph;
  Convolution p = convolution_of(c, group);
  ampc_command out = {.kind = AMPC_CONV, .as.conv = {.desc = p.desc}};
  if (p.desc.grid) out.as.conv.desc.columns = kernel;
  out.as.conv.x = value_operand(c, value_root(g, p.x), false);
  out.as.conv.w = value_operand(c, value_root(g, p.w), false);
  out.as.conv.bias = value_operand(c, value_root(g, p.bias), false);
  out.as.conv.y = value_operand(c, value_root(g, p.y), false);
  out.as.conv.workspace.at = g->groups.at[group].workspace;
  return out;
}

/* Returns the command of a group. `kernel`: index of its kernel in the program's table, if any. */
static ampc_command group_command(Compile *c, uint32_t group, uint32_t kernel)
{
  const Graph *g = c->graph;
  if (!group_by_library(g, group)) return launch_command(c, group, kernel);
  return group_convolves(g, group) ? conv_command(c, group, kernel) : gemm_command(c, group);
}

/* Lists the commands of a block; the commands of a loop are a list of their own. */
typedef struct Listing {
  Compile *c;
  uint32_t block;
  uint32_t *kernel; /* group -> its kernel in the program's table */
} Listing;

typedef VEC(ampc_command) Commands;

static void list_command(const Listing *l, uint32_t group, Commands *out)
{
  Compile *c = l->c;
  const Group *p = &c->graph->groups.at[group];
  ampc_command command = group_command(c, group, l->kernel[group]);
  command.label = command_name(c, group);
  command.line = node_line(c, p->nodes[p->n - 1]);
  if (command.kind == AMPC_GEMM) command.as.gemm.desc.line = command.line;
  if (command.kind == AMPC_CONV) command.as.conv.desc.line = command.line;
  vec_push(c->arena, out, command);
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
      if (!group_is_silent(g, own)) list_command(l, own, out);
      continue;
    }
    Commands body = {0};
    i = list_groups(l, i, &body);
    ampc_command repeat = {
        .kind = AMPC_REPEAT, .label = command_name(c, own), .line = node_line(c, group->nodes[0])};
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
    l.kernel[i] = group_owns_kernel(c, i) ? n_kernels++ : l.kernel[group_kernel(g, i)];
  Commands out = {0};
  list_groups(&l, 1, &out);
  *out_n = out.n;
  return c->options.poison ? poison_commands(c, block, out.at, out_n) : out.at;
}
