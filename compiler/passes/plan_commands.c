/* Groups as commands of the plan. */
#include "plan.h"
#include "memory_use.h"

/* A convolution in columns takes two pointers whatever its group reads: images and columns. */
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

/* Arguments, grid and block come from command/, which the emitter asks too: call and kernel
 * agree. */
static ampc_command launch_command(Compile *c, uint32_t group, uint32_t kernel)
{
  KernelArgs args = kernel_args(c, group);
  Geometry shape = kernel_geometry(c, group);
  ampc_operand *operands = arena_array(c->arena, ampc_operand, args.n + 1);
  for (uint32_t i = 0; i < args.n; i++) operands[i].at = args.at[i].place;
  return (ampc_command){.kind = AMPC_LAUNCH_KERNEL,
                        .as.launch = {.kernel = kernel,
                                      .grid = shape.grid,
                                      .block = shape.block,
                                      .n_args = args.n,
                                      .args = operands}};
}

static ampc_operand operand_of(const Graph *g, Value v)
{
  return (ampc_operand){.at = v.id ? ir_node(g, v)->place : (ampc_ref){AMPC_NONE, 0}};
}

static ampc_command gemm_command(Compile *c, uint32_t group)
{
  const Graph *g = c->graph;
  Product p = product_of(c, group);
  ampc_command out = {.kind = AMPC_GEMM, .as.gemm = {.desc = p.desc}};
  out.as.gemm.a = operand_of(g, p.a);
  out.as.gemm.b = operand_of(g, p.b);
  out.as.gemm.bias = operand_of(g, p.bias);
  out.as.gemm.c = operand_of(g, p.c);
  out.as.gemm.workspace.at = g->groups.at[group].workspace;
  return out;
}

/* On CUDA the library multiplies columns that a kernel of the program makes: desc.grid is not 0
 * then. */
static ampc_command conv_command(Compile *c, uint32_t group, uint32_t kernel)
{
  const Graph *g = c->graph;
  Convolution p = convolution_of(c, group);
  ampc_command out = {.kind = AMPC_CONV, .as.conv = {.desc = p.desc}};
  if (p.desc.grid) out.as.conv.desc.columns = kernel;
  out.as.conv.x = operand_of(g, p.x);
  out.as.conv.w = operand_of(g, p.w);
  out.as.conv.bias = operand_of(g, p.bias);
  out.as.conv.y = operand_of(g, p.y);
  out.as.conv.workspace.at = g->groups.at[group].workspace;
  return out;
}

/* `kernel`: index of the group's kernel in the program's table, if it has one. */
static ampc_command group_command(Compile *c, uint32_t group, uint32_t kernel)
{
  const Graph *g = c->graph;
  if (!group_by_library(g, group)) return launch_command(c, group, kernel);
  OpTemplate tmpl = op_of(ir_node(g, g->groups.at[group].anchor))->tmpl;
  return tmpl == TMPL_conv ? conv_command(c, group, kernel) : gemm_command(c, group);
}

/* Groups are in the order of execution. Kernels are numbered over all blocks, so the groups of
 * other blocks count as well. */
const ampc_command *plan_commands(Compile *c, uint32_t block, uint32_t *out_n)
{
  const Graph *g = c->graph;
  VEC(ampc_command) out = {0};
  uint32_t *kernel = arena_array(c->arena, uint32_t, g->groups.n), n_kernels = 0;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    const Group *group = &g->groups.at[i];
    kernel[i] = group_owns_kernel(c, i) ? n_kernels++ : kernel[group_kernel(g, i)];
    Value last = group->nodes[group->n - 1];
    if (ir_node(g, last)->block == block && !group_is_silent(g, i)) {
      ampc_command command = group_command(c, i, kernel[i]);
      command.label = command_name(c, i);
      command.line = node_line(c, last);
      if (command.kind == AMPC_GEMM) command.as.gemm.desc.line = command.line;
      if (command.kind == AMPC_CONV) command.as.conv.desc.line = command.line;
      vec_push(c->arena, &out, command);
    }
  }
  *out_n = out.n;
  return c->options.poison ? poison_commands(c, block, out.at, out_n) : out.at;
}
