/* Training steps under test. ops/optimizers.c lists the trainings (recipes) and has the formulas of
 * the optimizers. step.c runs the trainings. formulas.c computes what else a step must produce. */
#pragma once
#include "graph.h"
#include "compiler/graph/optimizers.h"

enum { STEP_BATCH = 2, STEP_W = 33, STEP_FC = 33, STEP_N = STEP_W + STEP_FC };

typedef struct Scaler { /* init 0: there is no scaler */
  double init, growth, backoff;
  int64_t interval;
  double min, max;
} Scaler;

typedef struct Recipe {
  const char *label; /* NULL ends the table */
  OptimizerKind kind;
  /* Settings by the names of the update's inputs, such as "beta1=0.9", default 0; flags such as
   * "nesterov"; settings that all optimizers have: clip, skip, clip_value, ema, clamp=LOW,HIGH; the
   * fields of Scaler: scaler=.. */
  const char *words;
  const char *precision;
  const char *plan; /* one letter for each body */
} Recipe;

/* One weight in a body that updates it. A formula replaces the state before the update by the state
 * after it. Each size is the magnitude of the largest term of the sum; errors are measured in f32
 * ulps at that size. */
typedef struct Update {
  double g;     /* gradient, unscaled and clipped */
  double taken; /* updates before this one */
  double weight, moment[MAX_MOMENTS];
  double weight_size, moment_size[MAX_MOMENTS]; /* below 0: the optimizer has no such moment */
  double ema, ema_size;                         /* ema: the weight's average */
  double change, change_size;                   /* the unscaled change, if a norm scales it */
} Update;

typedef struct Batch {
  float x[STEP_BATCH * STEP_W], z[STEP_BATCH * STEP_FC];
} Batch;

typedef struct StepState { /* parameters in the order w, fc.weight */
  float weight[STEP_N], moment[MAX_MOMENTS][STEP_N], ema[STEP_N];
  float copy[STEP_FC]; /* fc.weight's 16-bit copy, as floats */
  ampc_state state;
  ampc_optimizer optimizer;
} StepState;

/* From ops/optimizers.c. The run fails, and names it, if an optimizer lacks formula or recipes. */
extern const Recipe recipes[];
typedef void UpdateFormula(const Recipe *r, Update *u);
UpdateFormula *optimizer_formula(OptimizerKind kind);
/* The second half of a formula, which needs all n weights of a parameter; NULL if there is none. */
typedef void WholeFormula(const Recipe *r, Update *u, int n);
WholeFormula *optimizer_whole_formula(OptimizerKind kind);
bool recipe_flag(const Recipe *r, const char *name);
double recipe_setting(const Recipe *r, const char *name);       /* as f32, as on the device */
double recipe_number(const Recipe *r, const char *name, int i); /* value i, as written */
Scaler recipe_scaler(const Recipe *r);
ampc_status recipes_check(void);

typedef struct StepBody { /* a body that has run */
  Arena *arena;
  TestRun *run;
  const Recipe *recipe;
  const Batch *batch;
  const StepState *before, *after;
  const char *where; /* text for reports */
} StepBody;
/* Checks that `after` is the state that the body must leave when it starts from `before`. */
void step_check(const StepBody *b);
