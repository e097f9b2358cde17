/* Training steps under test: step.c runs them, formulas.c knows what must come out. */
#pragma once
#include "graph.h"

enum { STEP_BATCH = 2, STEP_W = 33, STEP_FC = 33, STEP_N = STEP_W + STEP_FC };

typedef struct Scaler { /* init 0: none */
  double init, growth, backoff;
  int64_t interval;
  double min, max;
} Scaler;

typedef struct Recipe {
  const char *label, *kind; /* kind: SGD, Adam, AdamW */
  double lr, momentum, dampening, decay, beta1, beta2, eps, clip;
  bool nesterov;
  const char *precision;
  Scaler scaler;
  const char *plan; /* a letter a body */
} Recipe;

typedef struct Batch {
  float x[STEP_BATCH * STEP_W], z[STEP_BATCH * STEP_FC];
} Batch;

typedef struct StepState { /* w, then fc.weight */
  float weight[STEP_N], moment1[STEP_N], moment2[STEP_N];
  uint16_t copy[STEP_FC]; /* 16-bit copy of fc.weight */
  ampc_state state;
  ampc_optimizer optimizer;
} StepState;

bool is_adam(const Recipe *r);
OpKind step_update(const Recipe *r); /* its update op */
/* Reports whether `after` is what the body must make of `before`. */
void step_check(Arena *a, TestRun *run, const Recipe *r, const Batch *batch,
                const StepState *before, const StepState *after, const char *where);
