/* The host half of an emitted program: tables, one step function a block and batch size, main().
 *
 * The text is C and C++ alike: tables are initialised in order, with a comment to a line. */
#include "compiler/command/command.h"
#include "runtime/plan/commands.h"
#include "emit.h"
#include "kernel.h"
#include "seal.h"
#include "user_text.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const spaces[AMPC_SPACE_COUNT] = {
    [AMPC_NONE] = "",           [AMPC_STATE] = "state",     [AMPC_MASTER] = "master",
    [AMPC_COPY16] = "copy16",   [AMPC_COPYBF] = "copybf",   [AMPC_GRAD] = "grad",
    [AMPC_MOMENT1] = "moment1", [AMPC_MOMENT2] = "moment2", [AMPC_BUFFER] = "buffer",
    [AMPC_INPUT] = "input",     [AMPC_WORK] = "work"};
static const char *const space_enums[AMPC_SPACE_COUNT] = {
    "AMPC_NONE",    "AMPC_STATE",   "AMPC_MASTER", "AMPC_COPY16", "AMPC_COPYBF", "AMPC_GRAD",
    "AMPC_MOMENT1", "AMPC_MOMENT2", "AMPC_BUFFER", "AMPC_INPUT",  "AMPC_WORK"};
static const char *const dtypes[AMPC_DTYPE_COUNT] = {
    [AMPC_F32] = "AMPC_F32",  [AMPC_F16] = "AMPC_F16", [AMPC_BF16] = "AMPC_BF16",
    [AMPC_I32] = "AMPC_I32",  [AMPC_I64] = "AMPC_I64", [AMPC_U8] = "AMPC_U8",
    [AMPC_BOOL] = "AMPC_BOOL"};

/* ---- values as C ---- */

static const char *quoted(Printer *p, const char *s)
{
  return string_literal(p->c->arena, s);
}

static const char *comment_of(Printer *p, const char *name)
{
  return comment_text(p->c->arena, name, strlen(name), 200);
}

/* C has no literal for infinity. */
static const char *number(Printer *p, double v)
{
  if (isinf(v)) return v > 0 ? "(1.0 / 0.0)" : "(-1.0 / 0.0)";
  for (int digits = 6; digits < 17; digits++) { /* the shortest form that reads back the same */
    const char *s = arena_printf(p->c->arena, "%.*g", digits, v);
    if (strtod(s, NULL) == v) return s;
  }
  return arena_printf(p->c->arena, "%.17g", v);
}

static const char *truth(bool b)
{
  return b ? "true" : "false";
}

/* A scalar has no sizes, but C has no empty initialiser. */
static const char *dims(Printer *p, const int64_t *dim, uint32_t rank)
{
  Text t;
  text_init(&t, p->c->arena);
  text_puts(&t, "{");
  for (uint32_t i = 0; i < rank; i++) text_printf(&t, "%s%lld", i ? ", " : "", (long long)dim[i]);
  text_puts(&t, rank ? "}" : "0}");
  return t.at;
}

/* The counter of a loop that is so deep in others: an operand's stride goes with the innermost. */
static const char *counter(Printer *p, uint32_t depth)
{
  return arena_printf(p->c->arena, "t%u", depth);
}

/* "work + 4096": the spaces are char * in a step function, so offsets are bytes. `depth`: number of
 * loops around the command. */
static const char *address(Printer *p, ampc_operand o, uint32_t depth)
{
  if (o.at.space == AMPC_NONE) return "0";
  const char *text = spaces[o.at.space];
  if (o.at.offset) text = arena_printf(p->c->arena, "%s + %lld", text, (long long)o.at.offset);
  if (!depth || !o.stride) return text;
  return arena_printf(p->c->arena, "%s + %s * %lld", text, counter(p, depth), (long long)o.stride);
}

/* ---- tables ---- */

static const char *init_bounds(Printer *p, const ampc_init *init)
{
  if (init->kind != AMPC_INIT_TRUNC_NORMAL) return "";
  return arena_printf(p->c->arena, ", %s, %s", number(p, init->low), number(p, init->high));
}

/* The tables are those of ampc_plan.h, field by field in the order of the structs. */
static void put_params(Printer *p, const ampc_program *g)
{
  static const char *const kinds[] = {
      "AMPC_INIT_CONSTANT", "AMPC_INIT_UNIFORM", "AMPC_INIT_NORMAL",    "AMPC_INIT_TRUNC_NORMAL",
      "AMPC_INIT_EYE",      "AMPC_INIT_DIRAC",   "AMPC_INIT_ORTHOGONAL"};
  if (!g->n_params) return;
  EMIT(p, "/* name, buffer, optimizer, type, rank, shape, elements, offset, initial value */\n");
  EMIT(p, "static const ampc_param params[] = {\n");
  for (uint32_t i = 0; i < g->n_params; i++) {
    const ampc_param *q = &g->params[i];
    EMIT(p, "  {%s, %s, %d, %s, %u, %s, %lld, %lld, {%s, %s, %s%s}},\n", quoted(p, q->path),
         truth(q->buffer), q->optimizer, dtypes[q->dtype], q->rank, dims(p, q->dim, q->rank),
         (long long)q->elements, (long long)q->offset, kinds[q->init.kind], number(p, q->init.a),
         number(p, q->init.b), init_bounds(p, &q->init));
  }
  EMIT(p, "};\n");
}

static void put_optimizers(Printer *p, const ampc_program *g)
{
  if (!g->n_optimizers) return;
  EMIT(p, "/* name, kind, first element, elements, moment 1, moment 2 */\n");
  EMIT(p, "static const ampc_optimizer_desc optimizers[] = {\n");
  for (uint32_t i = 0; i < g->n_optimizers; i++) {
    const ampc_optimizer_desc *o = &g->optimizers[i];
    EMIT(p, "  {%s, %s, %lld, %lld, %s, %s},\n", quoted(p, o->name), quoted(p, o->kind),
         (long long)o->first, (long long)o->count, truth(o->uses_moment1), truth(o->uses_moment2));
  }
  EMIT(p, "};\n");
}

static const char *domain_name(ampc_domain domain)
{
  static const char *const names[AMPC_DOMAIN_COUNT] = {
#define ROW(DOMAIN) "AMPC_" #DOMAIN,
      AMPC_DOMAINS(ROW)
#undef ROW
  };
  return names[domain];
}

static void put_settings(Printer *p, const ampc_program *g)
{
  if (g->n_settings) {
    EMIT(p, "/* numbers that stay data: --set changes them */\n");
    EMIT(p, "static const ampc_setting settings[] = {\n");
    for (uint32_t i = 0; i < g->n_settings; i++)
      EMIT(p, "  {%s, %s, %s},\n", quoted(p, g->settings[i].name), number(p, g->settings[i].value),
           domain_name(g->settings[i].domain));
    EMIT(p, "};\n");
  }
  if (!g->n_metrics) return;
  EMIT(p, "static const ampc_metric_desc metrics[] = {\n");
  for (uint32_t i = 0; i < g->n_metrics; i++)
    EMIT(p, "  {%s, %s},\n", quoted(p, g->metrics[i].name), truth(g->metrics[i].is_loss));
  EMIT(p, "};\n");
}

static void put_sources(Printer *p, const ampc_program *g)
{
  static const char *const kinds[] = {
#define ROW(KIND, name) "AMPC_SOURCE_" #KIND,
      AMPC_FORMATS(ROW) ROW(ARGUMENT, argument)
#undef ROW
  };
  if (!g->n_sources) return;
  EMIT(
      p,
      "/* kind, path, type, rank and shape of a sample, samples, part, limit, value beside it and\n"
      "   its reason, offset in a batch, low, high, stream */\n");
  EMIT(p, "static const ampc_source sources[] = {\n");
  for (uint32_t i = 0; i < g->n_sources; i++) {
    const ampc_source *s = &g->sources[i];
    EMIT(p, "  {%s, %s, %s, %u, %s, %lld, %s, %s, %lld, %lld, %s, %lld, %s, %s, %lluull},\n",
         kinds[s->kind], quoted(p, s->path), dtypes[s->dtype], s->rank, dims(p, s->dim, s->rank),
         (long long)s->samples, number(p, s->part_begin), number(p, s->part_end),
         (long long)s->limit, (long long)s->ignored, quoted(p, s->limit_why), (long long)s->offset,
         number(p, s->low), number(p, s->high), (unsigned long long)s->stream);
  }
  EMIT(p, "};\n");
}

static void put_outputs(Printer *p, const ampc_program *g)
{
  if (!g->n_outputs) return;
  EMIT(p, "static const ampc_output_desc outputs[] = {\n");
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const ampc_output_desc *o = &g->outputs[i];
    EMIT(p, "  {%s, %u, %s, %u, %s, {%s, %lld}},\n", quoted(p, o->name), o->block, dtypes[o->dtype],
         o->rank, dims(p, o->dim, o->rank), space_enums[o->place.space],
         (long long)o->place.offset);
  }
  EMIT(p, "};\n");
}

/* K_<name> is what a launch says; on the CPU the table has the thunks. */
static void put_kernels(Printer *p, const ampc_program *g)
{
  bool cpu = is_cpu_target(p->c);
  EMIT(p, "enum {\n");
  for (uint32_t i = 0; i < g->n_kernels; i++) EMIT(p, "  K_%s,\n", g->kernels[i].name);
  EMIT(p, "  K_COUNT\n};\n");
  EMIT(p, "static const ampc_kernel kernels[] = {\n");
  for (uint32_t i = 0; i < g->n_kernels; i++) {
    const ampc_kernel *k = &g->kernels[i];
    EMIT(p, "  {\"%s\", %u, %u, (void (*)(void))%s%s},\n", k->name, k->n_args, k->shared, k->name,
         cpu ? "_thunk" : "");
  }
  EMIT(p, "  {0, 0, 0, 0}};\n");
}

/* ---- steps ---- */

/* A product's sizes do not change from step to step: one constant for each command, named by its
 * label. */
static void put_gemm(Printer *p, const char *label, const ampc_gemm *d)
{
  EMIT(p,
       "static const ampc_gemm %s = {%lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, "
       "%lld,\n",
       label, (long long)d->m, (long long)d->n, (long long)d->k, (long long)d->batch,
       (long long)d->lda, (long long)d->ldb, (long long)d->ldc, (long long)d->stride_a,
       (long long)d->stride_b, (long long)d->stride_c);
  EMIT(p, "    %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %lld};\n", truth(d->trans_a),
       truth(d->trans_b), truth(d->accumulate), truth(d->tf32), truth(d->has_bias), truth(d->relu),
       dtypes[d->a_type], dtypes[d->b_type], dtypes[d->c_type], dtypes[d->bias_type],
       (long long)d->workspace);
}

static void put_conv(Printer *p, const char *label, const ampc_conv *d)
{
  static const char *const kinds[] = {"AMPC_CONV_FORWARD", "AMPC_CONV_DATA", "AMPC_CONV_WEIGHT"};
  const int64_t *axes[] = {d->in, d->kernel, d->out, d->stride, d->pad, d->dilation};
  EMIT(p, "static const ampc_conv %s = {%s,\n", label, kinds[d->kind]);
  EMIT(p, "    %lld, %lld, %lld, %lld, %u", (long long)d->n, (long long)d->c, (long long)d->k,
       (long long)d->groups, d->spatial);
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
    EMIT(p, ", %s", dims(p, axes[i], d->spatial));
  EMIT(p, ",\n    %s, %s, %s,\n", truth(d->accumulate), truth(d->tf32), truth(d->has_bias));
  EMIT(p, "    %s, %s, %s, %s, %lld", dtypes[d->x_type], dtypes[d->w_type], dtypes[d->y_type],
       dtypes[d->bias_type], (long long)d->workspace);
  if (d->grid) EMIT(p, ", K_%s_columns, %u, %u", label, d->grid, d->block);
  EMIT(p, "};\n");
}

/* The descriptions of products and convolutions, those of loops' bodies included. */
static void put_products(Printer *p, const ampc_command *commands, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    const ampc_command *k = &commands[i];
    if (k->kind == AMPC_GEMM) put_gemm(p, k->label, &k->as.gemm.desc);
    if (k->kind == AMPC_CONV) put_conv(p, k->label, &k->as.conv.desc);
    if (k->kind == AMPC_REPEAT) put_products(p, k->as.repeat.commands, k->as.repeat.n_commands);
  }
}

static void put_operands(Printer *p, const ampc_command *command, uint32_t depth)
{
  ampc_operand room[COMMAND_OPERANDS];
  const ampc_operand *operands;
  uint32_t n = ampc_command_operands(command, room, &operands);
  for (uint32_t i = 0; i < n; i++) EMIT(p, ", %s", address(p, operands[i], depth));
}

static void put_commands(Printer *p, const ampc_command *commands, uint32_t n, uint32_t depth);

static void put_repeat(Printer *p, const ampc_command *command, uint32_t depth)
{
  const char *t = counter(p, depth);
  EMIT(p, "for (long long %s = 0; %s < %lld; %s++) { /* %s */\n", t, t,
       (long long)command->as.repeat.count, t, command->label);
  p->indent++;
  put_commands(p, command->as.repeat.commands, command->as.repeat.n_commands, depth);
  p->indent--;
  EMIT(p, "}\n");
}

/* One command of the plan is one call in the step function, or a loop. */
static void put_command(Printer *p, const ampc_command *command, uint32_t depth)
{
  const ampc_launch *l = &command->as.launch;
  switch (command->kind) {
  case AMPC_LAUNCH_KERNEL:
    EMIT(p, "AMPC_LAUNCH(rt, K_%s, %u, %u", command->label, l->grid, l->block);
    put_operands(p, command, depth);
    break;
  case AMPC_GEMM:
    EMIT(p, "ampc_do_gemm(rt, &%s", command->label);
    put_operands(p, command, depth);
    break;
  case AMPC_CONV:
    EMIT(p, "ampc_do_conv(rt, &%s", command->label);
    put_operands(p, command, depth);
    break;
  case AMPC_COPY:
    EMIT(p, "ampc_do_copy(rt");
    put_operands(p, command, depth);
    EMIT(p, ", %lld", (long long)command->as.copy.bytes);
    break;
  case AMPC_FILL:
    EMIT(p, "ampc_do_fill(rt");
    put_operands(p, command, depth);
    EMIT(p, ", %u, %lld", command->as.fill.value, (long long)command->as.fill.bytes);
    break;
  case AMPC_ALL_REDUCE:
    EMIT(p, "ampc_do_all_reduce(rt");
    put_operands(p, command, depth);
    EMIT(p, ", %s, %lld", dtypes[command->as.all_reduce.type],
         (long long)command->as.all_reduce.count);
    break;
  case AMPC_REPEAT:
    put_repeat(p, command, depth + 1);
    return;
  }
  EMIT(p, ");\n");
}

/* Which spaces the commands use: only these become local variables, for unused ones would be
 * warnings. */
static void find_spaces(const ampc_command *commands, uint32_t n, bool *used)
{
  for (uint32_t i = 0; i < n; i++) {
    ampc_operand room[COMMAND_OPERANDS];
    const ampc_operand *operands;
    uint32_t n_operands = ampc_command_operands(&commands[i], room, &operands);
    for (uint32_t k = 0; k < n_operands; k++) used[operands[k].at.space] = true;
    if (commands[i].kind == AMPC_REPEAT)
      find_spaces(commands[i].as.repeat.commands, commands[i].as.repeat.n_commands, used);
  }
}

/* The job's line above the commands that it became:
 *   // mlp.amp:12: h = gelu(fc1(x)) */
static void put_origin(Printer *p, uint32_t line)
{
  const Compile *c = p->c;
  Place at = {.line = line};
  for (uint32_t i = 0; i < c->sources.n && !at.source; i++)
    if (!c->sources.at[i].builtin) at.source = &c->sources.at[i];
  if (!line || !at.source) return;
  const char *text = comment_line(c, at, 80);
  if (*text) EMIT(p, "\n// %s:%u: %s\n", comment_of(p, c->program->source), line, text);
}

static void put_commands(Printer *p, const ampc_command *commands, uint32_t n, uint32_t depth)
{
  uint32_t line = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (commands[i].line != line) put_origin(p, commands[i].line);
    line = commands[i].line;
    put_command(p, &commands[i], depth);
  }
}

/* A name may be any text. Where it is no identifier, or ends as if it had a number of ours, the
 * number of the block tells it from others: no two blocks get the same identifier. */
static bool is_own_identifier(const char *name, const char *made)
{
  const char *last = strrchr(name, '_');
  bool numbered = last && last[1] && last[1 + strspn(last + 1, "0123456789")] == 0;
  return strcmp(name, made) == 0 && !numbered;
}

static const char *step_name(Printer *p, const ampc_block *b, const ampc_step *s)
{
  Arena *a = p->c->arena;
  const char *made = identifier(a, b->name);
  if (!is_own_identifier(b->name, made))
    made = arena_printf(a, "%.40s_%u", made, (unsigned)(b - p->c->program->blocks));
  return arena_printf(a, "step_%s_%lld", made, (long long)s->batch);
}

/* One block at one batch size:
 *   static void step_train_32(ampc_runtime *rt)
 *   {
 *     char *const work = ampc_spaces(rt)[AMPC_WORK];
 *     AMPC_LAUNCH(rt, K_k01_cast, 4, 256, input, work + 512); */
static void put_step(Printer *p, const ampc_block *b, const ampc_step *s)
{
  bool used[AMPC_SPACE_COUNT] = {false};
  find_spaces(s->commands, s->n_commands, used);
  EMIT(p, "\n/* block %s, batch %lld: %u commands */\n", comment_of(p, b->name),
       (long long)s->batch, s->n_commands);
  put_products(p, s->commands, s->n_commands);
  EMIT(p, "static void %s(ampc_runtime *rt)\n{\n", step_name(p, b, s));
  p->indent++;
  for (int i = AMPC_STATE; i < AMPC_SPACE_COUNT; i++) {
    if (used[i]) EMIT(p, "char *const %s = ampc_spaces(rt)[%s];\n", spaces[i], space_enums[i]);
  }
  put_commands(p, s->commands, s->n_commands, 0);
  p->indent--;
  EMIT(p, "}\n");
}

static void put_blocks(Printer *p, const ampc_program *g)
{
  static const char *const kinds[] = {"AMPC_TRAIN", "AMPC_EVAL", "AMPC_INFER"};
  if (!g->n_blocks) return;
  EMIT(p, "\n/* kind, name, line, batch, epochs, steps, every, log, save_every, shuffle, "
          "drop_last, save,\n"
          "   sources, metrics, variants {batch, commands, count, function} */\n");
  EMIT(p, "static const ampc_block blocks[] = {\n");
  for (uint32_t i = 0; i < g->n_blocks; i++) {
    const ampc_block *b = &g->blocks[i];
    EMIT(p, "  {%s, %s, %u, %lld, %lld, %lld, %lld, %lld, %lld, %s, %s, %s, %u, %u, %u, %u, %u,\n",
         kinds[b->kind], quoted(p, b->name), b->line, (long long)b->batch, (long long)b->epochs,
         (long long)b->max_steps, (long long)b->every, (long long)b->log, (long long)b->save_every,
         truth(b->shuffle), truth(b->drop_last), quoted(p, b->save), b->first_source, b->n_sources,
         b->first_metric, b->n_metrics, b->n_variants);
    EMIT(p, "   {");
    for (uint32_t v = 0; v < b->n_variants; v++)
      EMIT(p, "%s{%lld, 0, 0, %s}", v ? ", " : "", (long long)b->variant[v].batch,
           step_name(p, b, &b->variant[v]));
    EMIT(p, "}},\n");
  }
  EMIT(p, "};\n");
}

/* ---- the program ---- */

/* A table without rows is not printed. */
static const char *table(const char *name, uint32_t n)
{
  return n ? name : "0";
}

static void put_program(Printer *p, const ampc_program *g)
{
  const ampc_scaler_desc *s = &g->scaler;
  EMIT(p, "\nstatic const ampc_program program = {\n");
  p->indent++;
  EMIT(p, "%s, %s, %s, %s, /* name, source, target, precision */\n", quoted(p, g->name),
       quoted(p, g->source), quoted(p, g->target), quoted(p, g->precision));
  EMIT(p, "%s, /* config */\n", quoted(p, g->config));
  EMIT(p, "0x%016llxull, %lluull, %s, /* model hash, seed, real64 */\n",
       (unsigned long long)g->model_hash, (unsigned long long)g->seed, truth(g->real64));
  EMIT(p, "{%s, %s, %s, %s, %s, %s, %s, %lld}, /* scaler */\n", truth(s->on), truth(s->dynamic),
       number(p, s->init), number(p, s->growth), number(p, s->backoff), number(p, s->min),
       number(p, s->max), (long long)s->interval);
  EMIT(p, "{");
  for (int i = 0; i < AMPC_SPACE_COUNT; i++)
    EMIT(p, "%s%lld", i ? ", " : "", (long long)g->space_bytes[i]);
  EMIT(p, "}, /* bytes of each space */\n");
  EMIT(p, "%s, %s, %s, %s, %s,\n", table("params", g->n_params),
       table("optimizers", g->n_optimizers), table("settings", g->n_settings),
       table("sources", g->n_sources), table("metrics", g->n_metrics));
  EMIT(p, "%s, %s, %s,\n", table("outputs", g->n_outputs), table("blocks", g->n_blocks), "kernels");
  EMIT(p, "%u, %u, %u, %u, %u, %u, %u, %u", g->n_params, g->n_optimizers, g->n_settings,
       g->n_sources, g->n_metrics, g->n_outputs, g->n_blocks, g->n_kernels);
  EMIT(p, is_cpu_target(p->c) ? "};\n" : ",\n0, 0, find_kernel};\n");
  p->indent--;
}

/* The runtime launches through the driver, which has its own names for what nvcc linked. */
static void put_find_kernel(Printer *p)
{
  EMIT(p, "\nstatic int find_kernel(void **out, const void *function)\n{\n"
          "  return (int)cudaGetFuncBySymbol((cudaFunction_t *)out, function);\n}\n");
}

static void put_head(Printer *p, const ampc_program *g)
{
  EMIT(p, "// %s: %s of %s, precision %s, target %s. Written by ampc; edit as you like.\n",
       comment_of(p, g->name), g->n_blocks ? "the steps" : "nothing to run",
       comment_of(p, g->source), g->precision, g->target);
  EMIT(p,
       "// Kernels first, then tables, step functions, main(). Build line: ampc --build-line.\n");
  seal_put(p);
  EMIT(p, "#include \"ampc_rt.h\"\n\n");
}

void emit_program(Compile *c, Text *out, bool with_main)
{
  const ampc_program *g = c->program;
  Printer p;
  size_t from = out->n;
  printer_begin(&p, c, out);
  put_head(&p, g);
  emit_kernel_texts(&p, false);
  EMIT(&p, "\n/* ---- tables ---- */\n\n");
  put_params(&p, g);
  put_optimizers(&p, g);
  put_settings(&p, g);
  put_sources(&p, g);
  put_outputs(&p, g);
  put_kernels(&p, g);
  EMIT(&p, "\n/* ---- steps: what runs, in order ---- */\n");
  for (uint32_t b = 0; b < g->n_blocks; b++) {
    for (uint32_t v = 0; v < g->blocks[b].n_variants; v++)
      put_step(&p, &g->blocks[b], &g->blocks[b].variant[v]);
  }
  put_blocks(&p, g);
  if (!is_cpu_target(c)) put_find_kernel(&p);
  put_program(&p, g);
  if (with_main) {
    EMIT(&p, "\nint main(int argc, char **argv)\n{\n");
    EMIT(&p, "  return ampc_main(argc, argv, &program, &ampc_data);\n}\n");
  }
  seal_close(out, from);
}
