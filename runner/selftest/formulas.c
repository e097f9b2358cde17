/* What a training step must do, in plain double arithmetic, from the documentation of
 * torch.nn.utils.clip_grad_norm_, of torch.amp.GradScaler and of the optimizer. */
#include "step.h"
#include <math.h>
#include <string.h>

/* The results that a body must compute from its batch and from the scale before it. The loss is
 * linear in the weights, so the gradients are sums of the inputs. */
typedef struct Expected {
  double gradient[STEP_N]; /* unscaled, before clipping */
  double norm, clip;       /* clip: the factor of clipping */
  bool dropped;            /* the scaled gradients or the loss are not finite */
  bool outlier;            /* the norm is above skip_above */
} Expected;

static Expected expect_gradient(const Recipe *r, const Batch *batch, double scale)
{
  Expected e = {.clip = 1};
  double squares = 0, uses = 3; /* the loss contains fc(z) + fc(2 z) */
  for (int i = 0; i < STEP_N; i++) {
    double sum = 0;
    for (int k = 0; k < STEP_BATCH; k++)
      sum += i < STEP_W ? (double)batch->x[k * STEP_W + i]
                        : uses * (double)batch->z[k * STEP_FC + i - STEP_W];
    if (!isfinite(number_round(AMPC_F32, sum * scale))) e.dropped = true;
    e.gradient[i] = sum;
    squares += sum * sum;
  }
  e.norm = sqrt(squares);
  if (recipe_flag(r, "clip")) e.clip = fmin(1, recipe_setting(r, "clip") / (e.norm + 1e-6));
  e.outlier = recipe_flag(r, "skip") && e.norm > recipe_setting(r, "skip");
  return e;
}

/* True if the loss is finite. Weights are small, so only the inputs decide that. */
static bool loss_finite(const Batch *batch)
{
  for (int i = 0; i < STEP_BATCH * STEP_W; i++)
    if (!isfinite(batch->x[i])) return false;
  for (int i = 0; i < STEP_BATCH * STEP_FC; i++)
    if (!isfinite(batch->z[i])) return false;
  return true;
}

/* Returns the error in units of `ulps` f32 ulps at `size`. */
static double ulps_off(float got, double want, double size, double ulps)
{
  double error = fabs((double)got - want) / (ulps * number_ulp(AMPC_F32, size));
  return isnan(error) ? INFINITY : error;
}

/* Applies what all optimizers have, the bound and the sign of the gradient, then the formula. */
static void apply_formula(const Recipe *r, Update *x)
{
  double most = recipe_setting(r, "clip_value");
  if (most > 0) x->g = fmax(-most, fmin(x->g, most));
  if (recipe_flag(r, "maximize")) x->g = -x->g;
  optimizer_formula(r->kind)(r, x);
}

/* Applies the bounds of the weight, then updates the weight's average. The average starts as the
 * first weight that it follows (torch.optim.swa_utils.AveragedModel). */
static void apply_bounds(const Recipe *r, Update *x)
{
  double low = number_round(AMPC_F32, recipe_number(r, "clamp", 0));
  double high = number_round(AMPC_F32, recipe_number(r, "clamp", 1));
  double ema = recipe_setting(r, "ema");
  if (high > 0) x->weight = fmax(low, fmin(x->weight, high));
  x->ema = x->taken == 0 ? x->weight : ema * x->ema + (1 - ema) * x->weight;
  x->ema_size = fmax(x->weight_size, fabs(x->ema));
}

/* Computes the updates of all weights, one parameter after the other. */
static void expect_updates(const Recipe *r, const Expected *e, const StepState *before, Update *x)
{
  WholeFormula *whole = optimizer_whole_formula(r->kind);
  for (int i = 0; i < STEP_N; i++) {
    x[i] = (Update){.g = e->gradient[i] * e->clip,
                    .taken = (double)before->optimizer.taken,
                    .weight = (double)before->weight[i],
                    .ema = (double)before->ema[i]};
    for (int k = 0; k < MAX_MOMENTS; k++) {
      x[i].moment[k] = (double)before->moment[k][i];
      x[i].moment_size[k] = -1;
    }
    apply_formula(r, &x[i]);
  }
  if (whole) whole(r, x, STEP_W);
  if (whole) whole(r, x + STEP_W, STEP_FC);
  for (int i = 0; i < STEP_N; i++) apply_bounds(r, &x[i]);
}

typedef struct UpdateError { /* the largest errors, in units of 8 f32 ulps at their size */
  double weight, moment;
} UpdateError;

static UpdateError update_error(const Recipe *r, const Expected *e, const StepState *before,
                                const StepState *after)
{
  enum { ULPS = 8 };
  Update all[STEP_N];
  UpdateError worst = {0};
  expect_updates(r, e, before, all);
  for (int i = 0; i < STEP_N; i++) {
    const Update *x = &all[i];
    if (recipe_flag(r, "ema"))
      worst.weight = fmax(worst.weight, ulps_off(after->ema[i], x->ema, x->ema_size, ULPS));
    worst.weight = fmax(worst.weight, ulps_off(after->weight[i], x->weight, x->weight_size, ULPS));
    for (int k = 0; k < MAX_MOMENTS; k++)
      if (x->moment_size[k] >= 0)
        worst.moment = fmax(worst.moment,
                            ulps_off(after->moment[k][i], x->moment[k], x->moment_size[k], ULPS));
  }
  return worst;
}

/* True if all bits are unchanged: a dropped step writes nothing. */
static bool unchanged(const StepState *before, const StepState *after)
{
  return memcmp(before->weight, after->weight, sizeof before->weight) == 0 &&
         memcmp(before->moment, after->moment, sizeof before->moment) == 0 &&
         memcmp(before->ema, after->ema, sizeof before->ema) == 0 &&
         before->optimizer.taken == after->optimizer.taken;
}

static void report(const StepBody *b, OpKind op, double error, const char *what)
{
  test_report(b->run, op, PROOF_forward, AMPC_F32, error,
              arena_printf(b->arena, "%s: %s", b->where, what));
}

static void check(const StepBody *b, OpKind op, bool good, const char *what)
{
  report(b, op, good ? 0 : INFINITY, what);
}

static void check_update(const StepBody *b, const Expected *e)
{
  const OptimizerInfo *row = optimizer_row(b->recipe->kind);
  OpKind op = row->update;
  if (e->dropped || e->outlier) {
    check(b, op, unchanged(b->before, b->after), "a dropped update changes nothing");
    return;
  }
  UpdateError error = update_error(b->recipe, e, b->before, b->after);
  bool measures = row->measure != OP_COUNT;
  report(b, op, error.weight, "update");
  report(b, measures ? row->measure : op, error.moment, "moments");
  /* the ratio has no output; it changes only the weights */
  if (measures) report(b, OP_trust_ratio, error.weight, "ratio");
  check(b, op, b->after->optimizer.taken == b->before->optimizer.taken + 1, "counts its updates");
}

/* Checks that the copies are the rounded masters, whether the body changed them or not. */
static void check_copies(const StepBody *b)
{
  const char *precision = b->recipe->precision;
  if (strcmp(precision, "f32") == 0) return;
  DType d = ampc_dtype_by(precision);
  const char *at = (const char *)b->after->copy;
  bool good = true;
  for (int i = 0; i < STEP_FC; i++) {
    double master = (double)b->after->weight[STEP_W + i], copy;
    number_decode(d, false, at + i * ampc_dtype_size(d), 1, &copy);
    good = good && copy == number_round(d, master);
  }
  test_check(b->run, optimizer_row(b->recipe->kind)->update, d, good,
             arena_printf(b->arena, "%s: 16-bit copies", b->where));
}

/* Checks the scale: it falls after an overflow, rises after `interval` good bodies, within
 * bounds. */
static void check_scaler(const StepBody *b, const Expected *e)
{
  const Scaler s = recipe_scaler(b->recipe);
  const ampc_state *before = &b->before->state, *after = &b->after->state;
  bool finite = !e->dropped;
  double scale = (double)before->scale;
  long long growth = before->growth; /* below zero: overflows while the scale was at its minimum */
  bool lowest = before->scale <= (float)s.min;
  growth = finite ? (growth > 0 ? growth : 0) + 1 : !lowest ? 0 : growth < 0 ? growth - 1 : -1;
  if (s.init > 0 && !finite) scale = fmax(s.min, scale * s.backoff);
  if (s.init > 0 && growth == s.interval) {
    scale = fmin(s.max, scale * s.growth);
    growth = 0;
  }
  bool good = (double)after->scale == scale && (double)after->inv_scale == 1 / scale;
  if (s.init > 0) good = good && after->growth == growth;
  good = good && after->skipped == before->skipped + (e->dropped || e->outlier);
  check(b, OP_scaler_update, good,
        arena_printf(b->arena,
                     "scale %g, growth %lld, skipped %lld; expected scale %g, growth %lld",
                     (double)after->scale, after->growth, after->skipped, scale, growth));
}

/* Checks what the update reads: whether to skip, the norm, the factor of unscaling and clipping. */
static void check_control(const StepBody *b, const Expected *e)
{
  const ampc_optimizer *o = &b->after->optimizer;
  check(b, OP_grad_accumulate, (o->found_inf != 0) == (e->dropped || e->outlier),
        "gradients that are not finite, or too large, are found");
  if (e->dropped) return;
  /* partial sums of squares: half an ulp for each addition, all of them sequential at worst */
  report(b, OP_grad_norm, ulps_off(o->grad_norm, e->norm, e->norm, STEP_N / 4),
         arena_printf(b->arena, "norm %.9g, expected %.9g", (double)o->grad_norm, e->norm));
  double factor = e->clip / (double)b->before->state.scale;
  report(b, OP_optimizer_control, ulps_off(o->factor, factor, factor, STEP_N / 4),
         arena_printf(b->arena, "factor %.9g, expected %.9g", (double)o->factor, factor));
  check(b, OP_optimizer_control, o->lr == (float)recipe_setting(b->recipe, "lr"),
        arena_printf(b->arena, "learning rate %.9g", (double)o->lr));
}

void step_check(const StepBody *b)
{
  const ampc_state *before = &b->before->state;
  Expected e = expect_gradient(b->recipe, b->batch, (double)before->scale);
  bool scaled = recipe_flag(b->recipe, "scaler"), finite = loss_finite(b->batch);
  long long noted = scaled ? 0 : before->bad_loss;
  if (scaled && !finite) noted = -(before->body + 1);
  if (!scaled && !noted && (e.dropped || !finite)) noted = before->body + 1;
  e.dropped = e.dropped || noted != 0;
  check(b, OP_metric, b->after->state.bad_loss == noted,
        "a loss that is not finite is recorded; without a scaler, such a gradient too");
  check_control(b, &e);
  check_update(b, &e);
  check_copies(b);
  check_scaler(b, &e);
}
