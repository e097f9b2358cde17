/* Prints the host half of an emitted program: tables, step functions, main().
 *
 * The text is both C and C++: the fields of tables are in the order of the structs. */
#include "ampc_metrics.h"
#include "compiler/command/command.h"
#include "compiler/kernel/kernels.h"
#include "program.h"
#include "compiler/kernel/kernel.h"
#include "program_parts.h"
#include "seal.h"

/* ---- tables ---- */

static const char *init_text(Printer *p, const ampc_init *init)
{
  static const char *const kinds[] = {
      "AMPC_INIT_CONSTANT", "AMPC_INIT_UNIFORM", "AMPC_INIT_NORMAL",     "AMPC_INIT_TRUNC_NORMAL",
      "AMPC_INIT_EYE",      "AMPC_INIT_DIRAC",   "AMPC_INIT_ORTHOGONAL", "AMPC_INIT_PADDED",
      "AMPC_INIT_COPY",     "AMPC_INIT_NORMS",   "AMPC_INIT_LEFT",       "AMPC_INIT_RIGHT"};
  Text t = text_new(p->c->arena);
  field_text(&t, "kind", kinds[init->kind]);
  field_number(p, &t, "a", init->a);
  field_number(p, &t, "b", init->b);
  field_number(p, &t, "low", init->low);
  field_number(p, &t, "high", init->high);
  return arena_printf(p->c->arena, "{%s}", t.at);
}

/* PUT_TABLE prints a table unless it has no rows; a PutRow adds the fields of one row to t. */
typedef void PutRow(Printer *p, Text *t, const void *row);
#define PUT_TABLE(p, g, T, name, put)                                                              \
  put_table(p, #T, #name, (g)->name, (g)->n_##name, sizeof(T), put)
static void put_table(Printer *p, const char *type, const char *name, const void *rows, uint32_t n,
                      size_t size, PutRow *put)
{
  if (n) EMIT(p, "static const %s %s[] = {\n", type, name);
  for (uint32_t i = 0; i < n; i++) {
    Text t = text_new(p->c->arena);
    put(p, &t, (const char *)rows + i * size);
    EMIT_WRAPPED(p, "   ", "  {%s},\n", t.at);
  }
  if (n) EMIT(p, "};\n");
}

#define COPY_FIELD(KIND, name, SPACE, copy, ...) field_truth(&t, #copy, q->copy);

/* Prints the rows of a table of parameters. The fields are in the order of ampc_plan.h, as in all
 * tables. */
static void put_param_rows(Printer *p, const ParamPlaces *places, const ampc_param *rows,
                           uint32_t first, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    const ampc_param *q = &rows[i];
    Text t = text_new(p->c->arena);
    field_text(&t, "path", quoted(p, q->path));
    field_truth(&t, "buffer", q->buffer);
    field_truth(&t, "fixed", q->fixed);
    if (q->packing) field_text(&t, "packing", q->packing == AMPC_NF4 ? "AMPC_NF4" : "AMPC_INT8");
    field_truth(&t, "adapts", q->adapts);
    field_truth(&t, "given", q->given);
    field_text(&t, "optimizer", arena_printf(p->c->arena, "%d", q->optimizer));
    field_text(&t, "dtype", ampc_type_of(q->dtype)->constant);
    field_integer(&t, "rank", q->rank);
    if (q->rank) field_text(&t, "dim", dims(p, q->dim, q->rank));
    field_integer(&t, "elements", q->elements);
    field_text(&t, "offset", param_place(places, first + i));
    field_text(&t, "init", init_text(p, &q->init));
    AMPC_NARROW_FLOATS(COPY_FIELD)
    field_truth(&t, "channels_last", q->channels_last);
    field_integer(&t, "measured", q->measured);
    EMIT_WRAPPED(p, "   ", "  {%s},\n", t.at);
  }
  EMIT(p, "};\n\n");
}

static void put_params(Printer *p, const ampc_program *g, const ParamPlaces *places)
{
  if (!g->n_params) return;
  put_param_places(p, places, g);
  EMIT(p, "static const ampc_param params[] = {\n");
  put_param_rows(p, places, g->params, 0, g->n_params);
  if (!g->n_shares) return;
  EMIT(p, "static const ampc_param shares[] = {\n");
  put_param_rows(p, places, g->shares, g->n_params, g->n_shares);
}

static uint32_t patterns_of(const ampc_load *x)
{
  return 2 * x->n_rename + x->n_transpose + x->n_missing + x->n_unused;
}

static void put_load(Printer *p, Text *t, const void *row)
{
  const ampc_load *x = row;
  uint32_t number = (uint32_t)(x - p->c->program->loads);
  field_text(t, "path", quoted(p, x->path));
  field_text(t, "model", quoted(p, x->model));
  field_text(t, "prefix", quoted(p, x->prefix));
  field_text(t, "strip", quoted(p, x->strip));
  if (patterns_of(x))
    field_text(t, "patterns", arena_printf(p->c->arena, "load%u_patterns", number));
  field_integer(t, "n_rename", x->n_rename);
  field_integer(t, "n_transpose", x->n_transpose);
  field_integer(t, "n_missing", x->n_missing);
  field_integer(t, "n_unused", x->n_unused);
  field_integer(t, "line", x->line);
  field_truth(t, "adapter", x->adapter);
}

static void put_slice(Printer *p, Text *t, const void *row)
{
  const ampc_slice *s = row;
  (void)p;
  field_integer(t, "first", s->first);
  field_integer(t, "count", s->count);
  field_integer(t, "each", s->each);
  field_integer(t, "moment", s->moment);
  field_truth(t, "apart", s->apart);
}

/* Prints the patterns of each `load` clause as a table, named by the clause's number, then the
 * clauses. */
static void put_loads(Printer *p, const ampc_program *g)
{
  for (uint32_t i = 0; i < g->n_loads; i++) {
    const ampc_load *x = &g->loads[i];
    uint32_t n = patterns_of(x);
    if (n) EMIT(p, "static const char *const load%u_patterns[] = {\n", i);
    for (uint32_t k = 0; k < n; k++) EMIT(p, "  %s,\n", quoted(p, x->patterns[k]));
    if (n) EMIT(p, "};\n");
  }
  PUT_TABLE(p, g, ampc_load, loads, put_load);
  if (g->n_aliases) EMIT(p, "static const ampc_alias aliases[] = {\n");
  for (uint32_t i = 0; i < g->n_aliases; i++)
    EMIT(p, "  {.path = %s, .param = %u},\n", quoted(p, g->aliases[i].path), g->aliases[i].param);
  if (g->n_aliases) EMIT(p, "};\n");
}

static void put_optimizer(Printer *p, Text *t, const void *row)
{
  const ampc_optimizer_desc *o = row;
  field_text(t, "name", quoted(p, o->name));
  field_text(t, "kind", quoted(p, o->kind));
  field_integer(t, "first", o->first);
  field_integer(t, "count", o->count);
  field_truth(t, "uses_moment1", o->uses_moment1);
  field_truth(t, "uses_moment2", o->uses_moment2);
  field_truth(t, "uses_moment3", o->uses_moment3);
  field_truth(t, "uses_ema", o->uses_ema);
  field_integer(t, "updates", o->updates);
  field_integer(t, "unsigned_moments", o->unsigned_moments);
}

static const char *domain_name(ampc_domain domain)
{
  static const char *const names[AMPC_DOMAIN_COUNT] = {
#define ROW(DOMAIN, name) "AMPC_" #DOMAIN,
      AMPC_DOMAINS(ROW)
#undef ROW
  };
  return names[domain];
}

static void put_plateau(Printer *p, Text *t, const void *row)
{
  const ampc_plateau *from = row;
  text_printf(t, ".setting = %u, .metric = %u", from->setting, from->metric);
  field_truth(t, "highest", from->highest);
  field_truth(t, "absolute", from->absolute);
  field_integer(t, "patience", from->patience);
  field_integer(t, "cooldown", from->cooldown);
  field_number(p, t, "factor", from->factor);
  field_number(p, t, "threshold", from->threshold);
  field_number(p, t, "least", from->least);
  field_number(p, t, "eps", from->eps);
}

static const char *metric_kind_name(ampc_metric_kind kind)
{
  static const char *const names[AMPC_METRIC_KIND_COUNT] = {
#define ROW(KIND, name, mode) #KIND,
      AMPC_METRICS(ROW)
#undef ROW
  };
  return names[kind];
}

static void put_settings(Printer *p, const ampc_program *g)
{
  if (g->n_settings) {
    EMIT(p, "/* numbers in device memory, which --set changes without compiling */\n");
    EMIT(p, "static const ampc_setting settings[] = {\n");
    for (uint32_t i = 0; i < g->n_settings; i++) {
      const ampc_setting *s = &g->settings[i];
      const char *blocks = "";
      if (s->steps_of)
        blocks = arena_printf(p->c->arena, ", .steps_of = %llu", (unsigned long long)s->steps_of);
      if (s->every)
        blocks = arena_printf(p->c->arena, "%s, .every = %lld", blocks, (long long)s->every);
      EMIT(p, "  {.name = %s, .value = %s, .domain = %s%s},\n", quoted(p, s->name),
           number(p, s->value), domain_name(s->domain), blocks);
    }
    EMIT(p, "};\n");
  }
  if (!g->n_metrics) return;
  EMIT(p, "static const ampc_metric_desc metrics[] = {\n");
  for (uint32_t i = 0; i < g->n_metrics; i++) {
    const ampc_metric_desc *m = &g->metrics[i];
    const char *kind = "", *mode = "", *classes = "";
    if (m->classes) classes = arena_printf(p->c->arena, ", .classes = %s", quoted(p, m->classes));
    if (m->mode)
      mode = m->mode == AMPC_MODE_MIN ? ", .mode = AMPC_MODE_MIN" : ", .mode = AMPC_MODE_MAX";
    if (m->statistics)
      kind = arena_printf(p->c->arena, ", .kind = AMPC_METRIC_%s, .statistics = %u",
                          metric_kind_name(m->kind), m->statistics);
    EMIT(p, "  {.name = %s%s%s%s%s},\n", quoted(p, m->name), m->is_loss ? ", .is_loss = true" : "",
         kind, mode, classes);
  }
  EMIT(p, "};\n");
}

static bool reads_text(const ampc_program *g)
{
  bool found = false;
  for (uint32_t i = 0; i < g->n_sources; i++)
    found |= g->sources[i].kind == AMPC_SOURCE_TEXT || g->sources[i].kind == AMPC_SOURCE_JSONL;
  return found;
}

static void put_source(Printer *p, Text *t, const void *row)
{
  static const char *const kinds[] = {
#define ROW(KIND, name) "AMPC_SOURCE_" #KIND,
      AMPC_FORMATS(ROW) ROW(ARGUMENT, argument)
#undef ROW
  };
  const ampc_source *s = row;
  field_text(t, "kind", kinds[s->kind]);
  field_text(t, "path", quoted(p, s->path));
  if (s->args) field_text(t, "args", quoted(p, s->args));
  field_text(t, "dtype", ampc_type_of(s->dtype)->constant);
  field_integer(t, "rank", s->rank);
  if (s->rank) field_text(t, "dim", dims(p, s->dim, s->rank));
  field_integer(t, "samples", s->samples);
  field_number(p, t, "part_begin", s->part_begin);
  field_number(p, t, "part_end", s->part_end);
  field_truth(t, "drawn", s->drawn);
  field_truth(t, "stratify", s->stratify);
  if (s->drawn)
    field_text(t, "part_seed",
               arena_printf(p->c->arena, "%lluull", (unsigned long long)s->part_seed));
  field_integer(t, "limit", s->limit);
  field_integer(t, "ignored", s->ignored);
  if (s->limit_why) field_text(t, "limit_why", quoted(p, s->limit_why));
  field_integer(t, "offset", s->offset);
  field_number(p, t, "low", s->low);
  field_number(p, t, "high", s->high);
  if (s->stream)
    field_text(t, "stream", arena_printf(p->c->arena, "%lluull", (unsigned long long)s->stream));
}

static void put_output(Printer *p, Text *t, const void *row)
{
  const ampc_output_desc *o = row;
  field_text(t, "name", quoted(p, o->name));
  field_integer(t, "block", o->block);
  field_text(t, "dtype", ampc_type_of(o->dtype)->constant);
  field_integer(t, "rank", o->rank);
  if (o->rank) field_text(t, "dim", dims(p, o->dim, o->rank));
  field_integer(t, "classes", o->classes);
  field_text(t, "place",
             arena_printf(p->c->arena, "{%s, %lld}", ampc_space_of(o->place.space)->constant,
                          (long long)o->place.offset));
}

static void put_check(Printer *p, Text *t, const void *row)
{
  const ampc_check *k = row;
  field_text(t, "why", quoted(p, k->why));
  field_integer(t, "rows", k->rows);
  field_integer(t, "rank", k->rank);
  if (k->rank) field_text(t, "dim", dims(p, k->dim, k->rank));
}

/* Prints the table of kernels: a launch names its kernel K_<name>. On the CPU it has thunks. */
static void put_kernels(Printer *p, const ampc_program *g)
{
  const char *suffix = target_of(p->c->options.target)->table_suffix;
  EMIT(p, "enum {\n");
  for (uint32_t i = 0; i < g->n_kernels; i++) EMIT(p, "  K_%s,\n", g->kernels[i].name);
  EMIT(p, "  K_COUNT\n};\n");
  EMIT(p, "static const ampc_kernel kernels[] = {\n");
  for (uint32_t i = 0; i < g->n_kernels; i++) {
    const ampc_kernel *k = &g->kernels[i];
    Text t = text_new(p->c->arena);
    field_text(&t, "name", quoted(p, k->name));
    field_integer(&t, "n_args", k->n_args);
    field_text(&t, "function", arena_printf(p->c->arena, "(void (*)(void))%s%s", k->name, suffix));
    EMIT_WRAPPED(p, "   ", "  {%s},\n", t.at);
  }
  EMIT(p, "  {0}};\n");
}

/* Returns "{{"N", 1}, {"S", 64}}" */
static const char *sizes_text(Printer *p, const ampc_block *b)
{
  Text t = text_new(p->c->arena);
  for (uint32_t i = 0; i < b->n_sizes; i++)
    text_printf(&t, "%s{%s, %lld}", i ? ", " : "{", quoted(p, b->size[i].name),
                (long long)b->size[i].size);
  text_puts(&t, "}");
  return t.at;
}

static void put_block(Printer *p, const ampc_block *b)
{
  static const char *const kinds[] = {"AMPC_TRAIN", "AMPC_EVAL", "AMPC_INFER"};
  Text t = text_new(p->c->arena);
  Text variants = text_new(p->c->arena);
  field_text(&t, "kind", kinds[b->kind]);
  field_text(&t, "name", quoted(p, b->name));
  field_integer(&t, "line", b->line);
  field_integer(&t, "batch", b->batch);
  field_integer(&t, "epochs", b->epochs);
  field_integer(&t, "max_steps", b->max_steps);
  field_integer(&t, "accumulate", b->accumulate);
  field_integer(&t, "every", b->every);
  field_integer(&t, "log", b->log);
  field_integer(&t, "save_every", b->save_every);
  field_integer(&t, "early_stop", b->early_stop);
  field_truth(&t, "shuffle", b->shuffle);
  field_truth(&t, "drop_last", b->drop_last);
  field_integer(&t, "balance", b->balance);
  if (b->save) field_text(&t, "save", quoted(p, b->save));
  if (b->resume) field_text(&t, "resume", quoted(p, b->resume));
  if (b->context) field_integer(&t, "context", b->context);
  field_truth(&t, "carries", b->carries);
  if (b->n_sizes) field_text(&t, "call", quoted(p, b->call));
  if (b->n_sizes) field_integer(&t, "n_sizes", b->n_sizes);
  if (b->n_sizes) field_text(&t, "size", sizes_text(p, b));
  field_integer(&t, "first_source", b->first_source);
  field_integer(&t, "n_sources", b->n_sources);
  field_integer(&t, "first_metric", b->first_metric);
  field_integer(&t, "n_metrics", b->n_metrics);
  field_integer(&t, "n_periods", b->n_periods);
  if (b->n_periods) field_text(&t, "period", dims(p, b->period, b->n_periods));
  field_integer(&t, "n_variants", b->n_variants);
  for (uint32_t v = 0; v < b->n_variants; v++) {
    const ampc_step *s = &b->variant[v];
    const char *fires = s->fires ? arena_printf(p->c->arena, ", .fires = %u", s->fires) : "";
    const char *share = s->share
                            ? arena_printf(p->c->arena, ", .share = %lld%s", (long long)s->share,
                                           s->idle ? ", .idle = true" : "")
                            : "";
    const char *parts = s->share ? arena_printf(p->c->arena, ", .n_parts = %u", step_parts(s)) : "";
    const char *between = b->n_variants > 2 ? ",\n               " : ", ";
    text_printf(&variants, "%s{.batch = %lld%s%s, .run = %s%s}", v ? between : "",
                (long long)s->batch, share, fires, step_name(p, b, s), parts);
  }
  EMIT_WRAPPED(p, "   ", "  {%s,\n", t.at);
  EMIT(p, "   .variant = {%s}},\n", variants.at);
}

static void put_blocks(Printer *p, const ampc_program *g)
{
  if (!g->n_blocks) return;
  EMIT(p, "\nstatic const ampc_block blocks[] = {\n");
  for (uint32_t i = 0; i < g->n_blocks; i++) put_block(p, &g->blocks[i]);
  EMIT(p, "};\n");
}

/* ---- the program ---- */

/* Prints ".params = params,". Tables without rows are left out. Kernels always have a last row. */
static void put_tables(Printer *p, const ampc_program *g)
{
  const struct {
    const char *name, *count;
    uint32_t n;
  } tables[] = {{"params", "n_params", g->n_params},
                {"shares", "n_shares", g->n_shares},
                {"loads", "n_loads", g->n_loads},
                {"aliases", "n_aliases", g->n_aliases},
                {"optimizers", "n_optimizers", g->n_optimizers},
                {"slices", "n_slices", g->n_slices},
                {"settings", "n_settings", g->n_settings},
                {"plateaus", "n_plateaus", g->n_plateaus},
                {"sources", "n_sources", g->n_sources},
                {"metrics", "n_metrics", g->n_metrics},
                {"outputs", "n_outputs", g->n_outputs},
                {"checks", "n_checks", g->n_checks},
                {"blocks", "n_blocks", g->n_blocks}};
  Text t = text_new(p->c->arena);
  Text counts = text_new(p->c->arena);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    if (!tables[i].n) continue;
    field_text(&t, tables[i].name, tables[i].name);
    field_integer(&counts, tables[i].count, tables[i].n);
  }
  field_text(&t, "kernels", "kernels");
  field_integer(&counts, "n_kernels", g->n_kernels);
  EMIT_WRAPPED(p, "", "%s,\n", t.at);
  if (counts.n) EMIT_WRAPPED(p, "", "%s,\n", counts.at);
}

static void put_scaler(Printer *p, const ampc_scaler_desc *s)
{
  Text t = text_new(p->c->arena);
  field_truth(&t, "on", s->on);
  field_truth(&t, "dynamic", s->dynamic);
  field_truth(&t, "per_optimizer", s->per_optimizer);
  field_truth(&t, "replay", s->replay);
  field_number(p, &t, "init", s->init);
  field_number(p, &t, "growth", s->growth);
  field_number(p, &t, "backoff", s->backoff);
  field_number(p, &t, "min", s->min);
  field_number(p, &t, "max", s->max);
  field_integer(&t, "interval", s->interval);
  field_integer(&t, "hysteresis", s->hysteresis);
  if (t.n) EMIT(p, ".scaler = {%s},\n", t.at);
}

/* Prints the sizes of spaces, named by a comment: C++ has no designators for array elements. */
static void put_spaces(Printer *p, const ampc_program *g)
{
  EMIT(p, "// bytes of the spaces: none");
  for (ampc_space i = 1; i < AMPC_SPACE_COUNT; i++) EMIT(p, ", %s", ampc_space_of(i)->name);
  EMIT(p, "\n.space_bytes = {");
  for (int i = 0; i < AMPC_SPACE_COUNT; i++)
    EMIT(p, "%s%lld", i ? ", " : "", (long long)g->space_bytes[i]);
  EMIT(p, "},\n");
}

static void put_program(Printer *p, const ampc_program *g)
{
  EMIT(p, "\nstatic const ampc_program program = {\n");
  p->indent++;
  EMIT(p, ".name = %s, .source = %s, .target = %s, .precision = %s,\n", quoted(p, g->name),
       quoted(p, g->source), quoted(p, g->target), quoted(p, g->precision));
  EMIT(p, ".config = %s,\n", quoted(p, g->config));
  if (g->classes) EMIT(p, ".classes = %s,\n", quoted(p, g->classes));
  if (g->columns) EMIT_WRAPPED(p, "    ", ".columns = %s,\n", quoted(p, g->columns));
  if (g->adapter) EMIT_WRAPPED(p, "    ", ".adapter = %s,\n", quoted(p, g->adapter));
  EMIT(p, ".model_hash = 0x%016llxull, .seed = %lluull, .real64 = %s,%s\n",
       (unsigned long long)g->model_hash, (unsigned long long)g->seed, truth(g->real64),
       g->own_products ? " .own_products = true," : "");
  put_scaler(p, &g->scaler);
  if (g->weights != AMPC_F32 || g->moments != AMPC_F32)
    EMIT(p, ".weights = %s, .moments = %s,\n", ampc_type_of(g->weights)->constant,
         ampc_type_of(g->moments)->constant);
  put_spaces(p, g);
  put_tables(p, g);
  const char *members =
      g->members > 1 ? arena_printf(p->c->arena, ", .members = %u", g->members) : "";
  const char *links = is_cpu_target(p->c) && !g->own_products ? ", .links = &ampc_onednn" : "";
  EMIT(p, "%s%s%s%s};\n",
       is_cpu_target(p->c) ? ".processor = AMPC_PROCESSOR" : ".find_kernel = find_kernel", links,
       reads_text(g) ? ", .texts = &ampc_texts" : "", members);
  p->indent--;
}

/* Prints find_kernel(). The runtime launches through the driver, which has its own handles for the
 * kernels of nvcc. */
static void put_find_kernel(Printer *p)
{
  EMIT(p, "\nstatic int find_kernel(void **out, const void *function)\n{\n"
          "  return (int)cudaGetFuncBySymbol((cudaFunction_t *)out, function);\n}\n");
}

static void put_head(Printer *p, const ampc_program *g, bool with_main)
{
  EMIT(p, "// %s: %s of %s, precision %s, target %s. Written by ampc; edit as you like.\n",
       comment_of(p, g->name), g->n_blocks ? "the steps" : "nothing to run",
       comment_of(p, g->source), g->precision, g->target);
  EMIT(p,
       "// In order: primitives for kernels, kernels, tables, step functions, %s. How to compile "
       "it: "
       "ampc --build-line.\n",
       with_main ? "main()" : "the library's functions");
  seal_put(p, "//");
  put_contents(p);
  EMIT(p, "\n#include \"ampc_rt.h\"\n%s\n",
       p->c->program->n_metrics ? "#include \"ampc_metrics.h\"\n" : "");
  if (g->n_kernels) EMIT(p, "/* ---- primitives for kernels ---- */\n\n");
}

/* Returns the probable name of the emitted file: "mlp.cu" for mlp.amp. */
static const char *emitted_name(const Compile *c)
{
  return arena_printf(c->arena, "%s%s", c->program->name, target_of(c->options.target)->suffix);
}

void emit_program(Compile *c, Text *out, bool with_main)
{
  const ampc_program *g = c->program;
  Printer p;
  size_t from = out->n;
  printer_begin(&p, c, out);
  put_head(&p, g, with_main);
  emit_kernel_texts(&p, false);
  EMIT(&p, "\n/* ---- tables ---- */\n\n");
  const ParamPlaces *places = param_places_create(c);
  put_params(&p, g, places);
  put_loads(&p, g);
  PUT_TABLE(&p, g, ampc_optimizer_desc, optimizers, put_optimizer);
  PUT_TABLE(&p, g, ampc_slice, slices, put_slice);
  put_settings(&p, g);
  if (g->n_plateaus) EMIT(&p, "/* settings that are lowered when a metric stops improving */\n");
  PUT_TABLE(&p, g, ampc_plateau, plateaus, put_plateau);
  PUT_TABLE(&p, g, ampc_source, sources, put_source);
  PUT_TABLE(&p, g, ampc_output_desc, outputs, put_output);
  PUT_TABLE(&p, g, ampc_check, checks, put_check);
  put_kernels(&p, g);
  Products *products = products_create(c);
  EMIT(&p, "\n/* ---- steps: what runs, in order ---- */\n");
  for (uint32_t b = 0; b < g->n_blocks; b++) {
    for (uint32_t v = 0; v < g->blocks[b].n_variants; v++)
      put_step(&p, places, products, &g->blocks[b], &g->blocks[b].variant[v]);
  }
  put_blocks(&p, g);
  if (!is_cpu_target(c)) put_find_kernel(&p);
  put_program(&p, g);
  if (!with_main) put_library(&p);
  if (with_main) {
    EMIT(&p, "\nint main(int argc, char **argv)\n{\n");
    EMIT(&p, "  return ampc_main(argc, argv, &program, &ampc_data);\n}\n");
  }
  settle_lines(c->arena, out, from, emitted_name(c));
  seal_close(out, from);
}
