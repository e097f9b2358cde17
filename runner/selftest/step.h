/* Training steps under test: ops/optimizers.c lists them and has the formulas of optimizers, step.c
 * runs them, formulas.c knows what else must come out. */
#pragma once
#include "graph.h"
#include "compiler/graph/optimizers.h"

enum { STEP_BATCH = 2, STEP_W = 33, STEP_FC = 33, STEP_N = STEP_W + STEP_FC };

typedef struct Scaler { /* init 0: none */
  double init, growth, backoff;
  int64_t interval;
  double min, max;
} Scaler;

typedef struct Recipe {
  const char *label; /* NULL ends the table */
  OptimizerKind kind;
  /* settings as the update's inputs, "beta1=0.9", those left out are 0; flags, "nesterov"; and what
   * all optimizers have: clip, clip_value, ema, clamp=LOW,HIGH, scaler=, the numbers of Scaler */
  const char *words;
  const char *precision;
  const char *plan; /* a letter a body */
} Recipe;

/* One weight in a body that updates it. Before: what the optimizer keeps of it, then what it must
 * become, each with the size whose f32 ulps count: that of the greatest term of its sum. */
typedef struct Update {
  double g;     /* gradient, unscaled and clipped */
  double taken; /* updates before this one */
  double weight, moment[MAX_MOMENTS];
  double weight_size, moment_size[MAX_MOMENTS]; /* below 0: such a moment is not kept */
  double ema, ema_size;                         /* of the weight's average */
  double change, change_size; /* where norms of the whole parameter scale it: what they scale */
} Update;

typedef struct Batch {
  float x[STEP_BATCH * STEP_W], z[STEP_BATCH * STEP_FC];
} Batch;

typedef struct StepState { /* w, then fc.weight */
  float weight[STEP_N], moment[MAX_MOMENTS][STEP_N], ema[STEP_N];
  float copy[STEP_FC]; /* room for the narrow copy of fc.weight, of any type */
  ampc_state state;
  ampc_optimizer optimizer;
} StepState;

/* ops/optimizers.c: every optimizer has a formula and recipes; a failure names one that lacks them.
 */
extern const Recipe recipes[];
typedef void Formula(const Recipe *r, Update *u);
Formula *optimizer_formula(OptimizerKind kind);
/* What comes behind the formula: for the n weights of a parameter together; NULL: nothing does. */
typedef void WholeFormula(const Recipe *r, Update *u, int n);
WholeFormula *optimizer_whole_formula(OptimizerKind kind);
bool recipe_flag(const Recipe *r, const char *name);
double recipe_setting(const Recipe *r, const char *name);       /* as f32, as on the device */
double recipe_number(const Recipe *r, const char *name, int i); /* as it is said; of several */
Scaler recipe_scaler(const Recipe *r);
ampc_status recipes_check(void);

typedef struct StepBody { /* a body that was run */
  Arena *arena;
  TestRun *run;
  const Recipe *recipe;
  const Batch *batch;
  const StepState *before, *after;
  const char *where; /* for reports */
} StepBody;
/* Reports whether `after` is what the body must make of `before`. */
void step_check(const StepBody *b);
