/* Makes the commands of a graph: see command.h. */
#include "command_parts.h"
#include "compiler/graph/own.h"
#include "runtime/plan/conv_columns.h"

/* A grad_accumulate has no command if pass memory has placed its input, a product, in the slot. */
static bool is_silent(const Graph *g, const Node *last)
{
  if (op_of(last)->tmpl == TMPL_loop) return true;
  if (ir_adds_to(last) < 0) return false;
  return ir_node(g, value_root(g, last->in[0]))->place.space == AMPC_GRAD;
}

static CommandKind kind_of(const Graph *g, const Group *p)
{
  if (is_silent(g, ir_node(g, p->nodes[p->n - 1]))) return COMMAND_none;
  if (!p->anchor.id) return COMMAND_kernel;
  const OpInfo *op = op_of(ir_node(g, p->anchor));
  if (op->tmpl == TMPL_exchange) return COMMAND_exchange;
  if (!op_by_library(op)) return COMMAND_kernel;
  return op->tmpl == TMPL_conv ? COMMAND_conv : COMMAND_gemm;
}

/* ---- kernels ---- */

/* Vectors cost all parts of a launch registers and do not help a small part. */
static bool has_vectors(const Graph *g, const Group *p, bool is_part)
{
  enum { SMALL = 4096 };
  return !is_part || ir_elements(node_walked(g, p->nodes[0])) > SMALL;
}

/* Sets how the threads of a kernel walk its operands. */
static void set_walk(Compile *c, const Group *p, bool is_part, KernelPart *out)
{
  const Graph *g = c->graph;
  Arena *a = c->arena;
  const Node *n = ir_node(g, p->anchor);
  KernelAccess *access = arena_new(a, KernelAccess);
  if (group_is_map(g, p)) {
    MapWalk *map = arena_new(a, MapWalk);
    *map = map_walk(c, p, has_vectors(g, p, is_part) ? &out->args : NULL);
    *access = map_access(c, p, map);
    out->map = map;
  } else if (p->anchor.id && op_of(n)->tmpl == TMPL_row) {
    RowLoops *rows = arena_new(a, RowLoops);
    *rows = row_loops(g, p);
    *access = row_access(c, p, rows);
    out->rows = rows;
  } else if (p->anchor.id && op_has(n, T_windows)) {
    WindowWalk *windows = arena_new(a, WindowWalk);
    *windows = window_walk(c, p, &out->args);
    *access = window_access(c, p);
    out->windows = windows;
  } else if (p->anchor.id && pad_vector(c, p->anchor)) {
    *access = pad_access(c, p);
  } else if (p->anchor.id && op_has(n, T_tiles)) {
    TileWalk *tiles = arena_new(a, TileWalk);
    *tiles = tile_walk(c, p);
    out->tiles = tiles;
  }
  if (access->node) out->access = access;
}

static KernelPart make_part(Compile *c, const Group *p, bool is_part)
{
  KernelPart out = {.group = p, .args = part_args(c, p)};
  set_walk(c, p, is_part, &out);
  out.at = part_geometry(c, p, &out, is_part);
  return out;
}

/* Returns the number of elements of the largest argument: an index must be able to count them.
 * 64-bit indices cost registers and time on a GPU. */
static int64_t most_elements(const Graph *g, const KernelArgs *args)
{
  int64_t most = 0;
  for (uint32_t i = 0; i < args->n; i++) {
    const KernelArg *a = &args->at[i];
    int64_t n = a->value.id ? ir_room(ir_node(g, a->value)) : 0;
    if (a->role == ARG_master || a->role == ARG_grad) {
      for (uint32_t o = 0; o < g->optimizers.n; o++)
        if (g->optimizers.at[o].count > n) n = g->optimizers.at[o].count;
    }
    if (n > most) most = n;
  }
  return most;
}

static void set_kernel(Compile *c, const Group *p, Command *out)
{
  out->n_parts = p->n_parts ? p->n_parts : 1;
  out->parts = arena_array(c->arena, KernelPart, out->n_parts);
  for (uint32_t i = 0; i < p->n_parts; i++) out->parts[i] = make_part(c, &p->parts[i], true);
  if (p->n_parts) {
    out->whole = (KernelPart){.group = p, .args = launch_args(c, p)};
    out->whole.at = launch_geometry(c, p, out->parts);
  } else {
    out->whole = out->parts[0] = make_part(c, p, false);
  }
  out->n_args = out->whole.args.n;
  out->far = most_elements(c->graph, &out->whole.args) > INT_LIMIT;
}

/* A convolution has a kernel on CUDA if it is not `direct`: Note [columns on CUDA]. */
static void set_columns(Command *out)
{
  if (!out->conv.grid) return;
  out->columns = true;
  out->whole.at = (Geometry){out->conv.grid, out->conv.block};
  out->n_args = ampc_conv_kernel_args(&out->conv);
}

/* ---- commands ---- */

static Command make_command(Compile *c, uint32_t group)
{
  const Graph *g = c->graph;
  const Group *p = &g->groups.at[group];
  Command out = {.kind = kind_of(g, p), .kernel = group};
  switch (out.kind) {
  case COMMAND_kernel:
  case COMMAND_exchange: /* only its arguments are of use */
    set_kernel(c, p, &out);
    set_attention(c, group, &out);
    if (p->anchor.id && own_of(ir_node(g, p->anchor))) out.workspace = own_scratch(c, p);
    break;
  case COMMAND_gemm:
    set_product(c, group, &out);
    break;
  case COMMAND_conv:
    set_convolution(c, group, &out);
    if (!is_cpu_target(c)) set_columns(&out);
    break;
  default:
    break;
  }
  return out;
}

Command *commands_make(Compile *c)
{
  uint32_t n = c->graph->groups.n;
  Command *all = arena_array(c->arena, Command, n);
  for (uint32_t i = 1; i < n; i++) all[i] = make_command(c, i);
  for (uint32_t i = 1; i < n; i++) set_deferred(c, i, all);
  name_commands(c, all);
  return all;
}

uint32_t kernel_owner(const Graph *g, uint32_t i)
{
  uint32_t group = 1;
  for (;; group++)
    if (command_owns_kernel(g, group) && i-- == 0) return group;
}

int64_t group_workspace(Compile *c, uint32_t group)
{
  const Group *p = &c->graph->groups.at[group];
  Command out = {.kind = COMMAND_none};
  const Node *n = ir_node(c->graph, p->anchor);
  if (p->anchor.id && own_of(n)) return own_scratch(c, p);
  if (!group_by_library(c->graph, group)) return 0;
  (op_of(n)->tmpl == TMPL_conv ? set_convolution : set_product)(c, group, &out);
  return out.workspace;
}
