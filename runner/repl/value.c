/* Values of expressions. An expression is compiled as a program of one block, which runs once on a
 * twin. It can read one batch of data. */
#include "commands.h"
#include "runner/job/median.h"
#include "compiler/graph/ir.h"
#include "runtime/data/source.h"
#include "runtime/outside.h"
#include "common/clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool outputs_print(Repl *r, ampc_runtime *rt, uint32_t block, Look look)
{
  const ampc_program *p = ampc_program_of(rt);
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    const ampc_output_desc *o = &p->outputs[i];
    HostTensor t;
    if (o->block != block) continue;
    if (!repl_check(r, tensor_read(rt, o->place, o->dtype, o->rank, o->dim, &t))) return false;
    bool good = tensor_look(r, &t, look);
    free(t.at);
    if (!good) return false;
  }
  return true;
}

/* Writes n samples of a source, from `first` on, to its place in INPUT. */
static ampc_status write_samples(ampc_runtime *rt, const DataSource *s, int64_t first, int64_t n)
{
  if (first + n > s->count)
    return ampc_fail(AMPC_BAD_FILE, "%s has changed: it has only %lld samples",
                     s->path ? s->path : "a source", (long long)s->count);
  void *bytes = malloc((size_t)(n * s->sample_bytes));
  if (!bytes) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %lld samples", (long long)n);
  ampc_status status = source_copy(s, first, n, AMPC_AS_STORED, bytes);
  if (!status)
    status = ampc_write(rt, (ampc_ref){AMPC_INPUT, s->desc->offset}, bytes, n * s->sample_bytes);
  free(bytes);
  return status;
}

/* Writes the batch that the expression reads. */
static ampc_status write_batch(Repl *r, Compiled *p, ampc_runtime *rt)
{
  const ampc_program *g = p->c->program;
  ampc_state state;
  ampc_status status = g->n_sources ? ampc_get_state(rt, &state) : AMPC_OK;
  DataSource *s = NULL;
  if (g->n_sources && !status)
    status = sources_open(g, g->sources, g->n_sources, r->data_dir, (uint64_t)state.seed, &s);
  for (uint32_t i = 0; i < g->n_sources && !status; i++)
    status = write_samples(rt, &s[i], p->c->first_sample, g->blocks[0].batch);
  sources_close(s, g->n_sources);
  return status;
}

bool answer_print(Repl *r, const Compile *c, Look look)
{
  if (look >= LOOK_picture) return repl_error(r, "cannot draw %s: it is no tensor", c->answer);
  puts(c->answer);
  return true;
}

/* Runs p and prints its value. A value that is known at compile time needs no runtime. An
 * assignment has no value. */
static bool run(Repl *r, Compiled *p, Look look)
{
  if (p->c->answer_layer) return layers_print(r, p->c->answer_layer);
  if (p->c->answer) return answer_print(r, p->c, look);
  if (!p->c->program->n_outputs) return true;
  ampc_runtime *rt;
  if (!repl_check(r, live_twin(r, p, NULL, &rt))) return false;
  bool good = repl_check(r, write_batch(r, p, rt)) && repl_check(r, ampc_run_step(rt, 0, 0)) &&
              repl_check(r, outside_take(rt)) && outputs_print(r, rt, 0, look);
  ampc_free(rt);
  return good;
}

bool value_run(Repl *r, Compiled *p)
{
  return run(r, p, LOOK_value);
}

/* Compiles an expression after the session's declarations and statements. NULL after messages, or
 * silently if `quiet`. */
static Compiled *compile_text_of(Repl *r, const char *text, const char *dump_after, bool quiet)
{
  Part part = {"<expression>", text, (uint32_t)strlen(text)};
  return program_compile(r, &(Request){.input = &part, .dump_after = dump_after, .quiet = quiet});
}

bool value_compiles(Repl *r, const char *text)
{
  Compiled *p = compile_text_of(r, text, "precision", true);
  compiled_drop(p);
  return p != NULL;
}

/* Prints types and reasons: the reason of the output's input, because an output is only a copy. */
static void print_types(Compile *c)
{
  if (c->answer) printf("%s\n", c->answer);
  for (uint32_t i = 0; i < c->graph->outputs.n; i++) {
    const Node *out = ir_node(c->graph, c->graph->outputs.at[i].value);
    printf("%s  %s\n", ir_type_text(c, out), ir_why_text(c, ir_in(c, out, 0)));
  }
}

Compiled *value_watched(Repl *r, const char *text)
{
  Request q = {.watch = text, .dump_after = "precision", .quiet = true};
  Compiled *p = program_compile(r, &q);
  if (p && (p->c->graph->outputs.n || p->c->answer)) return p;
  compiled_drop(p);
  return NULL;
}

void value_tell(Repl *r, const char *name)
{
  Compiled *p = compile_text_of(r, name, "precision", true);
  if (!p) return;
  const Graph *g = p->c->graph;
  const char *type = p->c->answer;
  for (uint32_t i = 0; i < g->outputs.n && !type; i++)
    type = ir_type_text(p->c, ir_node(g, g->outputs.at[i].value));
  if (type) printf("%s: %s\n", name, type);
  compiled_drop(p);
}

/* Runs :type. Compiles to the end of pass precision, where types are known. Nothing is run. */
bool command_type(Repl *r, const char *arg)
{
  if (!*arg) return repl_error(r, ":type needs an expression");
  Compiled *p = value_compiles(r, arg) ? NULL : value_watched(r, arg);
  if (!p) p = compile_text_of(r, arg, "precision", false);
  if (p) print_types(p->c);
  compiled_drop(p);
  return p != NULL;
}

/* Shows a value. Compiles twice: once to run, and once to pass precision, for the reasons. */
bool value_show(Repl *r, const char *text, Look look)
{
  Compiled *p = compile_text_of(r, text, NULL, false);
  if (look == LOOK_range && p && p->c->program->n_sources) look = look_of_data(text);
  bool good = p && run(r, p, look);
  bool tensors = good && !p->c->answer && look < LOOK_picture;
  compiled_drop(p);
  if (!tensors) return good;
  p = compile_text_of(r, text, "precision", false);
  if (p) print_types(p->c);
  compiled_drop(p);
  return p != NULL;
}

/* Measures for half a second, but 3 to 1000 runs. The first run is not counted. */
static bool measure(Repl *r, ampc_runtime *rt)
{
  enum { MOST = 1000 };
  double times[MOST], begin = seconds_now();
  int n = -1;
  while (n < MOST && (n < 3 || seconds_now() - begin < 0.5) && !input_interrupted()) {
    double start = seconds_now();
    ampc_status status = ampc_run_step(rt, 0, 0);
    if (!status) status = ampc_wait(rt);
    if (!repl_check(r, status)) return false;
    if (n >= 0) times[n] = seconds_now() - start;
    n++;
  }
  if (n < 1) return repl_error(r, "interrupted");
  double middle = median(times, (size_t)n);
  printf("%.3f ms (median of %d; least %.3f ms), %u kernels\n", 1e3 * middle, n, 1e3 * times[0],
         ampc_program_of(rt)->n_kernels);
  return true;
}

/* Runs :time on a twin, so that the session does not change. */
bool command_time(Repl *r, const char *arg)
{
  if (!*arg) return repl_error(r, ":time needs an expression");
  Compiled *p = compile_text_of(r, arg, NULL, false);
  if (!p) return false;
  bool good = true;
  if (p->c->answer) {
    printf("%s: known at compile time\n", p->c->answer);
  } else if (p->c->program->n_outputs) {
    ampc_runtime *rt = NULL;
    good = repl_check(r, live_twin(r, p, NULL, &rt)) && repl_check(r, write_batch(r, p, rt)) &&
           measure(r, rt);
    ampc_free(rt);
  } else {
    good = repl_error(r, "this input has no value to time");
  }
  compiled_drop(p);
  return good;
}
