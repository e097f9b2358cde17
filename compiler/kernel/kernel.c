/* Prints all kernels of a program, each under a comment that says where it comes from. */
#include "kernel_parts.h"
#include "compiler/base/embedded.h"
#include "kernels.h"

/* ---- what a kernel is ---- */

/* Returns the kernel of a group. Its index type is `int` if that is large enough: 64-bit indices
 * cost registers and time on a GPU. put_code() names the arguments. */
Kernel kernel_of(Printer *p, uint32_t group)
{
  Kernel k = {.p = p, .c = p->c, .g = p->c->graph, .index = group};
  k.command = command_of(k.g, group);
  k.part = &k.command->whole;
  k.group = &k.g->groups.at[group];
  k.args = k.part->args;
  k.name = k.command->kernel_name;
  k.index_type = k.command->far ? "long long" : "int";
  return k;
}

/* Returns the node that decides how the group is printed: the anchor, or any elementwise node. */
const Node *kernel_main_node(const Kernel *k)
{
  return ir_node(k->g, k->group->anchor.id ? k->group->anchor : k->group->nodes[0]);
}

OpTemplate kernel_template(const Kernel *k)
{
  bool chain = !k->group->anchor.id && k->group->n > 1; /* the first node may be a move */
  return chain ? TMPL_map : op_of(kernel_main_node(k))->tmpl;
}

/* ---- the body ---- */

static bool is_empty(const Kernel *k) /* true if it has no element to write */
{
  for (uint32_t i = 0; i < k->args.n; i++) {
    const KernelArg *a = &k->args.at[i];
    if (a->role == ARG_out && ir_elements(ir_node(k->g, a->value)) == 0) return true;
  }
  return false;
}

/* Prints the body. Moves that are not one affine walk have an emitter each (move.c). */
void put_body(Kernel *k)
{
  const Node *n = kernel_main_node(k);
  if (kernel_template(k) == TMPL_file)
    emit_file(k);
  else if (is_empty(k))
    return;
  else if (kernel_template(k) == TMPL_row)
    emit_row(k);
  else if (n->op == OP_cat)
    emit_cat(k);
  else if (n->op == OP_slice_backward || n->op == OP_pad)
    emit_filled(k);
  else if (n->op == OP_flip_axis)
    emit_flip(k);
  else if (n->op == OP_shifted)
    emit_shifted(k);
  else if (n->op == OP_index_select || n->op == OP_gather)
    emit_picked(k);
  else
    emit_map(k);
}

/* ---- the kernel ---- */

/* True if the group computes the parts of a long sum, perhaps among other things. */
static bool makes_parts(const Kernel *k)
{
  bool any = false;
  for (uint32_t i = 0; i < k->command->n_parts; i++) {
    const RowLoops *rows = k->command->parts[i].rows;
    any |= rows && rows->shape.parts > 0;
  }
  return any;
}

/* True if a thread keeps several vectors of a row: Note [rows]. */
static bool keeps_row(const Kernel *k)
{
  const RowLoops *r = k->part->rows;
  if (!r || r->columns) return false;
  const RowWalk *w = &r->walk;
  return w->threads < CUDA_BLOCK && r->shape.length > w->threads * w->vector;
}

/* True if the group has one row op whose operand is loaded from memory unchanged. */
static bool holds_row(const Kernel *k)
{
  uint32_t ops = 0;
  for (uint32_t i = 0; i < k->group->n; i++)
    ops += op_of(ir_node(k->g, k->group->nodes[i]))->tmpl == TMPL_row;
  return keeps_row(k) && ops == 1 && op_of(kernel_main_node(k))->gradient != grad_none &&
         ir_node(k->g, value_root(k->g, kernel_main_node(k)->in[0]))->group != k->index;
}

/* True if the group has gradients of rows through a long function, which keep several rows and the
 * function's constants in registers. With random numbers ptxas does well by itself; if ptxas is
 * told of one block per multiprocessor, it uses twice as many registers. */
static bool holds_dear_row(const Kernel *k)
{
  bool draws = false;
  for (uint32_t i = 0; i < k->group->n; i++) draws |= op_draws(ir_node(k->g, k->group->nodes[i]));
  return group_is_dear(k->g, k->group) && !draws && keeps_row(k) &&
         op_of(kernel_main_node(k))->gradient == grad_none;
}

/* Returns the bytes that a thread loads once for all its rows. m->joined has the access of the
 * result, then those of all inputs in order. */
static int64_t shared_bytes(const Kernel *k)
{
  const MapWalk *m = k->part->map;
  uint32_t at = 1;
  int64_t bytes = 0;
  for (uint32_t i = 0; m->rows > 1 && i < k->group->n; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    for (uint32_t j = 0; j < n->n_in; j++)
      if (n->in[j].id && walk_shares_vectors(m, &m->joined[at++]))
        bytes += m->vector * ir_dtype_size(k->c, ir_node(k->g, n->in[j])->dtype);
  }
  return bytes;
}

/* Returns the number of blocks per multiprocessor to tell ptxas for a long function of rows with
 * large common data, such as batch norm and SiLU of 8 channels. By itself ptxas fits four blocks
 * into a multiprocessor and spills one or two numbers. Sums along columns get fewer blocks, because
 * they also keep their sums. Gradients of a bias are only one sum and get 0: ptxas decides. */
static unsigned blocks_of_columns(const Kernel *k)
{
  enum { MUCH = 128 /* bytes */ };
  if (k->group->n_parts || !group_is_dear(k->g, k->group)) return 0;
  if (k->part->map) return shared_bytes(k) >= MUCH ? 3 : 0;
  if (!k->part->rows) return 0;
  for (uint32_t i = 0; i < k->group->n; i++)
    if (ir_node(k->g, k->group->nodes[i])->op == OP_grad_accumulate) return 0;
  return k->part->rows->columns ? 2 : 0;
}

static bool holds_tile(const Kernel *k)
{
  return kernel_template(k) == TMPL_file && op_has(kernel_main_node(k), T_tiles);
}

/* Whether the kernel updates weights and also sums their norms. */
static bool sums_norms(const Kernel *k)
{
  uint32_t at;
  const Node *n = kernel_template(k) == TMPL_file ? kernel_main_node(k) : NULL;
  return n && attr_find(op_of(n), "sums", &at) && n->attr[at].i;
}

/* Prints launch bounds. The plan has only this launch, so ptxas is told its block size, except for
 * launches of many parts: ptxas would spill registers rather than have fewer blocks. ptxas would
 * also spill if a thread keeps many numbers of a long sum, a row, a tile or an update with norms.
 * Then it is told the blocks per multiprocessor: two (column_part_rows), one if two do not fit, or
 * three if two do; four for an update, unless it keeps moments in 8 bits. */
static void put_launch_bounds(const Kernel *k, unsigned block)
{
  if (is_cpu_target(k->c)) return;
  if (makes_parts(k) || holds_row(k) || holds_tile(k))
    EMIT(k->p, "__launch_bounds__(%u, 2)\n", block);
  else if (holds_dear_row(k))
    EMIT(k->p, "__launch_bounds__(%u, 1)\n", block);
  else if (blocks_of_columns(k))
    EMIT(k->p, "__launch_bounds__(%u, %u)\n", block, blocks_of_columns(k));
  else if (!k->group->n_parts)
    EMIT(k->p,
         sums_norms(k) && k->g->moment_type != AMPC_U8 ? "__launch_bounds__(%u, 4)\n"
                                                       : "__launch_bounds__(%u)\n",
         block);
}

/* Prints a kernel. The template of an op with a file contains the head and the braces. */
static void put_kernel(Kernel *k)
{
  const Launch *launch = k->group->n_parts ? put_functions(k) : NULL;
  put_launch_bounds(k, k->part->at.block);
  if (k->command->columns) {
    emit_columns(k, &k->command->conv);
    return;
  }
  if (kernel_template(k) == TMPL_file) {
    emit_file(k);
    return;
  }
  bool own = kernel_template(k) == TMPL_own;
  EMIT_WRAPPED(k->p, "    ", "__global__ void %s(%s)\n", k->name,
               own ? own_argument_list(k) : argument_list(k));
  EMIT(k->p, "{\n");
  k->p->indent++;
  if (launch)
    put_parts(launch);
  else if (own)
    emit_own(k);
  else
    put_body(k);
  k->p->indent--;
  EMIT(k->p, "}\n");
}

/* CPU: prints the thunk, which the thread pool calls. It unpacks arguments and sets the block's
 * number. */
static void put_thunk(const Kernel *k)
{
  const char *name = k->name;
  Text t = text_new(k->c->arena);
  for (uint32_t i = 0; i < k->args.n; i++) {
    bool number = argument_is_number(&k->args.at[i]);
    text_printf(&t, "%s(%s%s)a[%u]", i ? ", " : "", element_type(&k->args.at[i]),
                number ? ")(unsigned long long" : " *", i);
  }
  EMIT(k->p, "\n");
  EMIT_WRAPPED(k->p, "    ",
               "static void %s_thunk(void *const *a, unsigned block, unsigned n_blocks)\n{\n",
               name);
  EMIT(k->p, "  block_index = block;\n  block_count = n_blocks;\n");
  EMIT_WRAPPED(k->p, "      ", "  %s(%s);\n", name, t.at);
  EMIT(k->p, "}\n");
}

typedef struct KernelRange { /* a range of the program's kernels */
  uint32_t first, count;
} KernelRange;

/* Prints the kernel without its comment. */
static void put_code(Kernel *k)
{
  name_arguments(k);
  put_kernel(k);
  if (is_cpu_target(k->c)) put_thunk(k);
}

static void put_group(Printer *p, uint32_t group)
{
  Kernel k = kernel_of(p, group);
  EMIT(p, "\n");
  put_head(&k);
  put_code(&k);
}

Text emit_bare(Compile *c, uint32_t group, Arena *scratch)
{
  Arena *own = c->arena;
  void *kept = c->blame;
  Text out = text_new(scratch);
  Printer p;
  c->arena = scratch;
  printer_begin(&p, c, &out);
  p.bare = true;
  Kernel k = kernel_of(&p, group);
  k.name = "kernel";
  put_code(&k);
  c->blame = kept;
  c->arena = own;
  return out;
}

static void put_kernels(Printer *p, KernelRange range)
{
  const Graph *g = p->c->graph;
  uint32_t number = 0;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!command_owns_kernel(g, i)) continue;
    uint32_t at = number++;
    if (at >= range.first && at - range.first < range.count) put_group(p, i);
  }
}

void emit_kernel(Compile *c, uint32_t i, Text *out)
{
  Printer p;
  printer_begin(&p, c, out);
  put_kernels(&p, (KernelRange){i, 1});
}

/* Prints the kernels into a text of their own. They come after their helpers in the output, but the
 * names in this text decide which helpers are printed. *blame: the origins of its lines. */
static Text kernels_aside(Compile *c, KernelRange range, const void **blame)
{
  void *kept = c->blame;
  Printer p;
  Text out = text_new(c->arena);
  printer_begin(&p, c, &out);
  put_kernels(&p, range);
  *blame = c->blame;
  c->blame = kept;
  return out;
}

/* Prints struct ampc_state for the JIT, whose text includes no files. */
static void put_state(Printer *p)
{
  const EmbeddedFile *state = embedded_find("ampc_state.h");
  printer_text(p, "runtime/plan/ampc_state.h", 1, state->text, state->size);
}

static void put_texts(Printer *p, bool jit, KernelRange range)
{
  const void *blame;
  Text kernels = kernels_aside(p->c, range, &blame);
  if (jit) put_state(p);
  emit_helpers(p, &kernels);
  bool cpu = is_cpu_target(p->c);
  if (!jit && kernels.n) EMIT(p, "\n/* ---- kernels ---- */\n");
  if (!cpu) EMIT(p, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  printer_append(p, &kernels, blame);
  if (!cpu) EMIT(p, "\n#ifdef __cplusplus\n} // extern \"C\"\n#endif\n");
}

static KernelRange all_kernels(const Compile *c)
{
  return (KernelRange){0, c->program->n_kernels};
}

void emit_kernel_texts(Printer *p, bool jit)
{
  put_texts(p, jit, all_kernels(p->c));
}

void emit_some_kernels(Compile *c, uint32_t first, uint32_t count, Text *out)
{
  Printer p;
  printer_begin(&p, c, out);
  put_texts(&p, true, (KernelRange){first, count});
  settle_lines(c->arena, out, 0, "kernels");
}

static void put_table(Printer *p, const char *const *names, uint32_t n)
{
  EMIT(p, "\nconst struct {\n  const char *name;\n"
          "  void (*function)(void *const *, unsigned, unsigned);\n} ampc_jit_kernels[] = {\n");
  for (uint32_t i = 0; i < n; i++) EMIT(p, "  {\"%s\", %s_thunk},\n", names[i], names[i]);
  EMIT(p, "  {0, 0}};\n");
}

void emit_kernels(Compile *c, Text *out)
{
  Printer p;
  printer_begin(&p, c, out);
  emit_kernel_texts(&p, true);
  settle_lines(c->arena, out, 0, "kernels");
  if (!is_cpu_target(c)) return;
  const char **names = arena_array(c->arena, const char *, c->program->n_kernels + 1);
  for (uint32_t i = 0; i < c->program->n_kernels; i++) names[i] = c->program->kernels[i].name;
  put_table(&p, names, c->program->n_kernels);
}

void emit_unit(Compile *c, const Text *kernels, const char *const *names, uint32_t n, Text *out)
{
  Printer p;
  printer_begin(&p, c, out);
  put_state(&p);
  Text all = text_new(c->arena);
  for (uint32_t i = 0; i < n; i++) text_add(&all, kernels[i].at, kernels[i].n);
  emit_helpers(&p, &all);
  text_add(out, all.at, all.n);
  settle_lines(c->arena, out, 0, "kernels");
  put_table(&p, names, n);
}
