/* All kernels of a program, each under a comment that says where it comes from. */
#include "kernel_parts.h"
#include "compiler/base/embedded.h"
#include "emit.h"
#include "user_text.h"
#include <assert.h>
#include <string.h>

/* ---- what a kernel is ---- */

enum { INT_LIMIT = 1 << 30 }; /* above it, walking in strides could overflow an int */

/* The most elements that one argument has: an index must be able to count them. */
static int64_t most_elements(const Kernel *k)
{
  int64_t most = 0;
  for (uint32_t i = 0; i < k->args.n; i++) {
    const KernelArg *a = &k->args.at[i];
    int64_t n = a->value.id ? ir_elements(ir_node(k->g, a->value)) : 0;
    if (a->role == ARG_master || a->role == ARG_grad) {
      for (uint32_t o = 0; o < k->g->optimizers.n; o++)
        if (k->g->optimizers.at[o].count > n) n = k->g->optimizers.at[o].count;
    }
    if (n > most) most = n;
  }
  return most;
}

/* `int` where it suffices: 64-bit index arithmetic costs registers and time on a GPU. */
static Kernel kernel_of(Printer *p, uint32_t group)
{
  Kernel k = {.p = p, .c = p->c, .g = p->c->graph, .index = group};
  k.group = &k.g->groups.at[group];
  k.args = kernel_args(p->c, group);
  name_arguments(&k);
  k.index_type = most_elements(&k) > INT_LIMIT ? "long long" : "int";
  return k;
}

/* The node that decides how the group is printed: the anchor, or any node of an elementwise
 * group. */
static const Node *main_node(const Kernel *k)
{
  return ir_node(k->g, k->group->anchor.id ? k->group->anchor : k->group->nodes[0]);
}

static OpTemplate template_of(const Kernel *k)
{
  bool chain = !k->group->anchor.id && k->group->n > 1; /* its first node may be a move */
  return chain ? TMPL_map : op_of(main_node(k))->tmpl;
}

/* ---- the header comment ---- */

/* Prints for example
 *   // k07_add_gelu: h = gelu(fc1(x))                          mlp.amp:12 */
static void put_title(const Kernel *k)
{
  Value last = k->group->nodes[k->group->n - 1];
  Span span = diag_user_span(k->c, ir_node(k->g, last)->span);
  Place place = {0};
  if (span.end) place = diag_place(k->c, span);
  if (!place.source || place.source->builtin) {
    EMIT(k->p, "// %s\n", command_name(k->c, k->index));
    return;
  }
  const char *slash = strrchr(place.source->path, '/');
  const char *file = slash ? slash + 1 : place.source->path;
  EMIT(k->p, "// %s: %-48s %s:%u\n", command_name(k->c, k->index), comment_line(k->c, place, 72),
       comment_text(k->c->arena, file, strlen(file), 200), place.line);
}

/* Prints for example
 *   //   nodes      %14 add, %15 gelu; joined by pass fuse */
static void put_nodes(const Kernel *k)
{
  Text t;
  text_init(&t, k->c->arena);
  for (uint32_t i = 0; i < k->group->n; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    text_printf(&t, "%s%%%u %s", i ? ", " : "", k->group->nodes[i].id, op_of(n)->name);
    if (n->origin.id) text_printf(&t, " (back of %s)", op_of(ir_node(k->g, n->origin))->name);
  }
  EMIT(k->p, "//   nodes      %s%s\n", t.at, k->group->n > 1 ? "; joined by pass fuse" : "");
}

/* Types of arguments in this role, each once: "load f16, f32". */
static void add_type(const Kernel *k, Text *t, const char *lead, ArgRole role)
{
  uint32_t seen = 0;
  for (uint32_t i = 0; i < k->args.n; i++) {
    const KernelArg *a = &k->args.at[i];
    bool both = role == ARG_in && a->over.id;
    if ((a->role != role && !both) || seen >> a->type & 1) continue;
    text_printf(t, "%s%s", seen ? ", " : lead, ir_dtype_name(a->type));
    seen |= 1u << a->type;
  }
}

/* For the header comment: the type in which the nodes compute, whatever they read and write. */
static const char *arithmetic_text(const Kernel *k)
{
  if (template_of(k) == TMPL_move) return "no arithmetic";
  bool real = template_of(k) == TMPL_file;
  for (uint32_t i = 0; i < k->group->n; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    real |= dtype_is_float(n->dtype);
    for (uint32_t j = 0; j < n->n_in; j++)
      real |= n->in[j].id && dtype_is_float(ir_node(k->g, n->in[j])->dtype);
  }
  if (!real) return "compute integers";
  return k->c->options.real64 ? "compute f64" : "compute f32";
}

/* Prints for example
 *   //   precision  load f16; compute f32; store f16; rounds add, gelu */
static void put_precision(const Kernel *k)
{
  Text t;
  text_init(&t, k->c->arena);
  add_type(k, &t, "load ", ARG_in);
  if (t.n) text_puts(&t, "; ");
  bool moves = template_of(k) == TMPL_move;
  text_puts(&t, arithmetic_text(k));
  add_type(k, &t, "; store ", ARG_out);
  uint32_t rounds = 0;
  for (uint32_t i = 0; i < k->group->n && !moves; i++) {
    const Node *n = ir_node(k->g, k->group->nodes[i]);
    if (n->dtype != AMPC_F16 && n->dtype != AMPC_BF16) continue;
    text_printf(&t, "%s%s", rounds++ ? ", " : "; rounds ", op_of(n)->name);
  }
  EMIT(k->p, "//   precision  %s\n", t.at);
}

static const char *frame_name(const Kernel *k)
{
  const char *prelude = is_cpu_target(k->c) ? "cpu.h" : "cuda.cuh";
  switch (template_of(k)) {
  case TMPL_row:
    return arena_printf(k->c->arena, "rows of templates/%s", prelude);
  case TMPL_file:
    return arena_printf(k->c->arena, "templates/%s.cu", op_of(main_node(k))->name);
  default:
    return arena_printf(k->c->arena, "loops of templates/%s", prelude);
  }
}

/* Prints for example
 *   //   shape      [32, 512] = 16384 elements; grid 64, block 256; loops of templates/cuda.cuh */
static void put_shape(const Kernel *k)
{
  Geometry at = kernel_geometry(k->c, k->index);
  const Node *n = main_node(k);
  if (template_of(k) == TMPL_row) n = ir_node(k->g, n->in[0]);
  if (op_has(n, T_effect) && template_of(k) == TMPL_map) n = node_walked(k->g, k->group->nodes[0]);
  if (template_of(k) == TMPL_file)
    EMIT(k->p, "//   shape      grid %u, block %u; %s\n", at.grid, at.block, frame_name(k));
  else
    EMIT(k->p, "//   shape      %s = %lld elements; grid %u, block %u; %s\n", ir_dims_text(k->c, n),
         (long long)ir_elements(n), at.grid, at.block, frame_name(k));
}

/* ---- the kernel ---- */

/* All groups but those of files; moves that are not one affine walk have an emitter each
 * (kernel_move.c). */
static void put_body(Kernel *k)
{
  const Node *n = main_node(k);
  if (template_of(k) == TMPL_row)
    emit_row(k);
  else if (n->op == OP_cat)
    emit_cat(k);
  else if (n->op == OP_slice_backward || n->op == OP_pad)
    emit_filled(k);
  else if (n->op == OP_flip_axis)
    emit_flip(k);
  else if (n->op == OP_shifted)
    emit_shifted(k);
  else
    emit_map(k);
}

static bool is_empty(const Kernel *k) /* no element to write */
{
  for (uint32_t i = 0; i < k->args.n; i++) {
    const KernelArg *a = &k->args.at[i];
    if (a->role == ARG_out && ir_elements(ir_node(k->g, a->value)) == 0) return true;
  }
  return false;
}

/* A file op's template has its own head and braces. */
static void put_kernel(Kernel *k)
{
  EMIT(k->p, "\n");
  put_title(k);
  put_nodes(k);
  put_precision(k);
  put_shape(k);
  if (template_of(k) == TMPL_file) {
    emit_file(k);
    return;
  }
  EMIT(k->p, "__global__ void %s(%s)\n{\n", command_name(k->c, k->index), argument_list(k));
  k->p->indent++;
  if (!is_empty(k)) put_body(k);
  k->p->indent--;
  EMIT(k->p, "}\n");
}

/* The kernel that arranges images as columns for a convolution of the vendor library. */
static void put_columns(Kernel *k)
{
  Convolution v = convolution_of(k->c, k->index);
  EMIT(k->p, "\n");
  put_title(k);
  EMIT(k->p, "//   columns    %s of the images; grid %u, block %u; templates/%s\n",
       v.desc.kind == AMPC_CONV_DATA ? "gradients" : "for the product", v.desc.grid, v.desc.block,
       columns_template(&v));
  emit_columns(k, &v);
}

/* CPU: what the thread pool calls. It unpacks the pointers from an array and sets which block this
 * is. */
static void put_thunk(const Kernel *k)
{
  const char *name = command_name(k->c, k->index);
  EMIT(k->p, "static void %s_thunk(void *const *a, unsigned block, unsigned n_blocks)\n{\n", name);
  EMIT(k->p, "  block_index = block;\n  block_count = n_blocks;\n  %s(", name);
  for (uint32_t i = 0; i < k->args.n; i++)
    EMIT(k->p, "%s(%s *)a[%u]", i ? ", " : "", element_type(&k->args.at[i]), i);
  EMIT(k->p, ");\n}\n");
}

typedef struct KernelRange { /* of the program's kernels */
  uint32_t first, count;
} KernelRange;

static void put_group(Printer *p, uint32_t group)
{
  Kernel k = kernel_of(p, group);
  if (group_is_columns(p->c, group)) {
    put_columns(&k);
  } else {
    put_kernel(&k);
  }
  if (is_cpu_target(p->c)) put_thunk(&k);
}

static void put_kernels(Printer *p, KernelRange range)
{
  const Graph *g = p->c->graph;
  uint32_t number = 0;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    if (!group_has_kernel(p->c, i)) continue;
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

/* Kernels come after the helpers they use, so they are printed twice: first into a text of its own,
 * only to see which helpers it names. Blame of that text is dropped. */
static Text kernels_aside(Compile *c, KernelRange range)
{
  void *kept = c->blame;
  Text out;
  Printer p;
  text_init(&out, c->arena);
  printer_begin(&p, c, &out);
  put_kernels(&p, range);
  c->blame = kept;
  return out;
}

/* The JIT's text includes nothing: the struct ampc_state is copied into it. */
static void put_state(Printer *p)
{
  const EmbeddedFile *state = embedded_find("ampc_state.h");
  printer_text(p, "runtime/plan/ampc_state.h", 1, state->text, state->size);
}

static void put_texts(Printer *p, bool jit, KernelRange range)
{
  Text kernels = kernels_aside(p->c, range);
  if (jit) put_state(p);
  emit_helpers(p, &kernels);
  bool cpu = is_cpu_target(p->c);
  if (!cpu) EMIT(p, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  put_kernels(p, range);
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
  Text all;
  text_init(&all, c->arena);
  for (uint32_t i = 0; i < n; i++) text_add(&all, kernels[i].at, kernels[i].n);
  emit_helpers(&p, &all);
  text_add(out, all.at, all.n);
  put_table(&p, names, n);
}
