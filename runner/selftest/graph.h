/* Graphs built by hand: compiled, loaded and run as any job, read and written as doubles. */
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
Value built_source(Built *b, const Tensor *t); /* index: graph->sources.n before the call */
uint32_t built_output(Built *b, Value v);      /* its index */
/* "h = matmul(a, b) + c; tanh(h) * h" of in[0], called a, in[1], called b, ..: expression.c. */
Value built_expression(Compile *c, const Cursor *at, const char *text, const Value *in, uint32_t n);
ampc_status built_load(Built *b);  /* compiles, loads, makes the runtime */
ampc_status built_start(Built *b); /* the same for what has been compiled */
/* A job of a suite. It is run fused and not, where nothing else is said. */
typedef struct BuiltJob {
  const char *name, *text; /* "the job of sums" */
  ampc_status (*test)(Arena *a, TestRun *run, Built *b);
  bool real64;
  uint32_t probe_every;
} BuiltJob;
/* Compiled, loaded, weights drawn from a fixed seed. To be closed in any case. */
ampc_status built_job(Built *b, const TestRun *run, int optimize, const BuiltJob *job);
ampc_status built_job_twice(Arena *a, TestRun *run, const BuiltJob *job);
void built_close(Built *b);
ampc_status built_write(Built *b, uint32_t source, const Tensor *t);
ampc_status built_put(Built *b, uint32_t source, const void *raw, int64_t bytes);
ampc_status built_step(Built *b);
ampc_status built_read(Built *b, Arena *a, uint32_t output, Tensor *out);
/* Runs all cases in one graph and reads `got`. */
ampc_status cases_run(Arena *a, const TestRun *run, bool real64, int optimize, CaseList *cases);
