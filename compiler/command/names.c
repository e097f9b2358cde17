/* Names commands and kernels after their layer and ops. So logs, tables and the emitted text use
 * the same names, and a change elsewhere in the job renames nothing. Names are C identifiers, each
 * unique in a program. */
#include "compiler/base/names.h"
#include "compiler/base/reserved_names.h"
#include "compiler/base/user_text.h"
#include "command_parts.h"
#include "runtime/plan/conv_columns.h"
#include <string.h>

/* ---- layers ---- */

/* Returns the elements of the largest value (or range) that the part reads or computes. */
static int64_t part_elements(const Graph *g, const Group *part)
{
  int64_t most = 0;
  for (uint32_t i = 0; i < part->n; i++) {
    const Node *n = ir_node(g, part->nodes[i]);
    int64_t range = node_range(g, n), own = ir_elements(n);
    if (own > most) most = own;
    if (range > most) most = range;
    for (uint32_t k = 0; k < n->n_in; k++) {
      int64_t in = n->in[k].id ? ir_elements(value_shape(g, n->in[k])) : 0;
      if (in > most) most = in;
    }
  }
  return most;
}

const Group *group_main_part(const Graph *g, uint32_t group)
{
  const Group *p = &g->groups.at[group], *main = p->parts;
  if (!p->n_parts || p->in_turn) return p;
  for (const Group *part = p->parts + 1; part < p->parts + p->n_parts; part++)
    if (part_elements(g, part) > part_elements(g, main)) main = part;
  return main;
}

const Node *group_main_node(const Graph *g, uint32_t group)
{
  const Group *p = group_main_part(g, group);
  if (p->anchor.id && ir_node(g, p->anchor)->layer) return ir_node(g, p->anchor);
  for (uint32_t i = 0; i < p->n; i++)
    if (ir_node(g, p->nodes[i])->layer) return ir_node(g, p->nodes[i]);
  return ir_node(g, p->anchor.id ? p->anchor : p->nodes[p->n - 1]);
}

const char *optimizer_name_of(const Graph *g, const Node *n)
{
  uint32_t at;
  bool has = attr_find(op_of(n), "optimizer", &at) && n->attr[at].i >= 0;
  return has ? g->optimizers.at[n->attr[at].i].name : NULL;
}

/* True if the last layer has another model than the first: layers of a model are adjacent. */
static bool has_several_models(const Graph *g)
{
  const Layer *last = g->layers.at + g->layers.n - 1;
  return g->layers.n && strcmp(last->model, g->layers.at[0].model) != 0;
}

const char *layer_path(const Graph *g, const char *layer)
{
  const char *dot = has_several_models(g) ? NULL : strchr(layer, '.');
  return dot ? dot + 1 : layer;
}

const char *layer_type(Compile *c, const char *layer)
{
  Graph *g = c->graph;
  uint32_t i =
      name_find(c->arena, &g->layer_index, g->layers.at, g->layers.n, sizeof(Layer), layer);
  return i == NO_NAME ? NULL : g->layers.at[i].type; /* NULL: the graph was built by hand */
}

uint32_t node_line(const Compile *c, Value v)
{
  Span span = diag_user_span((Compile *)c, ir_node(c->graph, v)->span);
  if (span.end == 0) return 0;
  return diag_place(c, span).line;
}

/* ---- commands ---- */

/* Writes the names of the group's ops to `out`, each once, in order. Returns their number. */
static uint32_t ops_of(const Graph *g, const Group *p, const char **out)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const char *name = op_of(ir_node(g, p->nodes[i]))->name;
    uint32_t at = 0;
    if (ir_node(g, p->nodes[i])->op == OP_own_result) continue; /* its op is in the list */
    while (at < n && strcmp(out[at], name) != 0) at++;
    out[at] = name;
    n += at == n;
  }
  return n;
}

/* Returns the group's ops as "batch_norm_relu". */
static const char *group_ops(Compile *c, uint32_t group)
{
  const Group *p = group_main_part(c->graph, group);
  const char **names = arena_array(c->arena, const char *, p->n);
  uint32_t n = ops_of(c->graph, p, names);
  Text t = text_new(c->arena);
  for (uint32_t i = 0; i < n; i++) /* of many ops: the first two and the last */
    if (n <= 4 || i < 2 || i == n - 1) text_printf(&t, "%s%s", t.n ? "_" : "", names[i]);
  return t.at;
}

/* The word is the block's kind, because the user's name of a block may be any text. */
const char *block_word(Compile *c, uint16_t block)
{
  static const char *const kinds[] = {"train", "eval", "infer"};
  const Graph *g = c->graph;
  uint32_t number = 0;
  for (uint32_t i = 0; i <= block; i++)
    number += g->blocks.at[i].kind == g->blocks.at[block].kind && g->blocks.at[i].variant_of < 0;
  const char *kind = kinds[g->blocks.at[block].kind];
  return number > 1 ? arena_printf(c->arena, "%s%u", kind, number) : kind;
}

/* Returns the end of a long path, which distinguishes layers best. */
static const char *short_path(const char *path)
{
  enum { LONGEST = 48 };
  size_t n = strlen(path);
  if (n <= LONGEST) return path;
  const char *end = path + n - LONGEST, *word = strchr(end, '_');
  return word && word[1] ? word + 1 : end;
}

/* True for names that C does not allow, names that begin with a digit (short_path() may cut there),
 * and names with the prefixes of places, parameters and steps (places.c, step.c). */
static bool is_odd(const char *name)
{
  static const char *const others[] = {"at_", "b_", "p_", "s_", "step_"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strncmp(name, others[i], strlen(others[i])) == 0) return true;
  return reserved_name(name) || (*name >= '0' && *name <= '9');
}

/* Returns a name that need not be unique: "features_2_1_batch_norm_relu" in a layer, "train_mean"
 * outside of layers, "opt_grad_norm" for an optimizer. After the first block, names begin with the
 * block. */
static const char *base_name(Compile *c, uint32_t group)
{
  const Graph *g = c->graph;
  const Node *n = group_main_node(g, group);
  const char *owner = n->layer ? layer_path(g, n->layer) : optimizer_name_of(g, n);
  const char *block = block_word(c, n->block), *ops = group_ops(c, group);
  const char *own = owner ? short_path(identifier(c->arena, owner)) : block;
  const char *name = arena_printf(c->arena, "%s_%s", own, ops);
  if (owner && n->block > 0) name = arena_printf(c->arena, "%s_%s", block, name);
  return is_odd(name) ? arena_printf(c->arena, "k_%s", name) : name;
}

typedef struct Taken {
  const char *name;
  bool back;  /* the command is in backward */
  uint32_t n; /* the last number that was appended to this name */
} Taken;
/* All names that are in use. */
typedef struct Names {
  Arena *arena;
  VEC(Taken) taken;
  NameIndex index;
} Names;

static Taken *find(Names *x, const char *name)
{
  uint32_t i = name_find(x->arena, &x->index, x->taken.at, x->taken.n, sizeof(Taken), name);
  return i == NO_NAME ? NULL : &x->taken.at[i];
}

/* Makes a name unique. In backward, appends "_back" if a forward command has it; else a number. */
static const char *give(Names *x, const char *base, bool back)
{
  Taken *first = find(x, base);
  if (first && back && !first->back) {
    base = arena_printf(x->arena, "%s_back", base);
    first = find(x, base);
  }
  const char *name = base;
  while (first && (name == base || find(x, name)))
    name = arena_printf(x->arena, "%s_%u", base, ++first->n);
  vec_push(x->arena, &x->taken, (Taken){name, back, 1});
  return name;
}

/* Returns the name of a command's own kernel; NULL: it has none. */
static const char *kernel_name(const Compile *c, const Command *k)
{
  if (k->kind == COMMAND_kernel) return k->name;
  if (!k->columns) return NULL;
  bool whole = ampc_conv_columns(&k->conv, c->options.real64).whole;
  return arena_printf(c->arena, "%s_%s", k->name, whole ? "whole" : "columns");
}

void name_commands(Compile *c, Command *all)
{
  Graph *g = c->graph;
  Names names = {.arena = c->arena};
  for (uint32_t i = 1; i < g->groups.n; i++) {
    all[i].name = give(&names, base_name(c, i), group_main_node(g, i)->origin.id != 0);
    all[i].kernel_name = kernel_name(c, &all[i]);
  }
}
