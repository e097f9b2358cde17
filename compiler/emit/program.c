/* The host half of an emitted program: tables, one step function a block and batch size, main().
 *
 * The text is C and C++ alike: tables are initialised in order, with a comment to a line. */
#include "compiler/base/user_text.h"
#include "compiler/command/command.h"
#include "emit.h"
#include "kernel.h"
#include "program_parts.h"
#include "seal.h"
#include <string.h>

/* ---- tables ---- */

static const char *init_text(Printer *p, const ampc_init *init)
{
  static const char *const kinds[] = {
      "AMPC_INIT_CONSTANT", "AMPC_INIT_UNIFORM", "AMPC_INIT_NORMAL",    "AMPC_INIT_TRUNC_NORMAL",
      "AMPC_INIT_EYE",      "AMPC_INIT_DIRAC",   "AMPC_INIT_ORTHOGONAL"};
  Text t;
  text_init(&t, p->c->arena);
  field_text(&t, "kind", kinds[init->kind]);
  field_number(p, &t, "a", init->a);
  field_number(p, &t, "b", init->b);
  field_number(p, &t, "low", init->low);
  field_number(p, &t, "high", init->high);
  return arena_printf(p->c->arena, "{%s}", t.at);
}

/* The tables are those of ampc_plan.h, field by field in the order of the structs. */
static void put_params(Printer *p, const ampc_program *g)
{
  if (!g->n_params) return;
  put_param_places(p, g);
  EMIT(p, "static const ampc_param params[] = {\n");
  for (uint32_t i = 0; i < g->n_params; i++) {
    const ampc_param *q = &g->params[i];
    Text t;
    text_init(&t, p->c->arena);
    field_text(&t, "path", quoted(p, q->path));
    field_truth(&t, "buffer", q->buffer);
    field_text(&t, "optimizer", arena_printf(p->c->arena, "%d", q->optimizer));
    field_text(&t, "dtype", dtype_enums[q->dtype]);
    field_integer(&t, "rank", q->rank);
    if (q->rank) field_text(&t, "dim", dims(p, q->dim, q->rank));
    field_integer(&t, "elements", q->elements);
    field_text(&t, "offset", param_place(p, g, i));
    field_text(&t, "init", init_text(p, &q->init));
    field_truth(&t, "channels_last", q->channels_last);
    EMIT_WRAPPED(p, "   ", "  {%s},\n", t.at);
  }
  EMIT(p, "};\n\n");
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
         kinds[s->kind], quoted(p, s->path), dtype_enums[s->dtype], s->rank,
         dims(p, s->dim, s->rank), (long long)s->samples, number(p, s->part_begin),
         number(p, s->part_end), (long long)s->limit, (long long)s->ignored,
         quoted(p, s->limit_why), (long long)s->offset, number(p, s->low), number(p, s->high),
         (unsigned long long)s->stream);
  }
  EMIT(p, "};\n");
}

static void put_outputs(Printer *p, const ampc_program *g)
{
  if (!g->n_outputs) return;
  EMIT(p, "static const ampc_output_desc outputs[] = {\n");
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const ampc_output_desc *o = &g->outputs[i];
    EMIT(p, "  {%s, %u, %s, %u, %s, {%s, %lld}},\n", quoted(p, o->name), o->block,
         dtype_enums[o->dtype], o->rank, dims(p, o->dim, o->rank), space_enums[o->place.space],
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
       "// What kernels are written in, kernels, tables, step functions, main(). Build line: ampc "
       "--build-line.\n");
  seal_put(p);
  put_contents(p);
  EMIT(p, "\n#include \"ampc_rt.h\"\n\n");
  if (g->n_kernels) EMIT(p, "/* ---- what kernels are written in ---- */\n\n");
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
