/* Training steps under test. ops/optimizers.c lists the trainings (recipes) and has the formulas of
 * the optimizers. step.c runs the trainings. formulas.c computes what else a step must produce. */
#pragma once
#include "graph.h"
#include "compiler/graph/optimizers.h"

enum { STEP_BATCH = 2, STEP_W = 33, STEP_FC = 33, STEP_N = STEP_W + STEP_FC };

typedef struct Scaler { /* init 0: no scaler */
  double init, growth, backoff;
  int64_t interval;
  double min, max;
} Scaler;

typedef struct Recipe {
  const char *label; /* NULL ends the table */
  OptimizerKind kind;
  /* settings by the names of the update's inputs, "beta1=0.9", default 0; flags, "nesterov"; what
   * all optimizers have: clip, clip_value, ema, clamp=LOW,HIGH; scaler=: the fields of Scaler */
  const char *words;
  const char *precision;
  const char *plan; /* one letter for each body */
} Recipe;

/* One weight in a body that updates it. On entry a formula finds the state before the update and
 * replaces it by the state after it. Each size is the magnitude of the largest term of the sum;
 * errors are measured in f32 ulps at that size. */
typedef struct Update {
  double g;     /* gradient, unscaled and clipped */
  double taken; /* updates before this one */
  double weight, moment[MAX_MOMENTS];
  double weight_size, moment_size[MAX_MOMENTS]; /* below 0: the optimizer has no such moment */
  double ema, ema_size;                         /* of the weight's average */
  double change, change_size;                   /* the change, unscaled, if a norm scales it */
} Update;

typedef struct Batch {
  float x[STEP_BATCH * STEP_W], z[STEP_BATCH * STEP_FC];
} Batch;

typedef struct StepState { /* w, then fc.weight */
  float weight[STEP_N], moment[MAX_MOMENTS][STEP_N], ema[STEP_N];
  float copy[STEP_FC]; /* the 16-bit copy of fc.weight, in any type */
  ampc_state state;
  ampc_optimizer optimizer;
} StepState;

/* ops/optimizers.c: the run fails if an optimizer lacks a formula or recipes, and names it. */
extern const Recipe recipes[];
typedef void Formula(const Recipe *r, Update *u);
Formula *optimizer_formula(OptimizerKind kind);
/* The second half of a formula, which needs all n weights of a parameter. NULL: there is none. */
typedef void WholeFormula(const Recipe *r, Update *u, int n);
WholeFormula *optimizer_whole_formula(OptimizerKind kind);
bool recipe_flag(const Recipe *r, const char *name);
double recipe_setting(const Recipe *r, const char *name);       /* as f32, as on the device */
double recipe_number(const Recipe *r, const char *name, int i); /* as written; value i of several */
Scaler recipe_scaler(const Recipe *r);
ampc_status recipes_check(void);

typedef struct StepBody { /* a body that has run */
  Arena *arena;
  TestRun *run;
  const Recipe *recipe;
  const Batch *batch;
  const StepState *before, *after;
  const char *where; /* for reports */
} StepBody;
/* Checks that `after` is the state that the body must leave when it starts from `before`. */
void step_check(const StepBody *b);
