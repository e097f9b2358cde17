/* Places in memory by name. A step function's operands are a space and where in it they lie:
 *   work + at_relu26             bytes; the table at the head of the function says what is there
 *   master + 4 * p_fc1_weight    elements times their size, for all spaces that lie as MASTER does
 *   buffer + b_bn_running_mean   bytes
 *   state + s_opt_lr             bytes */
#include "compiler/base/user_text.h"
#include "compiler/command/command.h"
#include "runtime/plan/commands.h"
#include "ampc_state.h"
#include "program_parts.h"
#include <string.h>

typedef struct NamedPlace { /* of WORK or STATE */
  const char *name;
  ampc_space space;
  int64_t offset;
  Value value;         /* {0}: scratch, or a part of STATE */
  const char *scratch; /* the command whose scratch it is, or NULL */
  uint32_t from, to;   /* commands, from 1 */
} NamedPlace;

struct Places {
  VEC(NamedPlace) at;
};

/* ---- parameters ---- */

/* Two paths may give one identifier: the second has its index behind it. */
const char *param_place(Printer *p, const ampc_program *g, uint32_t i)
{
  const char *own = identifier(p->c->arena, g->params[i].path);
  bool again = false;
  for (uint32_t k = 0; k < i && !again; k++)
    again = strcmp(identifier(p->c->arena, g->params[k].path), own) == 0;
  const char *letter = g->params[i].buffer ? "b" : "p";
  if (!again) return arena_printf(p->c->arena, "%s_%s", letter, own);
  return arena_printf(p->c->arena, "%s_%s__%u", letter, own, i);
}

void put_param_places(Printer *p, const ampc_program *g)
{
  if (!g->n_params) return;
  EMIT(p, "/* Where parameters lie. p_: elements of MASTER, GRAD, MOMENT1, MOMENT2, COPY16 and "
          "COPYBF;\n"
          "   b_: bytes of BUFFER. */\nenum {\n");
  for (uint32_t i = 0; i < g->n_params; i++)
    EMIT(p, "  %s = %lld,\n", param_place(p, g, i), (long long)g->params[i].offset);
  EMIT(p, "};\n\n");
}

/* The parameter that begins there; NULL: none does. */
static const char *param_at(Printer *p, const ampc_program *g, bool buffer, int64_t offset)
{
  for (uint32_t i = 0; i < g->n_params; i++)
    if (g->params[i].buffer == buffer && g->params[i].offset == offset && g->params[i].elements)
      return param_place(p, g, i);
  return NULL;
}

/* ---- what operands are ---- */

void operand_values(Compile *c, uint32_t group, const ampc_command *k, Value *out)
{
  if (k->kind == AMPC_LAUNCH_KERNEL) {
    KernelArgs args = kernel_args(c, group);
    for (uint32_t i = 0; i < args.n; i++) out[i] = args.at[i].value;
  } else if (k->kind == AMPC_GEMM) {
    Product v = product_of(c, group);
    memcpy(out, (Value[]){v.a, v.b, v.bias, v.c, {0}}, 5 * sizeof(Value));
  } else if (k->kind == AMPC_CONV) {
    Convolution v = convolution_of(c, group);
    memcpy(out, (Value[]){v.x, v.w, v.bias, v.y, {0}}, 5 * sizeof(Value));
  }
}

static const char *value_text(Compile *c, Value v)
{
  const Node *n = ir_node(c->graph, v);
  if (!n->name || !*n->name) return arena_printf(c->arena, "at_%s%u", op_of(n)->name, v.id);
  return arena_printf(c->arena, "at_%s", identifier(c->arena, n->name));
}

static bool is_taken(const Places *x, const char *name)
{
  for (uint32_t i = 0; i < x->at.n; i++)
    if (strcmp(x->at.at[i].name, name) == 0) return true;
  return false;
}

/* A value, or scratch, is used by command number `at`. */
static void see(Printer *p, Places *x, ampc_ref ref, Value v, const char *scratch, uint32_t at)
{
  Compile *c = p->c;
  v = value_root(c->graph, v);
  for (uint32_t i = 0; i < x->at.n; i++) {
    NamedPlace *known = &x->at.at[i];
    bool same = v.id ? known->value.id == v.id : known->scratch == scratch;
    if (!same || known->offset != ref.offset) continue;
    known->to = at;
    return;
  }
  const char *name = v.id ? value_text(c, v) : arena_printf(c->arena, "at_scratch_of_%s", scratch);
  while (is_taken(x, name)) name = arena_printf(c->arena, "%s_%u", name, v.id);
  vec_push(c->arena, &x->at, (NamedPlace){name, ref.space, ref.offset, v, scratch, at, at});
}

static void see_command(Printer *p, Places *x, uint32_t group, const ampc_command *k, uint32_t at)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *operands;
  uint32_t n = ampc_command_operands(k, room, &operands);
  Value *values = arena_array(p->c->arena, Value, n + 1);
  operand_values(p->c, group, k, values);
  for (uint32_t i = 0; i < n; i++)
    if (operands[i].at.space == AMPC_WORK)
      see(p, x, operands[i].at, values[i], values[i].id ? NULL : k->label, at);
  if (k->kind != AMPC_LAUNCH_KERNEL) return;
  KernelArgs args = kernel_args(p->c, group);
  for (uint32_t i = 0; i < args.n; i++) /* what a result is written over is read until here */
    for (uint32_t j = 0; j < x->at.n && args.at[i].over.id; j++)
      if (x->at.at[j].value.id == args.at[i].over.id) x->at.at[j].to = at;
}

/* ---- STATE ---- */

static void name_state(Printer *p, Places *x, const char *name, int64_t offset)
{
  const char *own = arena_printf(p->c->arena, "s_%s", identifier(p->c->arena, name));
  while (is_taken(x, own)) own = arena_printf(p->c->arena, "%s_%lld", own, (long long)offset);
  vec_push(p->c->arena, &x->at, (NamedPlace){.name = own, .space = AMPC_STATE, .offset = offset});
}

static void name_states(Printer *p, Places *x, const ampc_program *g)
{
  name_state(p, x, "scale", (int64_t)offsetof(ampc_state, scale));
  for (uint32_t i = 0; i < g->n_optimizers; i++)
    name_state(p, x, g->optimizers[i].name, ampc_state_optimizer(i));
  for (uint32_t i = 0; i < g->n_metrics; i++)
    name_state(p, x, g->metrics[i].name, ampc_state_metric(g->n_optimizers, i));
  for (uint32_t i = 0; i < g->n_settings; i++)
    name_state(p, x, g->settings[i].name, ampc_state_setting(g->n_optimizers, g->n_metrics, i));
}

/* Only those that an operand names are printed: others would be warnings. */
static void see_states(Places *x, const ampc_command *k, uint32_t at)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *operands;
  uint32_t n = ampc_command_operands(k, room, &operands);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t s = 0; operands[i].at.space == AMPC_STATE && s < x->at.n; s++) {
      NamedPlace *place = &x->at.at[s];
      if (place->space == AMPC_STATE && place->offset == operands[i].at.offset) place->to = at;
    }
}

/* ---- a step ---- */

Places *places_create(Printer *p, const ampc_step *s)
{
  Places *x = arena_new(p->c->arena, Places);
  const Graph *g = p->c->graph;
  name_states(p, x, p->c->program);
  uint32_t group = 1;
  for (uint32_t i = 0; i < s->n_commands; i++) {
    const ampc_command *k = &s->commands[i];
    see_states(x, k, i + 1);
    uint32_t own = group; /* groups are in the order of commands; a label is a group's name */
    while (own < g->groups.n && g->groups.at[own].name != k->label) own++;
    if (own == g->groups.n) continue;
    see_command(p, x, own, k, i + 1);
    group = own;
  }
  return x;
}

/* "f16[128, 512], 131072 bytes, commands 3 to 17" */
static const char *about(Compile *c, const NamedPlace *x)
{
  const char *life = x->from == x->to ? arena_printf(c->arena, "command %u", x->from)
                                      : arena_printf(c->arena, "commands %u to %u", x->from, x->to);
  if (!x->value.id) return life;
  const Node *n = ir_node(c->graph, x->value);
  return arena_printf(c->arena, "%s, %lld bytes, %s", ir_type_text(c, n), (long long)ir_bytes(c, n),
                      life);
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
            "Places in WORK, in bytes: what lies there, from its first command to its last.");
}

/* ---- operands ---- */

static const char *name_in(const Places *x, ampc_ref at, Value v, const char *label)
{
  for (uint32_t i = 0; i < x->at.n; i++) {
    const NamedPlace *place = &x->at.at[i];
    if (place->space != at.space || place->offset != at.offset) continue;
    if (at.space == AMPC_STATE) return place->name;
    if (v.id ? place->value.id == v.id : place->scratch && place->scratch == label)
      return place->name;
  }
  return NULL;
}

/* What is no value is an optimizer's range: all of the space, or from some parameter on. */
static const char *flat_text(Printer *p, ampc_ref at, Value v)
{
  if (!v.id && !at.offset) return NULL;
  const ampc_program *g = p->c->program;
  bool half = at.space == AMPC_COPY16 || at.space == AMPC_COPYBF;
  int64_t size = half ? 2 : ir_dtype_size(p->c, AMPC_F32);
  const char *name = at.offset % size ? NULL : param_at(p, g, false, at.offset / size);
  if (!name) return NULL;
  const char *wide = at.offset > INT32_MAX ? "ll" : ""; /* of an enum's constant, an int */
  return arena_printf(p->c->arena, "%s + %lld%s * %s", space_names[at.space], (long long)size, wide,
                      name);
}

/* "work + at_relu26"; NULL: no name is known. */
const char *place_text(Printer *p, const Places *x, ampc_ref at, Value v, const char *label)
{
  const char *name = NULL;
  switch (at.space) {
  case AMPC_MASTER:
  case AMPC_COPY16:
  case AMPC_COPYBF:
  case AMPC_GRAD:
  case AMPC_MOMENT1:
  case AMPC_MOMENT2:
    return flat_text(p, at, v);
  case AMPC_BUFFER:
    name = param_at(p, p->c->program, true, at.offset);
    break;
  case AMPC_STATE:
  case AMPC_WORK:
    name = name_in(x, at, value_root(p->c->graph, v), label);
    break;
  default:
    break;
  }
  return name ? arena_printf(p->c->arena, "%s + %s", space_names[at.space], name) : NULL;
}
