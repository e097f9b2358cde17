/* What a training step must do, after the documentation of torch.nn.utils.clip_grad_norm_ and
 * torch.amp.GradScaler, and the optimizer's formula: plain double arithmetic. */
#include "step.h"
#include <math.h>
#include <string.h>

/* What a body must compute from its batch and the scale before it. The loss is linear in the
 * weights, so the gradients are sums of the inputs. */
typedef struct Expected {
  double gradient[STEP_N]; /* unscaled, before clipping */
  double norm, clip;       /* factor */
  bool dropped;            /* the scaled gradients are not finite, or some loss was not */
} Expected;

static Expected expect_gradient(const Recipe *r, const Batch *batch, double scale)
{
  Expected e = {.clip = 1};
  double squares = 0, uses = 3; /* fc(z) + fc(2 z) */
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
  if (r->clip > 0) e.clip = fmin(1, r->clip / (e.norm + 1e-6));
  return e;
}

/* Weights are small: the loss is finite when the inputs are. */
static bool loss_finite(const Batch *batch)
{
  for (int i = 0; i < STEP_BATCH * STEP_W; i++)
    if (!isfinite(batch->x[i])) return false;
  for (int i = 0; i < STEP_BATCH * STEP_FC; i++)
    if (!isfinite(batch->z[i])) return false;
  return true;
}

/* In units of `ulps` f32 ulps at `size`. */
static double ulps_off(float got, double want, double size, double ulps)
{
  double error = fabs((double)got - want) / (ulps * number_ulp(AMPC_F32, size));
  return isnan(error) ? INFINITY : error;
}

/* What all optimizers have: the bound of a gradient and its sign. */
static void apply_formula(const Recipe *r, Update *x)
{
  if (r->clip_value > 0) x->g = fmax(-r->clip_value, fmin(x->g, r->clip_value));
  if (recipe_flag(r, "maximize")) x->g = -x->g;
  optimizer_formula(r->kind)(r, x);
}

/* Then the bounds of the weight and its average, which begins with the first weight that it follows
 * (torch.optim.swa_utils.AveragedModel). */
static void apply_bounds(const Recipe *r, Update *x)
{
  if (r->clamp[1] > 0) x->weight = fmax(r->clamp[0], fmin(x->weight, r->clamp[1]));
  x->ema = x->taken == 0 ? x->weight : r->ema * x->ema + (1 - r->ema) * x->weight;
  x->ema_size = fmax(x->weight_size, fabs(x->ema));
}

/* All weights, parameter by parameter. */
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

typedef struct UpdateError { /* the largest ones, in units of 8 f32 ulps at their size */
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
    if (r->ema > 0)
      worst.weight = fmax(worst.weight, ulps_off(after->ema[i], x->ema, x->ema_size, ULPS));
    worst.weight = fmax(worst.weight, ulps_off(after->weight[i], x->weight, x->weight_size, ULPS));
    for (int k = 0; k < MAX_MOMENTS; k++)
      if (x->moment_size[k] >= 0)
        worst.moment = fmax(worst.moment,
                            ulps_off(after->moment[k][i], x->moment[k], x->moment_size[k], ULPS));
  }
  return worst;
}

/* Bit by bit: a step that is dropped writes nothing. */
static bool unchanged(const StepState *before, const StepState *after)
{
  return memcmp(before->weight, after->weight, sizeof before->weight) == 0 &&
         memcmp(before->moment, after->moment, sizeof before->moment) == 0 &&
         memcmp(before->ema, after->ema, sizeof before->ema) == 0 &&
         before->optimizer.taken == after->optimizer.taken;
}

static void check_update(Arena *a, TestRun *run, const Recipe *r, const Expected *e,
                         const StepState *before, const StepState *after, const char *where)
{
  OpKind op = optimizer_row(r->kind)->update;
  if (e->dropped) {
    test_check(run, op, AMPC_F32, unchanged(before, after),
               arena_printf(a, "%s: an overflow changes nothing", where));
    return;
  }
  UpdateError error = update_error(r, e, before, after);
  const OptimizerInfo *row = optimizer_row(r->kind);
  bool measures = row->measure != OP_COUNT;
  test_report(run, op, PROOF_forward, AMPC_F32, error.weight, arena_printf(a, "%s: update", where));
  test_report(run, measures ? row->measure : op, PROOF_forward, AMPC_F32, error.moment,
              arena_printf(a, "%s: moments", where));
  if (measures) /* what it makes is seen in the weights only */
    test_report(run, OP_trust_ratio, PROOF_forward, AMPC_F32, error.weight,
                arena_printf(a, "%s: ratio", where));
  test_check(run, op, AMPC_F32, after->optimizer.taken == before->optimizer.taken + 1,
             arena_printf(a, "%s: counts its updates", where));
}

/* The copies are the masters rounded, whether they have just changed or not. */
static void check_copies(Arena *a, TestRun *run, const Recipe *r, const StepState *after,
                         const char *where)
{
  if (strcmp(r->precision, "f32") == 0) return;
  DType d = strcmp(r->precision, "f16") == 0 ? AMPC_F16 : AMPC_BF16;
  bool good = true;
  for (int i = 0; i < STEP_FC; i++) {
    double master = (double)after->weight[STEP_W + i], copy;
    number_decode(d, false, &after->copy[i], 1, &copy);
    good = good && copy == number_round(d, master);
  }
  test_check(run, optimizer_row(r->kind)->update, d, good,
             arena_printf(a, "%s: 16-bit copies", where));
}

/* Backoff at once, growth after `interval` good bodies in a row, both within bounds. */
static void check_scaler(Arena *a, TestRun *run, const Recipe *r, bool finite,
                         const StepState *before, const StepState *after, const char *where)
{
  const Scaler *s = &r->scaler;
  double scale = (double)before->state.scale;
  long long growth = before->state.growth; /* below zero: overflows where the scale is lowest */
  bool lowest = before->state.scale <= (float)s->min;
  growth = finite ? (growth > 0 ? growth : 0) + 1 : !lowest ? 0 : growth < 0 ? growth - 1 : -1;
  if (s->init > 0 && !finite) scale = fmax(s->min, scale * s->backoff);
  if (s->init > 0 && growth == s->interval) {
    scale = fmin(s->max, scale * s->growth);
    growth = 0;
  }
  bool good = (double)after->state.scale == scale && (double)after->state.inv_scale == 1 / scale;
  if (s->init > 0) good = good && after->state.growth == growth;
  good = good && after->state.skipped == before->state.skipped + !finite;
  test_check(run, OP_scaler_update, AMPC_F32, good,
             arena_printf(a,
                          "%s: scale %g, growth %lld, skipped %lld; expected scale %g, growth %lld",
                          where, (double)after->state.scale, after->state.growth,
                          after->state.skipped, scale, growth));
}

/* What the update reads: whether to skip, the norm, the factor of unscaling and clipping. */
static void check_control(Arena *a, TestRun *run, const Recipe *r, const Expected *e,
                          const StepState *before, const StepState *after, const char *where)
{
  const ampc_optimizer *o = &after->optimizer;
  test_check(run, OP_grad_accumulate, AMPC_F32, (o->found_inf != 0) == e->dropped,
             arena_printf(a, "%s: non-finite gradients are found", where));
  if (e->dropped) return;
  /* partial sums of squares: half an ulp for each of the additions, at most all of them */
  double norm = ulps_off(o->grad_norm, e->norm, e->norm, STEP_N / 4);
  test_report(
      run, OP_grad_norm, PROOF_forward, AMPC_F32, norm,
      arena_printf(a, "%s: norm %.9g, expected %.9g", where, (double)o->grad_norm, e->norm));
  double factor = e->clip / (double)before->state.scale;
  test_report(run, OP_optimizer_control, PROOF_forward, AMPC_F32,
              ulps_off(o->factor, factor, factor, STEP_N / 4),
              arena_printf(a, "%s: factor %.9g, expected %.9g", where, (double)o->factor, factor));
  test_check(run, OP_optimizer_control, AMPC_F32, o->lr == (float)recipe_setting(r, "lr"),
             arena_printf(a, "%s: learning rate %.9g", where, (double)o->lr));
}

/* Settings are f32 on the device. */
static Recipe stored(const Recipe *r)
{
  Recipe s = *r;
  s.clip = number_round(AMPC_F32, s.clip);
  s.clip_value = number_round(AMPC_F32, s.clip_value);
  s.ema = number_round(AMPC_F32, s.ema);
  for (int i = 0; i < 2; i++) s.clamp[i] = number_round(AMPC_F32, s.clamp[i]);
  for (uint32_t i = 0; i < MAX_SIGNATURE; i++)
    s.setting[i].value = number_round(AMPC_F32, s.setting[i].value);
  return s;
}

void step_check(Arena *a, TestRun *run, const Recipe *r, const Batch *batch,
                const StepState *before, const StepState *after, const char *where)
{
  Recipe exact = stored(r);
  r = &exact;
  Expected e = expect_gradient(r, batch, (double)before->state.scale);
  bool scaled = r->scaler.init > 0;
  long long body = before->state.body + 1, noted = scaled ? 0 : before->state.bad_loss;
  if (scaled && !loss_finite(batch)) noted = -body;
  if (!scaled && !noted && (e.dropped || !loss_finite(batch))) noted = body;
  e.dropped = e.dropped || noted != 0;
  test_check(run, OP_metric, AMPC_F32, after->state.bad_loss == noted,
             arena_printf(a, "%s: a loss that is not finite is noted, or gradient without a scaler",
                          where));
  check_control(a, run, r, &e, before, after, where);
  check_update(a, run, r, &e, before, after, where);
  check_copies(a, run, r, after, where);
  check_scaler(a, run, r, !e.dropped, before, after, where);
}
