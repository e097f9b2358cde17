/* Prints what a library offers to a training loop of another program: functions for each train and
 * eval block whose samples are `given`, and for the state of the run. library.c prints the rest. */
#include "ampc_metrics.h"
#include "compiler/base/user_text.h"
#include "library.h"
#include <ctype.h>
#include <string.h>

bool library_is_loop(const ampc_program *g, uint32_t block)
{
  const ampc_block *b = &g->blocks[block];
  return b->kind != AMPC_INFER && b->n_sources &&
         g->sources[b->first_source].kind == AMPC_SOURCE_GIVEN;
}

bool library_has_loop(const ampc_program *g)
{
  for (uint32_t i = 0; i < g->n_blocks; i++)
    if (library_is_loop(g, i)) return true;
  return false;
}

bool library_reserves(const ampc_program *g, const char *name)
{
  if (!library_has_loop(g)) return false;
  static const char *const taken[] = {"create", "step", "eval",         "precision",
                                      "set",    "save", "save_weights", "load"};
  static const char *const begins[] = {"step_", "eval_", "get_"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (strcmp(name, taken[i]) == 0) return true;
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (strncmp(name, begins[i], strlen(begins[i])) == 0) return true;
  return false;
}

/* Returns "step", "eval", or with the block's number if there are several of its kind: "step_2". */
const char *library_verb(Printer *p, uint32_t block)
{
  const ampc_program *g = p->c->program;
  uint32_t all = 0, own = 0;
  const char *verb = g->blocks[block].kind == AMPC_TRAIN ? "step" : "eval";
  for (uint32_t i = 0; i < g->n_blocks; i++) {
    if (g->blocks[i].kind != g->blocks[block].kind || !library_is_loop(g, i)) continue;
    all++;
    own += i <= block;
  }
  return all == 1 ? verb : arena_printf(p->c->arena, "%s_%u", verb, own);
}

/* Returns "clothes_metrics" or "clothes_eval_metrics", with the block's number as in library_verb.
 */
const char *library_struct(Printer *p, uint32_t block)
{
  bool train = p->c->program->blocks[block].kind == AMPC_TRAIN;
  return arena_printf(p->c->arena, "%s_%smetrics%s", library_job(p), train ? "" : "eval_",
                      library_verb(p, block) + strlen(train ? "step" : "eval"));
}

const char *library_get(Printer *p, uint32_t block)
{
  const char *job = library_job(p), *rest = library_struct(p, block) + strlen(job);
  return arena_printf(p->c->arena, "%s_get%s", job, rest);
}

/* Returns "const uint8_t *in_image, const int64_t *in_label". */
static const char *arguments(Printer *p, const ampc_block *b)
{
  Text t = text_new(p->c->arena);
  for (uint32_t i = 0; i < b->n_sources; i++) {
    const ampc_source *s = &p->c->program->sources[b->first_source + i];
    text_printf(&t, "%sconst %s *%s", i ? ", " : "", ampc_type_of(s->dtype)->c,
                library_argument(p, s));
  }
  return t.at;
}

static const char *run_signature(Printer *p, uint32_t block, bool on_device)
{
  const ampc_block *b = &p->c->program->blocks[block];
  return arena_printf(p->c->arena, "int %s_%s%s(struct ampc_runtime *rt, %sint64_t samples, %s)",
                      library_job(p), library_verb(p, block), on_device ? "_on" : "",
                      on_device ? "void *stream, " : "", arguments(p, b));
}

static const char *get_signature(Printer *p, uint32_t block)
{
  return arena_printf(p->c->arena, "int %s(struct ampc_runtime *rt, struct %s *out)",
                      library_get(p, block), library_struct(p, block));
}

/* The functions of the run. In the texts but `body`, %s is the job's prefix. */
static const struct {
  const char *head, *parameters, *body, *comment;
} functions[] = {
    {"int %s_create",
     "const char *device, uint64_t seed, const char *data_dir, "
     "struct ampc_runtime **out",
     "return (int)ampc_loop_open(&program, device, seed, data_dir, out);",
     "Draws the initial weights from `seed`, then loads the files of `load` clauses over them. A\n"
     " * training begins with this function. *out is NULL after a failure. */"},
    {"int %s_set", "struct ampc_runtime *rt, const char *setting, double value",
     "return (int)ampc_set(rt, setting, value);", NULL},
    {"int %s_get_state", "struct ampc_runtime *rt, struct %s_state *out",
     "struct ampc_state s;\n  const int status = (int)ampc_get_state(rt, out ? &s : NULL);\n"
     "  if (status) return status;\n  out->steps = s.step;\n  out->skipped = s.skipped;\n"
     "  out->scale = s.scale;\n  return 0;",
     "Waits for the device. */"},
    {"const char *%s_precision", "void", "return program.precision;",
     "\"f32\", \"tf32\", \"f16\" or \"bf16\": a constant text. */"},
    {"int %s_save", "struct ampc_runtime *rt, const char *path",
     "return (int)ampc_loop_save(rt, path);",
     "Waits, then writes a checkpoint: weights, moments, scaler, counters. Call it after a whole\n"
     " * step. An existing file is replaced only by a complete one. */"},
    {"int %s_save_weights", "struct ampc_runtime *rt, const char *path",
     "return (int)ampc_weights_save(rt, path);",
     "Writes a safetensors file of the weights alone, with PyTorch's names: load_state_dict takes "
     "it. */"},
    {"int %s_load", "struct ampc_runtime *rt, const char *path",
     "return (int)ampc_loop_load(rt, path);",
     "Continues from a checkpoint. Values of set are not in it. A file of another model, or a\n"
     " * damaged one, is refused and changes nothing. */"},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const char *function_head(Printer *p, int i)
{
  Arena *a = p->c->arena;
  const char *job = library_job(p);
  return arena_printf(a, "%s(%s)", arena_printf(a, functions[i].head, job),
                      arena_printf(a, functions[i].parameters, job));
}

/* ---- definitions ---- */

static void put_structs(Printer *p)
{
  const ampc_program *g = p->c->program;
  EMIT(p, "struct %s_state {\n  int64_t steps, skipped;\n  double scale;\n};\n", library_job(p));
  for (uint32_t i = 0; i < g->n_blocks; i++) {
    const ampc_block *b = &g->blocks[i];
    if (!library_is_loop(g, i) || !b->n_metrics) continue;
    EMIT(p, "struct %s {\n", library_struct(p, i));
    for (uint32_t k = 0; k < b->n_metrics; k++)
      EMIT(p, "  double %s;\n", identifier(p->c->arena, g->metrics[b->first_metric + k].name));
    EMIT(p, "};\n");
  }
}

void put_loop_declarations(Printer *p)
{
  const ampc_program *g = p->c->program;
  if (!library_has_loop(g)) return;
  put_structs(p);
  for (int i = 0; i < FUNCTIONS; i++) EMIT_WRAPPED(p, "    ", "%s;\n", function_head(p, i));
  for (uint32_t i = 0; i < g->n_blocks; i++) {
    if (!library_is_loop(g, i)) continue;
    for (int on = 0; on < 2; on++) EMIT_WRAPPED(p, "    ", "%s;\n", run_signature(p, i, on));
    if (g->blocks[i].n_metrics) EMIT_WRAPPED(p, "    ", "%s;\n", get_signature(p, i));
  }
}

static void put_run(Printer *p, uint32_t block, bool on_device)
{
  const ampc_block *b = &p->c->program->blocks[block];
  Text in = text_new(p->c->arena);
  for (uint32_t i = 0; i < b->n_sources; i++)
    text_printf(&in, "%s%s", i ? ", " : "",
                library_argument(p, &p->c->program->sources[b->first_source + i]));
  EMIT_WRAPPED(p, "    ", "%s\n", run_signature(p, block, on_device));
  EMIT(p, "{\n");
  p->indent++;
  EMIT_WRAPPED(p, "    ", "const void *const in[] = {%s};\n", in.at);
  if (on_device)
    EMIT(p, "return (int)ampc_loop_run_on(rt, %u, samples, in, stream);\n", block);
  else
    EMIT(p, "return (int)ampc_loop_run(rt, %u, samples, in);\n", block);
  p->indent--;
  EMIT(p, "}\n");
}

void put_loop_functions(Printer *p)
{
  const ampc_program *g = p->c->program;
  if (!library_has_loop(g)) return;
  for (int i = 0; i < FUNCTIONS; i++) {
    EMIT_WRAPPED(p, "    ", "%s\n", function_head(p, i));
    EMIT(p, "{\n  %s\n}\n", functions[i].body);
  }
  for (uint32_t i = 0; i < g->n_blocks; i++) {
    const ampc_block *b = &g->blocks[i];
    if (!library_is_loop(g, i)) continue;
    for (int on = 0; on < 2; on++) put_run(p, i, on);
    if (!b->n_metrics) continue;
    EMIT_WRAPPED(p, "    ", "%s\n", get_signature(p, i));
    EMIT(p, "{\n  return (int)ampc_loop_metrics(rt, %u, out ? &out->%s : NULL);\n}\n", i,
         identifier(p->c->arena, g->metrics[b->first_metric].name));
  }
}

/* ---- the header ---- */

/* Prints the settings of the job, each with its value, for the comment of set. */
static void put_set(Printer *p)
{
  const ampc_program *g = p->c->program;
  Text t = text_new(p->c->arena);
  for (uint32_t i = 0; i < g->n_settings; i++)
    text_printf(&t, "%s%s (%.9g)", i ? ", " : "", g->settings[i].name, g->settings[i].value);
  EMIT(p,
       "/* Changes a setting from the next step on. The settings and their values in the job:\n");
  EMIT_WRAPPED(p, " * ", " * %s. */\n", comment_of(p, t.at));
}

static void put_loop_block(Printer *p, uint32_t block)
{
  const ampc_program *g = p->c->program;
  const ampc_block *b = &g->blocks[block];
  bool train = b->kind == AMPC_TRAIN;
  const char *verb = library_verb(p, block);
  char *size = arena_printf(p->c->arena, "%s_%s_SAMPLES", library_job(p), verb);
  for (char *c = size; *c; c++) *c = (char)toupper((unsigned char)*c);
  EMIT(p, "\nenum { %s = %lld };\n", size, (long long)b->batch);
  EMIT(p, "/* %s, %s:%u. %s\n", comment_of(p, b->name), comment_of(p, g->source), b->line,
       !train              ? "Adds a batch to the metrics of an evaluation."
       : b->accumulate > 1 ? "Adds the gradients of a batch; the last batch of a step also updates."
                           : "Trains one step on a batch.");
  if (train && b->accumulate > 1)
    EMIT(p, " * A step has %lld batches.\n", (long long)b->accumulate);
  EMIT(p, " * The arrays are the caller's, and may be reused when the call returns.\n");
  EMIT(p, " *   samples  %s", size);
  for (uint32_t i = 0; i < b->n_variants; i++)
    if (b->variant[i].batch != b->batch && (!i || b->variant[i].batch != b->variant[i - 1].batch))
      EMIT(p, ", or %lld at the end of an epoch", (long long)b->variant[i].batch);
  EMIT(p, "\n");
  for (uint32_t i = 0; i < b->n_sources; i++) {
    const ampc_source *s = &g->sources[b->first_source + i];
    EMIT(p, " *   %s  %s[samples", library_argument(p, s), ampc_dtype_name(s->dtype));
    for (uint32_t k = 0; k < s->rank; k++) EMIT(p, ", %lld", (long long)s->dim[k]);
    EMIT(p, "]");
    if (s->limit) EMIT(p, ", from 0 to %lld", (long long)s->limit - 1);
    if (s->limit && s->ignored) EMIT(p, ", or %lld", (long long)s->ignored);
    EMIT(p, "\n");
  }
  EMIT(p, " */\n");
  EMIT_WRAPPED(p, "    ", "%s;\n", run_signature(p, block, false));
  EMIT(p,
       "/* The same for arrays in the GPU's memory, which earlier work of `stream` (cudaStream_t)\n"
       " * writes. Later work of the stream waits until they are copied; other streams must wait "
       "for "
       "it.\n * Values are not checked. In a library for the CPU the arrays are the host's. */\n");
  EMIT_WRAPPED(p, "    ", "%s;\n", run_signature(p, block, true));
  if (!b->n_metrics) return;
  EMIT(p, "/* Waits, then gets the metrics since the last call, as means over their samples; NaN "
          "without any.\n");
  EMIT(p, train ? " * Fails if a loss or gradient was not finite and there is no loss scaling. */\n"
                : " * The next batch begins a new evaluation. */\n");
  EMIT_WRAPPED(p, "    ", "%s;\n", get_signature(p, block));
}

void put_loop_header(Printer *p)
{
  const ampc_program *g = p->c->program;
  const char *job = library_job(p);
  if (!library_has_loop(g)) return;
  EMIT(p, "\n/* ---- training: see docs/c_api.md ---- */\n\n");
  EMIT(
      p,
      "/* steps: attempted so far. skipped: those of them in which an optimizer updated nothing: a "
      "gradient\n * was not finite, or their norm above skip_above. scale: the loss scale; 1 "
      "without "
      "loss scaling. */\n");
  put_structs(p);
  for (int i = 0; i < FUNCTIONS; i++) {
    if (functions[i].comment)
      EMIT(p, "/* %s\n", arena_printf(p->c->arena, functions[i].comment, job));
    else
      put_set(p);
    EMIT_WRAPPED(p, "    ", "%s;\n", function_head(p, i));
  }
  for (uint32_t i = 0; i < g->n_blocks; i++)
    if (library_is_loop(g, i)) put_loop_block(p, i);
}
