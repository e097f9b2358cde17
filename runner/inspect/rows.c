/* Computes the rows of `amp inspect` from a compiled job. */
#include "ampc_rt.h"
#include "inspect.h"

/* ---- the texts of a row ---- */

/* Returns the part of a launch that represents it: the part that names it; if that part has parts
 * itself, the last of them. */
static const Group *main_part(const Graph *g, uint32_t group)
{
  const Group *p = group_main_part(g, group);
  return p->n_parts ? &p->parts[p->n_parts - 1] : p;
}

/* Returns the node that decides the template of a kernel: its anchor (a reduction, a product), else
 * the first node. */
static const Node *main_node(const Graph *g, const Group *group)
{
  return ir_node(g, group->anchor.id ? group->anchor : group->nodes[0]);
}

/* Returns the text of column "template". */
static const char *frame_text(Compile *c, const Group *group)
{
  static const char *const names[] = {
      [TMPL_leaf] = "",   [TMPL_alias] = "",           [TMPL_map] = "map",   [TMPL_move] = "move",
      [TMPL_row] = "row", [TMPL_gemm] = "gemm",        [TMPL_conv] = "conv", [TMPL_file] = "",
      [TMPL_own] = "own", [TMPL_exchange] = "exchange"};
  if (group->n_parts) return "parts";
  const Node *n = main_node(c->graph, group);
  if (!group->anchor.id && group->n > 1) return names[TMPL_map]; /* its first node may be a move */
  OpTemplate tmpl = op_of(n)->tmpl;
  return tmpl == TMPL_file ? arena_printf(c->arena, "%s.cu", op_of(n)->name) : names[tmpl];
}

/* Returns "%18 relu, %19 drop", with the numbers that --dump-after=fuse shows. */
static const char *nodes_text(Compile *c, const Group *group)
{
  Text t = text_new(c->arena);
  for (uint32_t i = 0; i < group->n; i++)
    text_printf(&t, "%s%%%u %s", i ? ", " : "", group->nodes[i].id,
                op_of(ir_node(c->graph, group->nodes[i]))->name);
  return t.at;
}

/* Adds a type unless it is listed already. `seen`: bit set of the listed types. */
static void add_type(Text *t, uint32_t *seen, DType d)
{
  if (*seen >> d & 1) return;
  text_printf(t, "%s%s", *seen ? "," : "", ir_dtype_name(d));
  *seen |= 1u << d;
}

/* Whether the argument is a struct of STATE, or the stream of random numbers that belongs to it. */
static bool is_of_state(const KernelArg *a)
{
  return a->role == ARG_state || a->role == ARG_optimizer || a->role == ARG_metric ||
         a->role == ARG_stream;
}

/* Returns the types that are read and the types that are written, each once: "f16,f32>f16". */
static const char *types_of_kernel(Compile *c, const KernelArgs *args)
{
  Text t = text_new(c->arena);
  uint32_t seen = 0;
  for (uint32_t i = 0; i < args->n; i++) {
    const KernelArg *a = &args->at[i];
    bool state = is_of_state(a);
    bool out = a->role == ARG_out || a->role == ARG_copy;
    if (a->over.id) add_type(&t, &seen, ir_node(c->graph, a->over)->dtype);
    if (!state && !out) add_type(&t, &seen, a->type);
  }
  text_puts(&t, ">");
  seen = 0;
  for (uint32_t i = 0; i < args->n; i++) {
    const KernelArg *a = &args->at[i];
    bool state = is_of_state(a);
    if (!state && a->role != ARG_in) add_type(&t, &seen, a->type);
  }
  return t.at;
}

/* Returns the types of a command. A product has both operands and the result: "f16*f16>f32". */
static const char *types_text(Compile *c, const Command *k)
{
  if (k->kind == COMMAND_gemm) {
    const ampc_gemm *d = &k->gemm;
    return arena_printf(c->arena, "%s*%s>%s", ir_dtype_name(d->a_type), ir_dtype_name(d->b_type),
                        ir_dtype_name(d->c_type));
  }
  if (k->kind == COMMAND_conv) {
    const ampc_conv *d = &k->conv;
    bool forward = d->kind == AMPC_CONV_FORWARD, data = d->kind == AMPC_CONV_DATA;
    return arena_printf(c->arena, "%s*%s>%s", ir_dtype_name(forward ? d->x_type : d->y_type),
                        ir_dtype_name(forward || data ? d->w_type : d->x_type),
                        ir_dtype_name(forward ? d->y_type
                                      : data  ? d->x_type
                                              : d->w_type));
  }
  return types_of_kernel(c, &k->whole.args);
}

/* Returns the node whose elements the kernel visits: for a reduction, its input. */
static const Node *walked_node(Compile *c, const Group *group)
{
  const Node *n = main_node(c->graph, group);
  bool row = group->anchor.id && op_of(n)->tmpl == TMPL_row;
  bool effect = op_of(n)->tmpl == TMPL_file && op_has(n, T_effect) && n->n_in && n->in[0].id &&
                op_of(n)->file_args[0] == FILE_inputs;
  bool walks_input = row || effect || ir_adds_to(n) >= 0;
  return walks_input ? ir_node(c->graph, n->in[0]) : n;
}

/* Returns how many elements of a flat space the kernel visits; -1: it visits a node. */
static int64_t walked_range(const Graph *g, const Group *group)
{
  return group->anchor.id ? node_range(g, ir_node(g, group->anchor)) : -1;
}

static const char *shape_text(Compile *c, const Group *group)
{
  int64_t range = walked_range(c->graph, group);
  if (range >= 0) return arena_printf(c->arena, "[%lld]", (long long)range);
  return ir_dims_text(c, walked_node(c, group));
}

/* Returns the elements that a launch visits; if several nodes share it, the largest number. */
static int64_t walked_elements(Compile *c, const Group *group, const Group *main)
{
  int64_t range = walked_range(c->graph, main);
  int64_t most = range >= 0 ? range : ir_elements(walked_node(c, main));
  for (uint32_t i = 0; i < group->n; i++) {
    range = node_range(c->graph, ir_node(c->graph, group->nodes[i]));
    if (range > most) most = range;
  }
  return most;
}

static CommandRow make_row(const Inspection *in, uint32_t group)
{
  Compile *c = in->c;
  const Group *p = &c->graph->groups.at[group], *main = main_part(c->graph, group);
  Value last = main->nodes[main->n - 1];
  const Command *k = command_of(c->graph, group);
  CommandCount count = command_count(c, group, NULL);
  CommandRow row = {.group = group,
                    .block = ir_node(c->graph, last)->block,
                    .kind = count.kind,
                    .times = count.times,
                    .read = count.read,
                    .written = count.written,
                    .flops = count.flops,
                    .name = k->name,
                    .frame = frame_text(c, p),
                    .main_frame = frame_text(c, main),
                    .nodes = nodes_text(c, p),
                    .shape = shape_text(c, main),
                    .elements = walked_elements(c, p, main),
                    .types = types_text(c, k),
                    .kernel = k->kernel_name,
                    .place = inspect_place(in, last)};
  if (row.kernel) row.at = k->whole.at;
  return row;
}

/* ---- a job ---- */

/* Makes a row per group, except silent groups, which are not commands. */
void inspect_rows(Compile *c, Inspection *out)
{
  *out = (Inspection){.c = c};
  for (uint32_t i = 1; i < c->graph->groups.n; i++)
    if (command_of(c->graph, i)->kind) vec_push(c->arena, &out->rows, make_row(out, i));
}

int inspect_open(const Options *options, Inspection *out)
{
  *out = (Inspection){.c = compile_create(options)};
  if (!compile_job(out->c)) return out->c->cannot_read ? AMPC_BAD_FILE : 1;
  inspect_rows(out->c, out);
  return 0;
}

void inspect_close(Inspection *in)
{
  compile_destroy(in->c);
}

const char *inspect_block_text(const Inspection *in, uint16_t block)
{
  const BlockInfo *b = &in->c->graph->blocks.at[block];
  return arena_printf(in->c->arena, "%s%s", ir_block_text(in->c, block),
                      b->remainder ? ", the last of an epoch" : "");
}

Place inspect_place(const Inspection *in, Value v)
{
  Span span = diag_user_span(in->c, ir_node(in->c->graph, v)->span);
  Place place = {0};
  if (span.end) place = diag_place(in->c, span);
  return place.source && !place.source->builtin ? place : (Place){0};
}

const char *inspect_line_text(const Inspection *in, Place place)
{
  if (!place.source) return "";
  uint32_t n;
  const char *s = diag_line_text(in->c, &place, &n), *end = s + n;
  while (s < end && (*s == ' ' || *s == '\t')) s++;
  return arena_shown(in->c->arena, arena_strndup(in->c->arena, s, (size_t)(end - s)), "\t");
}
