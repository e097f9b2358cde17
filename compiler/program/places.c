/* Names places in memory. An operand of a step function is a space and an offset in it:
 *   work + at_relu26             bytes; a table at the head of the function lists them
 *   master + 4 * p_fc1_weight    elements times their size, for all spaces laid out as MASTER
 *   buffer + b_bn_running_mean   bytes
 *   state + s_opt_lr             bytes */
#include "ampc_metrics.h"
#include "compiler/base/user_text.h"
#include "compiler/command/command.h"
#include "runtime/plan/commands.h"
#include "ampc_state.h"
#include "compiler/base/names.h"
#include "program_parts.h"
#include <stdlib.h>
#include <string.h>

typedef struct NamedPlace { /* a place in WORK or STATE */
  const char *name;         /* NameIndex needs it first */
  ampc_space space;
  int64_t offset;
  Value value;       /* {0}: scratch, or a number in STATE */
  uint32_t from, to; /* the first and last command that use it, counted from 1 */
  uint32_t next; /* 1 + index of the previous place of this value (scratch: of scratch); 0: none */
} NamedPlace;

struct Places {
  VEC(NamedPlace) at; /* places of STATE come first */
  NameIndex names;
  uint32_t n_states;
  /* node -> 1 + index of its last place. Node 0 is scratch, which many commands share. */
  uint32_t *last;
  uint32_t n_scratch;
  const ParamPlaces *params;
};

typedef struct ParamPlace {
  const char *name; /* NameIndex needs it first */
  int64_t offset;
  char kind; /* 'p': a parameter, 'b': a buffer, 's': a share */
} ParamPlace;

struct ParamPlaces {
  /* at: all in the program's order; sorted: those with elements, by kind and offset */
  ParamPlace *at, **sorted;
  uint32_t n_sorted;
};

/* ---- parameters ---- */

static int by_offset(const void *left, const void *right)
{
  const ParamPlace *a = *(ParamPlace *const *)left, *b = *(ParamPlace *const *)right;
  if (a->kind != b->kind) return a->kind - b->kind;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

static const char *share_name(Compile *c, const ampc_param *q)
{
  return arena_printf(c->arena, "%s.%s", q->path, c->program->optimizers[q->optimizer].name);
}

/* Names all parameters. If two paths give one identifier, the second gets its index as suffix. */
ParamPlaces *param_places_create(Compile *c)
{
  const ampc_program *g = c->program;
  ParamPlaces *x = arena_new(c->arena, ParamPlaces);
  uint32_t n = g->n_params + g->n_shares;
  NameIndex index = {0};
  struct Own {
    const char *name;
  } *own = arena_alloc(c->arena, (n + 1) * sizeof *own, _Alignof(struct Own));
  x->at = arena_array(c->arena, ParamPlace, n + 1);
  x->sorted = arena_array(c->arena, ParamPlace *, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    bool share = i >= g->n_params;
    const ampc_param *q = share ? &g->shares[i - g->n_params] : &g->params[i];
    char kind = share ? 's' : q->buffer ? 'b' : 'p', letter = q->buffer ? 'b' : 'p';
    own[i].name = identifier(c->arena, share ? share_name(c, q) : q->path);
    bool again = name_find(c->arena, &index, own, i + 1, sizeof *own, own[i].name) < i;
    const char *name = again ? arena_printf(c->arena, "%c_%s__%u", letter, own[i].name, i)
                             : arena_printf(c->arena, "%c_%s", letter, own[i].name);
    x->at[i] = (ParamPlace){name, q->offset, kind};
    if (q->elements) x->sorted[x->n_sorted++] = &x->at[i];
  }
  qsort(x->sorted, x->n_sorted, sizeof *x->sorted, by_offset);
  return x;
}

const char *param_place(const ParamPlaces *x, uint32_t i)
{
  return x->at[i].name;
}

void put_param_places(Printer *p, const ParamPlaces *x, const ampc_program *g)
{
  EMIT(p,
       "/* Offsets of parameters. p_: in elements of MASTER, %sGRAD, MOMENT1, MOMENT2, COPY16 and "
       "COPYBF;\n"
       "   b_: in bytes of BUFFER. %s*/\nenum {\n",
       g->space_bytes[AMPC_RESIDUE] ? "RESIDUE, " : "",
       g->n_shares ? "With an optimizer's name: its own share of a parameter that has\n"
                     "   several optimizers, in elements of GRAD and of the moments. "
                   : "");
  for (uint32_t i = 0; i < g->n_params + g->n_shares; i++)
    EMIT(p, "  %s = %lld,\n", x->at[i].name, (long long)x->at[i].offset);
  EMIT(p, "};\n\n");
}

/* Returns the name of the parameter that begins at the offset, or NULL. */
static const char *param_at(const ParamPlaces *x, char kind, int64_t offset)
{
  ParamPlace wanted = {NULL, offset, kind}, *key = &wanted;
  ParamPlace **found =
      x->n_sorted ? bsearch(&key, x->sorted, x->n_sorted, sizeof *x->sorted, by_offset) : NULL;
  return found ? (*found)->name : NULL;
}

/* ---- what operands are ---- */

void operand_values(Compile *c, uint32_t group, const ampc_command *k, Value *out)
{
  const Command *own = command_of(c->graph, group);
  if (k->kind == AMPC_LAUNCH_KERNEL) {
    const KernelArgs *args = &own->whole.args;
    for (uint32_t i = 0; i < args->n; i++) out[i] = args->at[i].value;
  } else if (k->kind == AMPC_GEMM || k->kind == AMPC_CONV) {
    memcpy(out, own->operands, sizeof own->operands);
  } else if (own->kind == COMMAND_exchange) {
    /* one of two commands: a copy to the place of the result, or the exchange there */
    Value v = c->graph->groups.at[group].anchor;
    const Node *n = ir_node(c->graph, v);
    if (n->n_in) out[0] = v;
    if (k->kind == AMPC_COPY) out[1] = n->in[0];
  }
}

static const char *value_text(Compile *c, Value v)
{
  const Node *n = ir_node(c->graph, v);
  if (!n->name || !*n->name) return arena_printf(c->arena, "at_%s%u", op_of(n)->name, v.id);
  return arena_printf(c->arena, "at_%s", identifier(c->arena, n->name));
}

/* Returns the place with this name, or NULL. */
static NamedPlace *named(Printer *p, Places *x, const char *name)
{
  uint32_t i = name_find(p->c->arena, &x->names, x->at.at, x->at.n, sizeof *x->at.at, name);
  return i == NO_NAME ? NULL : &x->at.at[i];
}

/* Returns the name, with a suffix if another place already has it. */
static const char *free_name(Printer *p, Places *x, const char *name, int64_t number)
{
  while (named(p, x, name)) name = arena_printf(p->c->arena, "%s_%lld", name, (long long)number);
  return name;
}

/* Returns the place of the value, or of scratch, at the offset; NULL if it is not known yet. */
static NamedPlace *known_place(Places *x, int64_t offset, Value v)
{
  for (uint32_t i = x->last[v.id]; i; i = x->at.at[i - 1].next)
    if (x->at.at[i - 1].offset == offset) return &x->at.at[i - 1];
  return NULL;
}

/* Records that command number `at` uses a value or scratch. */
static void see(Printer *p, Places *x, ampc_ref ref, Value v, uint32_t at)
{
  Compile *c = p->c;
  v = value_root(c->graph, v);
  NamedPlace *known = known_place(x, ref.offset, v);
  if (known) {
    known->to = at;
    return;
  }
  const char *name =
      v.id ? value_text(c, v) : arena_printf(c->arena, "at_scratch%u", ++x->n_scratch);
  name = free_name(p, x, name, v.id);
  vec_push(c->arena, &x->at, (NamedPlace){name, ref.space, ref.offset, v, at, at, x->last[v.id]});
  x->last[v.id] = x->at.n;
}

static void see_command(Printer *p, Places *x, uint32_t group, const ampc_command *k, uint32_t at)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *operands;
  uint32_t n = ampc_command_operands(k, room, &operands);
  Value *values = arena_array(p->c->arena, Value, n + 1);
  operand_values(p->c, group, k, values);
  for (uint32_t i = 0; i < n; i++)
    if (operands[i].at.space == AMPC_WORK) see(p, x, operands[i].at, values[i], at);
  if (k->kind != AMPC_LAUNCH_KERNEL) return;
  const KernelArgs *args = &command_of(p->c->graph, group)->whole.args;
  for (uint32_t i = 0; i < args->n; i++) /* the value that a result overwrites is read until here */
    for (uint32_t j = args->at[i].over.id ? x->last[args->at[i].over.id] : 0; j;
         j = x->at.at[j - 1].next)
      x->at.at[j - 1].to = at;
}

/* ---- STATE ---- */

static void name_state(Printer *p, Places *x, const char *name, int64_t offset)
{
  const char *own = arena_printf(p->c->arena, "s_%s", identifier(p->c->arena, name));
  own = free_name(p, x, own, offset);
  vec_push(p->c->arena, &x->at, (NamedPlace){.name = own, .space = AMPC_STATE, .offset = offset});
}

static void name_states(Printer *p, Places *x, const ampc_program *g)
{
  name_state(p, x, "scale", (int64_t)offsetof(ampc_state, scale));
  for (uint32_t i = 0; i < g->n_optimizers; i++)
    name_state(p, x, g->optimizers[i].name, ampc_state_optimizer(i));
  for (uint32_t i = 0; i < g->n_metrics; i++)
    name_state(p, x, g->metrics[i].name,
               ampc_state_metric(g->n_optimizers, ampc_metric_slots(g->metrics, i)));
  uint32_t slots = ampc_metric_slots(g->metrics, g->n_metrics);
  for (uint32_t i = 0; i < g->n_settings; i++)
    name_state(p, x, g->settings[i].name, ampc_state_setting(g->n_optimizers, slots, i));
  x->n_states = x->at.n;
}

/* Marks the places of STATE that operands use. Other places are not printed: unused constants cause
 * warnings. */
static void see_states(Places *x, const ampc_command *k, uint32_t at)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *operands;
  uint32_t n = ampc_command_operands(k, room, &operands);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t s = 0; operands[i].at.space == AMPC_STATE && s < x->n_states; s++)
      if (x->at.at[s].offset == operands[i].at.offset) x->at.at[s].to = at;
}

/* ---- a step ---- */

Places *places_create(Printer *p, const ParamPlaces *params, const ampc_step *s)
{
  Places *x = arena_new(p->c->arena, Places);
  const Graph *g = p->c->graph;
  x->params = params;
  x->last = arena_array(p->c->arena, uint32_t, g->nodes.n);
  name_states(p, x, p->c->program);
  uint32_t group = 1;
  for (uint32_t i = 0; i < s->n_commands; i++) {
    const ampc_command *k = &s->commands[i];
    see_states(x, k, i + 1);
    uint32_t own = group; /* groups are in the order of commands; a label is the name of a group */
    while (own < g->groups.n && command_of(g, own)->name != k->label) own++;
    if (own == g->groups.n) continue;
    see_command(p, x, own, k, i + 1);
    group = own;
  }
  return x;
}

/* Returns "f16[128, 512], 131072 bytes, commands 3 to 17", or "f16[128, 10] in rows of 16, 4096
 * bytes, commands 15 to 16" if rows have gaps: Note [pitch]. */
static const char *about(Compile *c, const NamedPlace *x)
{
  const char *life = x->from == x->to ? arena_printf(c->arena, "command %u", x->from)
                                      : arena_printf(c->arena, "commands %u to %u", x->from, x->to);
  if (!x->value.id) return arena_printf(c->arena, "scratch, %s", life);
  const Node *n = ir_node(c->graph, x->value);
  const char *rows =
      n->pitch ? arena_printf(c->arena, " in rows of %lld", (long long)n->pitch) : "";
  return arena_printf(c->arena, "%s%s, %lld bytes, %s", ir_type_text(c, n), rows,
                      (long long)ir_room_bytes(c, n), life);
}

static void put_space(Printer *p, const Places *x, ampc_space space, const char *title)
{
  bool headed = false;
  for (uint32_t i = 0; i < x->at.n; i++) {
    const NamedPlace *place = &x->at.at[i];
    if (place->space != space || !place->to) continue;
    if (!headed) EMIT(p, "\n// %s\n", title);
    headed = true;
    const char *line = arena_printf(p->c->arena, "const long long %s = %lld;", place->name,
                                    (long long)place->offset);
    if (space == AMPC_WORK)
      EMIT(p, "%-56s // %s\n", line, about(p->c, place));
    else
      EMIT(p, "%s\n", line);
  }
}

void put_places(Printer *p, const Places *x)
{
  put_space(p, x, AMPC_STATE,
            "Places in STATE, in bytes: the loss scale, optimizers, metrics, settings.");
  put_space(p, x, AMPC_WORK,
            "Places in WORK, in bytes; the value there and the commands that use it.");
}

/* ---- operands ---- */

static const char *name_in(Places *x, ampc_ref at, Value v)
{
  if (at.space == AMPC_WORK) {
    const NamedPlace *known = known_place(x, at.offset, v);
    return known ? known->name : NULL;
  }
  for (uint32_t i = 0; i < x->n_states; i++)
    if (x->at.at[i].offset == at.offset) return x->at.at[i].name;
  return NULL;
}

/* Returns the text of an operand that is not a value, but the range of an optimizer: the whole
 * space, or from a parameter on. */
static const char *flat_text(Printer *p, const ParamPlaces *params, ampc_ref at, Value v)
{
  if (!v.id && !at.offset) return NULL;
  int64_t size = ir_dtype_size(p->c, ampc_space_type(p->c->program, at.space));
  bool weights = ampc_space_is_shared(at.space);
  if (at.offset % size) return NULL;
  const char *name = weights ? NULL : param_at(params, 's', at.offset / size);
  if (!name) name = param_at(params, 'p', at.offset / size);
  if (!name) return NULL;
  const char *wide = at.offset > INT32_MAX ? "ll" : ""; /* the constant of an enum is an int */
  return arena_printf(p->c->arena, "%lld%s * %s", (long long)size, wide, name);
}

const char *place_text(Printer *p, Places *x, ampc_ref at, Value v)
{
  if (ampc_space_of(at.space)->type != AMPC_DTYPE_COUNT) return flat_text(p, x->params, at, v);
  switch (at.space) {
  case AMPC_BUFFER:
  case AMPC_KEPT: /* those of the cache have no names */
    return param_at(x->params, 'b', at.offset);
  case AMPC_STATE:
  case AMPC_WORK:
    return name_in(x, at, value_root(p->c->graph, v));
  default:
    return NULL;
  }
}
