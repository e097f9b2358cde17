/* Prints what runs, in order: a step function for each block and batch size. */
#include "compiler/base/user_text.h"
#include "compiler/command/command.h"
#include "runtime/plan/commands.h"
#include "compiler/kernel/kernel.h"
#include "program_parts.h"
#include <string.h>

typedef struct Step { /* the step that is being printed */
  Printer *p;
  const ampc_program *program;
  Places *places;
  Products *products;
  uint32_t group;     /* group of the last command that has one, in the order of commands */
  const char *origin; /* the comment above the last command */
} Step;

/* ---- commands ---- */

/* Returns the counter of a loop at this depth. Strides of operands belong to the innermost loop;
 * outside of loops they lead from member to member. */
static const char *counter(Printer *p, uint32_t depth)
{
  if (!depth) return "member";
  return arena_printf(p->c->arena, "t%u", depth);
}

/* Returns where an operand is in its space: "at_relu26", a number if the place has no name, NULL at
 * the beginning of the space. The spaces of a step function are pointers to char, so offsets are
 * bytes. `depth`: the number of loops around the command. */
static const char *offset_text(const Step *s, ampc_operand o, Value v, uint32_t depth)
{
  Arena *arena = s->p->c->arena;
  const char *text = place_text(s->p, s->places, o.at, v);
  if (!text && o.at.offset) text = arena_printf(arena, "%lld", (long long)o.at.offset);
  if (!o.stride) return text;
  return arena_printf(arena, "%s%s%s * %lld", text ? text : "", text ? " + " : "",
                      counter(s->p, depth), (long long)o.stride);
}

/* Returns "work + at_relu26". */
static const char *address(const Step *s, ampc_operand o, Value v, uint32_t depth)
{
  if (o.at.space == AMPC_NONE) return "0";
  const char *space = ampc_space_of(o.at.space)->name, *offset = offset_text(s, o, v, depth);
  return offset ? arena_printf(s->p->c->arena, "%s + %s", space, offset) : space;
}

/* Returns the values of the n operands of a command. */
static const Value *values_of(const Step *s, const ampc_command *command, uint32_t n)
{
  Compile *c = s->p->c;
  Value *values = arena_array(c->arena, Value, n + 1);
  bool own = s->group && command_of(c->graph, s->group)->name == command->label;
  if (own) operand_values(c, s->group, command, values);
  return values;
}

/* Returns the addresses of the operands, or the numbers of a launch; each begins with ", ". */
static const char *operands_text(const Step *s, const ampc_command *command, uint32_t depth)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *operands;
  uint32_t n = ampc_command_operands(command, room, &operands);
  const Value *values = values_of(s, command, n);
  Text t = text_new(s->p->c->arena);
  bool is_launch = command->kind == AMPC_LAUNCH_KERNEL;
  for (uint32_t i = 0; i < n; i++) {
    if (is_launch && operands[i].at.space == AMPC_NONE)
      text_printf(&t, ", AMPC_NUMBER(%lld%s)", (long long)operands[i].at.offset,
                  operands[i].stride ? " + member" : "");
    else
      text_printf(&t, ", %s", address(s, operands[i], values[i], depth));
  }
  return t.at;
}

static void put_commands(Step *s, const ampc_command *commands, uint32_t n, uint32_t depth);

static void put_repeat(Step *s, const ampc_command *command, uint32_t depth)
{
  const char *t = counter(s->p, depth);
  EMIT(s->p, "for (long long %s = 0; %s < %lld; %s++) { /* %s */\n", t, t,
       (long long)command->as.repeat.count, t, command->label);
  s->p->indent++;
  put_commands(s, command->as.repeat.commands, command->as.repeat.n_commands, depth);
  s->p->indent--;
  EMIT(s->p, "}\n");
}

static const char next[] = "    "; /* begins further lines of a call */

static void put_launch(Step *s, const ampc_command *command, const char *operands)
{
  const ampc_launch *l = &command->as.launch;
  Printer *p = s->p;
  const char *kernel = s->program->kernels[l->kernel].name;
  if (l->library)
    EMIT_WRAPPED(p, next, "AMPC_ATTENTION(rt, %s, %s, K_%s, %u, %u%s);\n", command->label,
                 product_name(p, s->products, command), kernel, l->grid, l->block, operands);
  else
    EMIT_WRAPPED(p, next, "%s%s(rt, K_%s, %u, %u%s);\n", l->once ? "if (ampc_step_once(rt)) " : "",
                 l->deferred ? "AMPC_DEFER" : "AMPC_LAUNCH", kernel, l->grid, l->block, operands);
}

static void put_exchange(Step *s, const ampc_command *command, uint32_t depth)
{
  static const char *const kinds[] = {[AMPC_SUM] = "AMPC_SUM",
                                      [AMPC_SLICE] = "AMPC_SLICE",
                                      [AMPC_JOIN] = "AMPC_JOIN",
                                      [AMPC_GATHER] = "AMPC_GATHER",
                                      [AMPC_GATHER_WITH_NEXT] = "AMPC_GATHER_WITH_NEXT",
                                      [AMPC_CLEAR] = "AMPC_CLEAR"};
  static const char *const modes[] = {[AMPC_SUM_TREE] = "AMPC_SUM_TREE",
                                      [AMPC_SUM_FAST] = "AMPC_SUM_FAST",
                                      [AMPC_SUM_BF16] = "AMPC_SUM_BF16"};
  const ampc_exchange *x = &command->as.exchange.desc;
  ampc_operand at = command->as.exchange.at;
  const char *offset = offset_text(s, at, *values_of(s, command, 1), depth);
  EMIT_WRAPPED(s->p, next, "ampc_do_exchange(rt, %s, %s, %s, %lld, %s, %s, %s);\n", kinds[x->kind],
               modes[x->mode], ampc_type_of(x->type)->constant, (long long)x->count,
               x->closing ? "true" : "false", ampc_space_of(at.at.space)->constant,
               offset ? offset : "0");
}

/* Prints a command of the plan as one call in the step function, or as a loop. */
static void put_command(Step *s, const ampc_command *command, uint32_t depth)
{
  Printer *p = s->p;
  const char *operands = operands_text(s, command, depth);
  switch (command->kind) {
  case AMPC_LAUNCH_KERNEL:
    put_launch(s, command, operands);
    break;
  case AMPC_GEMM:
    EMIT_WRAPPED(p, next, "AMPC_GEMM(rt, %s, %s%s);\n", command->label,
                 product_name(p, s->products, command), operands);
    break;
  case AMPC_CONV:
    EMIT_WRAPPED(p, next, "AMPC_CONV(rt, %s, %s%s);\n", command->label,
                 product_name(p, s->products, command), operands);
    break;
  case AMPC_COPY:
    EMIT_WRAPPED(p, next, "ampc_do_copy(rt%s, %lld);\n", operands,
                 (long long)command->as.copy.bytes);
    break;
  case AMPC_FILL:
    EMIT_WRAPPED(p, next, "ampc_do_fill(rt%s, %u, %lld);\n", operands, command->as.fill.value,
                 (long long)command->as.fill.bytes);
    break;
  case AMPC_EXCHANGE:
    put_exchange(s, command, depth);
    break;
  case AMPC_REPEAT:
    put_repeat(s, command, depth + 1);
    break;
  }
}

/* Finds the spaces that the commands use. Only these spaces become local variables: unused
 * variables cause warnings. */
static void find_spaces(const ampc_command *commands, uint32_t n, bool *used)
{
  for (uint32_t i = 0; i < n; i++) {
    ampc_operand room[COMMAND_OPERANDS];
    const ampc_operand *operands;
    uint32_t n_operands = ampc_command_operands(&commands[i], room, &operands);
    bool local = commands[i].kind != AMPC_EXCHANGE;
    for (uint32_t k = 0; k < n_operands && local; k++) used[operands[k].at.space] = true;
    if (commands[i].kind == AMPC_REPEAT)
      find_spaces(commands[i].as.repeat.commands, commands[i].as.repeat.n_commands, used);
  }
}

/* Whether the place of an operand depends on the member. */
static bool moves_with_member(const ampc_step *s)
{
  for (uint32_t i = 0; i < s->n_commands; i++) {
    ampc_operand room[COMMAND_OPERANDS];
    const ampc_operand *operands;
    uint32_t n = ampc_command_operands(&s->commands[i], room, &operands);
    for (uint32_t k = 0; k < n; k++)
      if (operands[k].stride) return true;
  }
  return false;
}

/* ---- comments ---- */

/* Returns the group that became the command; 0 if the compiler added the command (poison). The
 * label of a command is the name of its group. */
static uint32_t group_of(const Step *s, const ampc_command *command)
{
  const Graph *g = s->p->c->graph;
  for (uint32_t i = s->group + 1; i < g->groups.n && command->kind != AMPC_FILL; i++)
    if (command_of(g, i)->name == command->label) return i;
  return 0;
}

/* Returns how much of "backward of h.0.mlp MLP" names the block of the net: "backward of h.0", up
 * to the last number of the path. Without a number it is the whole length. */
static size_t block_size(const char *owner)
{
  size_t size = 0;
  for (const char *s = owner; *s; s += strcspn(s, ". "), s += *s != 0) {
    size_t digits = strspn(s, "0123456789");
    if (digits && strchr(". ", s[digits])) size = (size_t)(s + digits - owner);
  }
  return size ? size : strlen(owner);
}

static bool same_block(const char *a, const char *b)
{
  size_t size = block_size(a);
  return size == block_size(b) && memcmp(a, b, size) == 0;
}

/* Prints a comment above the commands of a layer, or of an expression that is in no layer:
 *   // backward of features.2.1 BatchNorm2d, mlp.amp:17
 *   // cross_entropy(logits, label), mlp.amp:26
 * An empty line separates blocks of the net, such as the blocks of a transformer. */
static void put_origin(Step *s, const ampc_command *command)
{
  uint32_t group = group_of(s, command);
  if (!group) return;
  s->group = group;
  Compile *c = s->p->c;
  Origin o = origin_of(c, group, 80);
  const char *what = o.owner ? o.owner : o.text;
  bool same = s->origin && strcmp(what, s->origin) == 0;
  bool apart = !o.owner || !s->origin || !same_block(what, s->origin);
  if (*what && !same)
    EMIT(s->p, "%s// %s%s%s\n", apart ? "\n" : "", what, *o.place ? ", " : "", o.place);
  s->origin = what;
}

/* Returns where the part that begins at command i ends. */
static uint32_t step_part_end(const ampc_step *s, uint32_t i)
{
  while (i < s->n_commands && s->commands[i].kind != AMPC_EXCHANGE) i++;
  return i < s->n_commands ? i + 1 : i;
}

uint32_t step_parts(const ampc_step *s)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n_commands; i = step_part_end(s, i)) n++;
  return n;
}

/* Prints the parts of a member's step as cases of a switch. */
static void put_parts(Step *s, const ampc_step *step)
{
  uint32_t n = 0;
  EMIT(s->p, "switch (ampc_step_part(rt)) {\n");
  for (uint32_t i = 0, end; i < step->n_commands; i = end) {
    end = step_part_end(step, i);
    EMIT(s->p, "case %u:\n", n++);
    s->p->indent++;
    put_commands(s, step->commands + i, end - i, 0);
    EMIT(s->p, "break;\n");
    s->p->indent--;
  }
  EMIT(s->p, "}\n");
}

static void put_commands(Step *s, const ampc_command *commands, uint32_t n, uint32_t depth)
{
  for (uint32_t i = 0; i < n; i++) {
    put_origin(s, &commands[i]);
    put_command(s, &commands[i], depth);
  }
}

/* ---- a step ---- */

/* True if the block's name can be used unchanged. A name may be any text. If it is not an
 * identifier, or ends like a number of ampc, the block's number is appended, so that identifiers
 * differ. */
static bool is_own_identifier(const char *name, const char *made)
{
  const char *last = strrchr(name, '_');
  bool numbered = last && last[1] && last[1 + strspn(last + 1, "0123456789")] == 0;
  return strcmp(name, made) == 0 && !numbered;
}

/* Returns the step's name. A variant adds a suffix such as "every2and3", unlike any other name. */
const char *step_name(Printer *p, const ampc_block *b, const ampc_step *s)
{
  Arena *a = p->c->arena;
  const char *made = identifier(a, b->name);
  if (!is_own_identifier(b->name, made))
    made = arena_printf(a, "%.40s_%u", made, (unsigned)(b - p->c->program->blocks));
  const char *share =
      s->share ? arena_printf(a, "_%s%lld", s->idle ? "idle" : "of", (long long)s->share) : "";
  return arena_printf(a, "step_%s_%lld%s%s%s", made, (long long)s->batch, share,
                      s->fires ? "_" : "", ir_fires_text(a, b->period, b->n_periods, s->fires, ""));
}

/* Prints the function of one block at one batch size:
 *   static void step_train_32(ampc_runtime *rt)
 *   {
 *     char *const work = ampc_spaces(rt)[AMPC_WORK];
 *     const long long at_cast13 = 512; // f16[32, 784], 50176 bytes, commands 1 to 2
 *     AMPC_LAUNCH(rt, K_fc1_cast, 4, 256, input, work + at_cast13); */
void put_step(Printer *p, const ParamPlaces *params, Products *products, const ampc_block *b,
              const ampc_step *s)
{
  bool used[AMPC_SPACE_COUNT] = {false};
  Step step = {.p = p,
               .program = p->c->program,
               .places = places_create(p, params, s),
               .products = products};
  find_spaces(s->commands, s->n_commands, used);
  EMIT(p, "\n/* block %s, batch %lld%s%s: %u commands */\n", comment_of(p, b->name),
       (long long)s->batch, s->fires ? ", " : "",
       ir_fires_text(p->c->arena, b->period, b->n_periods, s->fires, " "), s->n_commands);
  put_products(p, products, s->commands, s->n_commands);
  EMIT(p, "\nstatic void %s(ampc_runtime *rt)\n{\n", step_name(p, b, s));
  p->indent++;
  for (ampc_space i = AMPC_STATE; i < AMPC_SPACE_COUNT; i++) {
    if (used[i])
      EMIT(p, "char *const %s = ampc_spaces(rt)[%s];\n", ampc_space_of(i)->name,
           ampc_space_of(i)->constant);
  }
  if (moves_with_member(s)) EMIT(p, "const long long member = ampc_step_member(rt);\n");
  put_places(p, step.places);
  if (p->c->program->members > 1)
    put_parts(&step, s);
  else
    put_commands(&step, s->commands, s->n_commands, 0);
  p->indent--;
  EMIT(p, "}\n");
}
