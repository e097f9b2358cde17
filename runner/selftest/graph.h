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
ampc_status built_load(Built *b);              /* compiles, loads, makes the runtime */
ampc_status built_start(Built *b);             /* the same for what has been compiled */
void built_close(Built *b);
ampc_status built_write(Built *b, uint32_t source, const Tensor *t);
ampc_status built_step(Built *b);
ampc_status built_read(Built *b, Arena *a, uint32_t output, Tensor *out);
/* Runs all cases in one graph and reads `got`. */
ampc_status cases_run(Arena *a, const TestRun *run, bool real64, int optimize, CaseList *cases);
