/* Graphs built by hand: one infer block whose arguments are the inputs of the cases and whose
 * outputs are their results. It is compiled, loaded and run like any job. The block is outside of
 * autocast unless a case sets tf32, so ops compute in the types of their inputs. */
#include "graph.h"
#include <assert.h>
#include <string.h>

enum { REGION_index_off = 1, REGION_index_tf32 = 2 };

void built_open(Built *b, const TestRun *run, bool real64, int optimize)
{
  Options options = test_options(run, optimize);
  options.real64 = real64;
  *b = (Built){.run = run, .c = compile_create(&options), .real64 = real64};
  Arena *a = b->c->arena;
  Graph *g = ir_create(b->c);
  vec_push(a, &g->regions, (Region){.kind = REGION_off, .label = "autocast(off)"});
  vec_push(a, &g->regions, (Region){.kind = REGION_tf32, .label = "autocast(tf32)"});
  vec_push(a, &g->blocks,
           (BlockInfo){.kind = AMPC_INFER, .name = "cases", .batch = 1, .variant_of = -1});
  g->precision = "f32";
  g->n_streams = 1;
  g->facts = IR_SHAPED;
}

Cursor built_cursor(bool tf32)
{
  return (Cursor){.region = tf32 ? REGION_index_tf32 : REGION_index_off};
}

Value built_source(Built *b, const Tensor *t)
{
  Graph *g = b->c->graph;
  ampc_source s = {.kind = AMPC_SOURCE_ARGUMENT, .dtype = t->dtype, .rank = t->rank, .part_end = 1};
  memcpy(s.dim, t->dim, sizeof s.dim);
  const NamedAttr *index = ATTRS({"index", {.i = g->sources.n}});
  vec_push(b->c->arena, &g->sources, s);
  g->blocks.at[0].n_sources++;
  Cursor at = built_cursor(false);
  return ir_append(b->c, &at, OP_source, NULL, 0, index);
}

/* Makes a value an output, which keeps it until the block ends, whether an op reads it or not. */
uint32_t built_output(Built *b, Value v)
{
  Graph *g = b->c->graph;
  Cursor at = built_cursor(false);
  uint32_t index = g->outputs.n;
  Value out = ir_append(b->c, &at, OP_output, &v, 1, ATTRS({"index", {.i = index}}));
  const char *name = arena_printf(b->c->arena, "out%u", index);
  vec_push(b->c->arena, &g->outputs, (Output){.name = name, .value = out});
  return index;
}

/* Compiles and loads the graph. If this fails, the diagnostics are on stderr already. */
ampc_status built_load(Built *b)
{
  if (diag_error_count(b->c) || !compile_graph(b->c))
    return ampc_fail(AMPC_RUN_FAILED, "a hand-built graph was refused");
  return built_start(b);
}

ampc_status built_start(Built *b)
{
  ampc_status status = jit_load_edited(b->c, b->run->edit, b->run->edit_data, &b->jit);
  if (status) return status;
  return ampc_create(b->c->program, b->run->device, &b->rt);
}

ampc_status built_job(Built *b, const TestRun *run, int optimize, const BuiltJob *job)
{
  Options options = test_options(run, optimize);
  options.real64 = job->real64;
  options.probe_every = job->probe_every;
  options.norms = job->norms;
  options.infer_block = job->decode;
  options.decode = job->decode ? DECODE_CHUNK : 0;
  options.text_to = job->decode ? INT64_MAX : 0;
  *b = (Built){.run = run, .c = compile_create(&options), .real64 = job->real64};
  if (!compile_text(b->c, "selftest.amp", job->text, strlen(job->text)))
    return ampc_fail(AMPC_RUN_FAILED, "%s was refused", job->name);
  ampc_status status = built_start(b);
  return status ? status : ampc_init_params(b->rt, 3);
}

ampc_status built_job_twice(Arena *a, TestRun *run, const BuiltJob *job)
{
  ampc_status status = AMPC_OK;
  for (int optimize = 0; !status && optimize <= 2; optimize += 2) {
    Built b;
    status = built_job(&b, run, optimize, job);
    if (!status) status = job->test(a, run, &b);
    built_close(&b);
  }
  return status;
}

void built_close(Built *b)
{
  ampc_free(b->rt);
  jit_unload(b->jit);
  compile_destroy(b->c);
  *b = (Built){0};
}

ampc_status built_put(Built *b, uint32_t source, const void *raw, int64_t bytes)
{
  ampc_ref to = {AMPC_INPUT, b->c->program->sources[source].offset};
  return ampc_write(b->rt, to, raw, bytes);
}

/* Writes a source. Elements have the sizes of the graph: with real64, f32 takes 8 bytes. */
ampc_status built_write(Built *b, uint32_t source, const Tensor *t)
{
  int64_t bytes = t->n * ampc_size_of(t->dtype, b->real64);
  void *raw = arena_alloc(b->c->arena, (size_t)bytes, 64);
  number_encode(t->dtype, b->real64, t->at, t->n, raw);
  return built_put(b, source, raw, bytes);
}

ampc_status built_step(Built *b)
{
  ampc_status status = ampc_run_step(b->rt, 0, 0);
  return status ? status : ampc_wait(b->rt);
}

ampc_status built_read(Built *b, Arena *a, uint32_t output, Tensor *out)
{
  const ampc_output_desc *o = &b->c->program->outputs[output];
  *out = tensor_like(a, o->dtype, o->rank, o->dim);
  int64_t bytes = out->n * ampc_size_of(o->dtype, b->real64);
  void *raw = arena_alloc(a, (size_t)bytes, 64);
  ampc_status status = ampc_read(b->rt, o->place, raw, bytes);
  if (status == AMPC_OK) number_decode(o->dtype, b->real64, raw, out->n, out->at);
  return status;
}

/* ---- a list of cases ---- */

/* Appends the sources of the op's inputs, the op, and an output for its result. */
static void append_case(Built *b, Case *t)
{
  Value in[TEST_MAX_IN] = {{0}};
  t->first_source = b->c->graph->sources.n;
  for (uint32_t i = 0; i < t->n_in; i++) {
    if (t->in[i].present) in[i] = built_source(b, &t->in[i]);
  }
  Cursor at = built_cursor(t->tf32);
  bool is_output = t->test->op == OP_output; /* built_output appends this op */
  t->value = is_output ? in[0] : ir_append_values(b->c, &at, t->test->op, in, t->n_in, t->attr);
  t->output = built_output(b, t->value);
}

/* Writes the inputs of a case. An absent input has no source. */
static ampc_status write_case(Built *b, const Case *t)
{
  uint32_t source = t->first_source;
  for (uint32_t i = 0; i < t->n_in; i++) {
    if (!t->in[i].present) continue;
    ampc_status status = built_write(b, source++, &t->in[i]);
    if (status) return status;
  }
  return AMPC_OK;
}

/* Runs all cases in one graph: the C compiler takes seconds for a program, whatever its size. */
ampc_status cases_run(Arena *a, const TestRun *run, bool real64, int optimize, CaseList *cases)
{
  Built b;
  built_open(&b, run, real64, optimize);
  for (uint32_t i = 0; i < cases->n; i++) append_case(&b, &cases->at[i]);
  ampc_status status = built_load(&b);
  for (uint32_t i = 0; !status && i < cases->n; i++) status = write_case(&b, &cases->at[i]);
  if (!status) status = built_step(&b);
  for (uint32_t i = 0; !status && i < cases->n; i++) {
    cases->at[i].by_gpu = test_on_gpu(run);
    cases->at[i].by_cuda = jit_runs_cuda(run->target);
    status = built_read(&b, a, cases->at[i].output, &cases->at[i].got);
  }
  built_close(&b);
  return status;
}
