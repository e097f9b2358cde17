/* Graphs that suites build without a job's text. They are compiled, loaded and run like any job;
 * their inputs and outputs are doubles here. */
#pragma once
#include "run.h"

typedef struct Built {
  const TestRun *run;
  Compile *c;
  Jit *jit;
  ampc_runtime *rt;
  bool real64; /* f32 is double everywhere */
} Built;

void built_open(Built *b, const TestRun *run, bool real64, int optimize);
Cursor built_cursor(bool tf32);
Value built_source(Built *b, const Tensor *t); /* its index: graph->sources.n before the call */
uint32_t built_output(Built *b, Value v);      /* returns the index of the output */
/* Appends the graph of an expression such as "h = matmul(a, b) + c; tanh(h) * h". The inputs in[0],
 * in[1], .. are named a, b, ..: see expression.c. */
Value built_expression(Compile *c, const Cursor *at, const char *text, const Value *in, uint32_t n);
ampc_status built_load(Built *b);  /* compiles, loads, creates the runtime */
ampc_status built_start(Built *b); /* loads a compiled program, creates the runtime */
/* A job of a suite. */
typedef struct BuiltJob {
  const char *name, *text; /* name: for reports, such as "the job of sums" */
  ampc_status (*test)(Arena *a, TestRun *run, Built *b);
  bool real64;
  uint32_t probe_every;
  bool norms;
  const char *decode; /* the decoder of this infer block; NULL: the job itself */
} BuiltJob;
/* Compiles and loads the job, with weights from a fixed seed. Call built_close even if it fails. */
ampc_status built_job(Built *b, const TestRun *run, int optimize, const BuiltJob *job);
ampc_status built_job_twice(Arena *a, TestRun *run, const BuiltJob *job);
void built_close(Built *b);
ampc_status built_write(Built *b, uint32_t source, const Tensor *t);
ampc_status built_put(Built *b, uint32_t source, const void *raw, int64_t bytes);
ampc_status built_step(Built *b);
ampc_status built_read(Built *b, Arena *a, uint32_t output, Tensor *out);
/* Runs all cases in one graph and reads their results into `got`. */
ampc_status cases_run(Arena *a, const TestRun *run, bool real64, int optimize, CaseList *cases);
