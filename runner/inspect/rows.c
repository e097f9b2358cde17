/* Computes the rows of `amp inspect` from a compiled job. */
#include "ampc_rt.h"
#include "compiler/cost/predict.h"
#include "inspect.h"
#include <string.h>

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

/* Returns how many nodes of the group have the op of node `first`; 0 if an earlier node has it. */
static uint32_t count_alike(const Graph *g, const Group *group, uint32_t first)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < group->n; i++) {
    bool alike = op_of(ir_node(g, group->nodes[i])) == op_of(ir_node(g, group->nodes[first]));
    if (alike && i < first) return 0;
    n += alike;
  }
  return n;
}

/* Returns "sum, grad_accumulate x 3"; for a wide table each node with its number. */
static const char *ops_text(Compile *c, const Group *group)
{
  Text t = text_new(c->arena);
  if (c->options.view.wide) return nodes_text(c, group);
  for (uint32_t i = 0; i < group->n; i++) {
    uint32_t n = count_alike(c->graph, group, i);
    if (!n) continue;
    text_printf(&t, "%s%s", t.n ? ", " : "", op_of(ir_node(c->graph, group->nodes[i]))->name);
    if (n > 1) text_printf(&t, " x %u", n);
  }
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

/* ---- work and layer ---- */

static bool draws(const Graph *g, const Group *group)
{
  for (uint32_t i = 0; i < group->n; i++)
    if (op_draws(ir_node(g, group->nodes[i]))) return true;
  return false;
}

/* Returns the kind of work: "product", "attention", "optimizer"; else the template. */
static const char *work_text(Compile *c, uint32_t group)
{
  const Graph *g = c->graph;
  const char *frame = frame_text(c, main_part(g, group)), *dot = strchr(frame, '.');
  CommandKind kind = command_of(g, group)->kind;
  if (kind == COMMAND_gemm) return "product";
  if (kind == COMMAND_conv) return "convolution";
  CostPart part = predict_part(c, group);
  const Node *main = group_main_node(g, group);
  if (part == PART_tiles) return "attention";
  if (part == PART_casts) return "cast";
  if (part == PART_state && !main->layer)
    return optimizer_name_of(g, main) ? "optimizer" : "metric";
  if (draws(g, &g->groups.at[group])) return "random";
  if (strcmp(frame, "map") == 0) return "elementwise";
  if (strcmp(frame, "own") == 0) return "own op";
  return dot ? arena_strndup(c->arena, frame, (size_t)(dot - frame)) : frame;
}

static bool is_optimizer(const Graph *g, const char *name)
{
  for (uint32_t i = 0; i < g->optimizers.n; i++)
    if (strcmp(g->optimizers.at[i].name, name) == 0) return true;
  return false;
}

/* Returns the layer of the command's main node, or its optimizer; NULL: neither. */
static const char *layer_text(const Graph *g, uint32_t group)
{
  const Node *n = group_main_node(g, group);
  if (!n->layer) return optimizer_name_of(g, n);
  const char *path = layer_path(g, n->layer);
  return is_optimizer(g, path) ? n->layer : path;
}

/* ---- rows ---- */

static void set_counts(Compile *c, uint32_t group, Facts *f)
{
  CommandCount count = command_count(c, group, NULL);
  const Node *node = group_main_node(c->graph, group);
  TileLoad tiles;
  f->commands = 1;
  f->backward_commands = node->layer && node->origin.id;
  f->times = (double)count.times;
  f->read = (double)count.read;
  f->written = (double)count.written;
  f->bytes = f->read + f->written;
  f->flops = (double)count.flops;
  if (tile_load(c, group, 0, &tiles)) f->flops = load_flops(&tiles.load) * f->times;
  f->run_flops = f->flops < 0 ? -1 : f->flops / f->times;
  f->elements = (double)walked_elements(c, &c->graph->groups.at[group], main_part(c->graph, group));
}

static CommandRow make_row(const Inspection *in, uint32_t group)
{
  static const char *const kinds[] = {[COMMAND_kernel] = "kernel",
                                      [COMMAND_gemm] = "gemm",
                                      [COMMAND_conv] = "conv",
                                      [COMMAND_exchange] = "exchange"};
  Compile *c = in->c;
  const Group *p = &c->graph->groups.at[group], *main = main_part(c->graph, group);
  Value last = main->nodes[main->n - 1];
  const Command *k = command_of(c->graph, group);
  CommandRow row = {.group = group,
                    .block = ir_node(c->graph, last)->block,
                    .is = k->kind,
                    .at = k->whole.at,
                    .place = diag_user_place(c, ir_node(c->graph, last)->span),
                    .facts = facts_none()};
  Facts *f = &row.facts;
  f->name = k->name;
  f->kind = kinds[k->kind];
  f->template = frame_text(c, p);
  f->work = work_text(c, group);
  f->types = types_text(c, k);
  f->shape = shape_text(c, main);
  f->nodes = nodes_text(c, p);
  f->ops = ops_text(c, p);
  f->kernel = k->kernel_name;
  if (f->kernel) {
    f->grid = row.at.grid;
    f->block = row.at.block;
    f->launch = arena_printf(c->arena, "%u x %u", row.at.grid, row.at.block);
  }
  f->layer = layer_text(c->graph, group);
  facts_place(f, c, row.place);
  set_counts(c, group, f);
  inspect_set_library(in, &row, NULL);
  return row;
}

const InspectBy inspect_by[] = {
    [BY_WORK] = {"work", "work", "work"},
    [BY_LAYER] = {"layer", "layer", "layer"},
    [BY_LINE] = {"line", "file line", "file line source"},
    [BY_KERNEL] = {"kernel", "kernel kind types shape run_flops",
                   "name kernel? template types shape times"},
};

/* Cuts the text of a line to LINE_ROOM bytes, between characters. */
const char *inspect_group_name(Arena *arena, InspectSum by, const Facts *group)
{
  enum { LINE_ROOM = 31 };
  if (by == BY_WORK) return group->work;
  if (by == BY_KERNEL) return group->name;
  if (by == BY_LAYER) return group->layer ? group->layer : "(no layer)";
  if (!group->file) return "(no line)";
  const char *text = arena_printf(arena, "%s: %s", group->where, group->source);
  size_t n = LINE_ROOM - 2;
  if (strlen(text) <= LINE_ROOM) return text;
  while (n && (text[n] & 0xc0) == 0x80) n--; /* a byte within a character */
  return arena_printf(arena, "%.*s..", (int)n, text);
}

Facts inspect_facts(const Inspection *in, uint16_t block, InspectSum by, FactRows *out)
{
  Facts sum = facts_none();
  for (uint32_t i = 0, n = 0; i < in->rows.n; i++) {
    const CommandRow *row = &in->rows.at[i];
    if (row->block != block) continue;
    if (n++)
      facts_add(&sum, &row->facts);
    else
      sum = row->facts;
    if (by != BY_NONE)
      facts_group(in->c->arena, out, inspect_by[by].columns, &row->facts);
    else
      vec_push(in->c->arena, out, row->facts);
  }
  return sum;
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
