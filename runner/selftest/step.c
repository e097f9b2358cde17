/* Suite: the ops of a step, in a small job that trains. It has two parameters: `w`, read
 * elementwise in f32, and `fc.weight`, which matrix products read through its 16-bit copy. Their
 * gradients are known sums of the inputs, so a body overflows exactly where the recipe's plan says.
 * After every body, all state is compared with PyTorch's formulas, computed in double from the
 * state before it. */
#include "ampc_metrics.h"
#include "step.h"
#include <math.h>
#include <string.h>

/* ---- the job ---- */

/* Prints an optimizer with all settings; the default is 0, so that the test depends on no default
 * of the language. */
static void print_optimizer(Text *t, const Recipe *r)
{
  const OptimizerInfo *row = optimizer_row(r->kind);
  text_printf(t, "optimizer opt = %s(net", row->name);
  for (uint32_t i = 0; i < row->n_arguments; i++) {
    const OptimizerArgument *a = &row->argument[i];
    if (a->flag) {
      text_printf(t, ", %s=%s", a->name, recipe_flag(r, a->name) ? "true" : "false");
      continue;
    }
    if (a->optional) continue;
    text_printf(t, ", %s=%s", a->name, a->n > 1 ? "[" : "");
    for (uint32_t k = 0; k < a->n; k++)
      text_printf(t, "%s%.17g", k ? ", " : "",
                  recipe_number(r, optimizer_setting_name(row, a->first + k), 0));
    text_puts(t, a->n > 1 ? "]" : "");
  }
  static const char *const all[][2] = {
      {"clip", "clip_norm"}, {"skip", "skip_above"}, {"clip_value", "clip_value"}, {"ema", "ema"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (recipe_flag(r, all[i][0]))
      text_printf(t, ", %s=%.17g", all[i][1], recipe_number(r, all[i][0], 0));
  if (recipe_flag(r, "clamp"))
    text_printf(t, ", clamp=[%.17g, %.17g]", recipe_number(r, "clamp", 0),
                recipe_number(r, "clamp", 1));
  text_puts(t, ")\n");
}

/* Prints the precision clause. Without a scaler it contains only the type. */
static void print_precision(Text *t, const Recipe *r)
{
  const Scaler s = recipe_scaler(r);
  text_printf(t, "precision %s", r->precision);
  if (s.init > 0)
    text_printf(t,
                " { scaler(init=%.1f, growth=%.17g, backoff=%.17g, interval=%lld, min=%.1f, "
                "max=%.1f) }",
                s.init, s.growth, s.backoff, (long long)s.interval, s.min, s.max);
  text_puts(t, "\n");
}

/* Prints the job. Two products have one weight, so that gradients are added, always in f32. An
 * optimizer of matrices gets `w` as one row. */
static void print_job(Text *t, const Recipe *r)
{
  text_printf(t,
              "data numbers() { return synthetic(64, [%d]), synthetic(64, [%d]) }\n"
              "module Net {\n"
              "  w = Parameter([%s%d], init=normal_(std=0.5)); fc = Linear(%d, 1, bias=false)\n"
              "  def forward(x, z) { return sum(x * w) + sum(fc(z)) + sum(fc(z * 2.0)) }\n"
              "}\n"
              "model net = Net()\n",
              STEP_W, STEP_FC, optimizer_row(r->kind)->matrices ? "1, " : "", STEP_W, STEP_FC);
  print_optimizer(t, r);
  print_precision(t, r);
  text_printf(t,
              "train x, z in numbers() with batch=%d {\n"
              "  minimize net(x, z) with opt\n"
              "  metric first = sum(x * x)\n"
              "  metric signs = confusion(x, (x > 0.25).to(i64))\n"
              "}\n",
              STEP_BATCH);
}

static ampc_status compile_recipe(Built *b, Arena *a, const TestRun *run, const Recipe *r,
                                  int optimize)
{
  Text text = text_new(a);
  print_job(&text, r);
  const char *name = arena_printf(a, "the job of recipe %s", r->label);
  return built_job(b, run, optimize, &(BuiltJob){.name = name, .text = text.at});
}

/* ---- one body ---- */

/* Fills a batch with multiples of 1/64: they fit f16; sums times the scale are exact in f32. */
static void fill_batch(Batch *batch, char letter, uint64_t *random)
{
  double size = letter == 'N' ? 100.0 / 64 : 1.0 / 64;
  for (int i = 0; i < STEP_BATCH * STEP_W; i++)
    batch->x[i] = (float)(floor(number_uniform(random) * 129 - 64) * size);
  for (int i = 0; i < STEP_BATCH * STEP_FC; i++)
    batch->z[i] = (float)(floor(number_uniform(random) * 129 - 64) * size);
  if (letter == 'i') batch->x[5] = batch->x[STEP_W + 5] = 3e38f;
  if (letter == 'a') batch->x[5] = NAN;
  if (letter == 'f') batch->z[7] = INFINITY;
}

#define COPIES(KIND, name, SPACE, copied, cpu, lt, dnn, bytes, ...)                                \
  {AMPC_##SPACE, w ? NULL : s->copy, bytes},

/* Reads a parameter's state. `w` is f32 and has no copy; `fc.weight` has one in 16 bits. */
static ampc_status read_param(Built *b, const ampc_param *q, StepState *s)
{
  bool w = strcmp(q->path, "w") == 0;
  int n = w ? STEP_W : STEP_FC, at = w ? 0 : STEP_W;
  const struct {
    ampc_space space;
    void *to;
    int size;
  } all[] = {{AMPC_MASTER, &s->weight[at], 4},     {AMPC_MOMENT1, &s->moment[0][at], 4},
             {AMPC_MOMENT2, &s->moment[1][at], 4}, {AMPC_MOMENT3, &s->moment[2][at], 4},
             {AMPC_EMA, &s->ema[at], 4},           AMPC_NARROW_FLOATS(COPIES)};
  ampc_status status = AMPC_OK;
  for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++) {
    ampc_ref from = {all[i].space, q->offset * all[i].size};
    if (all[i].to && b->c->program->space_bytes[all[i].space])
      status = ampc_read(b->rt, from, all[i].to, n * all[i].size);
  }
  return status;
}

static ampc_status step_read(Built *b, StepState *s)
{
  const ampc_program *p = b->c->program;
  memset(s, 0, sizeof *s);
  ampc_status status = ampc_get_state(b->rt, &s->state);
  ampc_ref place = {AMPC_STATE, ampc_state_optimizer(0)};
  if (!status) status = ampc_read(b->rt, place, &s->optimizer, sizeof s->optimizer);
  for (uint32_t i = 0; !status && i < p->n_params; i++) status = read_param(b, &p->params[i], s);
  return status;
}

static ampc_status run_body(Built *b, const Batch *batch)
{
  ampc_status status = built_put(b, 0, batch->x, sizeof batch->x);
  if (!status) status = built_put(b, 1, batch->z, sizeof batch->z);
  return status ? status : built_step(b);
}

/* ---- recipes ---- */

/* Checks the counts [true, predicted] over all bodies. A sample is true above 1/4, and predicted
 * true above 0. */
static ampc_status check_counts(Arena *a, TestRun *run, Built *b, uint32_t metric,
                                const Batch *batches, int n)
{
  double want[5] = {0}, got[5] = {0};
  for (int i = 0; i < n; i++)
    for (int k = 0; k < STEP_BATCH * STEP_W; k++)
      want[2 * (batches[i].x[k] > 0.25f) + (batches[i].x[k] > 0.0f)]++;
  if (b->c->program->metrics[metric].statistics != 5)
    return ampc_fail(AMPC_RUN_FAILED, "the program has lost its counts");
  ampc_status status = ampc_get_statistics(b->rt, metric, got);
  if (!status)
    test_check(run, OP_statistics, AMPC_F32, memcmp(want, got, sizeof want) == 0,
               arena_printf(a, "counts %g %g %g %g %g, expected %g %g %g %g 0", got[0], got[1],
                            got[2], got[3], got[4], want[0], want[1], want[2], want[3]));
  return status;
}

/* Checks metrics. An average weighs each body by its samples; `last` is the last body's value. */
static ampc_status check_metrics(Arena *a, TestRun *run, Built *b, const Recipe *r,
                                 const Batch *batches, int n)
{
  ampc_metric m;
  const ampc_program *p = b->c->program;
  double sum = 0, last = 0;
  for (int i = 0; i < n; i++) {
    last = 0;
    for (int k = 0; k < STEP_BATCH * STEP_W; k++)
      last += (double)batches[i].x[k] * (double)batches[i].x[k];
    sum += last;
  }
  for (uint32_t i = 0; i + 1 < p->n_metrics; i++) {
    if (strcmp(p->metrics[i].name, "first") != 0) continue;
    ampc_status status = ampc_get_metric(b->rt, i, &m);
    if (!status) status = check_counts(a, run, b, i + 1, batches, n);
    if (status) return status;
    bool average = fabs(m.sum / m.count - sum / n) <= 1e-6 * sum / n;
    test_check(run, OP_metric, AMPC_F32, average && m.count == (double)n * STEP_BATCH,
               arena_printf(a, "%s: average of %d bodies is %.9g, expected %.9g", r->label, n,
                            m.sum / m.count, sum / n));
    test_check(run, OP_metric, AMPC_F32, fabs((double)m.last - last) <= 1e-6 * last,
               arena_printf(a, "%s: last value", r->label));
    return AMPC_OK;
  }
  return ampc_fail(AMPC_RUN_FAILED, "the program has lost its metric");
}

/* Runs the bodies. Each is checked from the actual state before it, so errors do not accumulate. */
static ampc_status run_bodies(Arena *a, TestRun *run, Built *b, const Recipe *r)
{
  StepState before, after;
  StepBody body = {a, run, r, .before = &before, .after = &after};
  uint64_t random = 9;
  int n = (int)strlen(r->plan);
  Batch *batches = arena_array(a, Batch, n);
  bool finite = true;
  ampc_status status = step_read(b, &before);
  for (int i = 0; !status && i < n; i++) {
    fill_batch(&batches[i], r->plan[i], &random);
    finite = finite && strchr("nN", r->plan[i]);
    status = run_body(b, &batches[i]);
    if (!status) status = step_read(b, &after);
    body.batch = &batches[i];
    body.where = arena_printf(a, "%s, body %d (%c)", r->label, i, r->plan[i]);
    if (!status) step_check(&body);
    before = after;
  }
  return !status && finite ? check_metrics(a, run, b, r, batches, n) : status;
}

/* Checks that the same training without fusion ends with the same bits. */
static ampc_status check_unfused(Arena *a, TestRun *run, const Recipe *r, const StepState *fused)
{
  Built b;
  StepState plain;
  TestRun silent = {.device = run->device};
  memcpy(silent.target, run->target, sizeof silent.target);
  ampc_status status = compile_recipe(&b, a, &silent, r, 0);
  if (!status) status = run_bodies(a, &silent, &b, r);
  if (!status) status = step_read(&b, &plain);
  built_close(&b);
  bool same = !status && memcmp(plain.weight, fused->weight, sizeof plain.weight) == 0;
  if (!status)
    test_check(run, optimizer_row(r->kind)->update, AMPC_F32, same,
               arena_printf(a, "%s: -O0 and -O2 end in the same weights", r->label));
  return status;
}

/* Checks each body with -O2. Unless the run is brief, -O0 must end with the same weights. */
static ampc_status run_recipe(Arena *a, TestRun *run, const Recipe *r)
{
  Built b;
  StepState end = {0};
  ampc_status status = compile_recipe(&b, a, run, r, 2);
  if (!status) status = run_bodies(a, run, &b, r);
  if (!status) status = step_read(&b, &end);
  built_close(&b);
  return status || run->edit || run->brief ? status : check_unfused(a, run, r, &end);
}

/* A body also runs the ops that all optimizers share. The recipes of SGD test them, if only one of
 * them is wanted. */
static bool recipe_wanted(const TestRun *run, const Recipe *r)
{
  static const OpKind shared[] = {OP_metric,    OP_statistics,        OP_grad_accumulate,
                                  OP_grad_norm, OP_optimizer_control, OP_scaler_update};
  const OptimizerInfo *row = optimizer_row(r->kind);
  if (test_wanted(run, row->update)) return true;
  if (r->kind == OPT_SGD) return test_wants_any(run, shared, sizeof shared / sizeof *shared);
  return row->measure != OP_COUNT &&
         (test_wanted(run, row->measure) || test_wanted(run, OP_trust_ratio));
}

ampc_status suite_step(Arena *a, TestRun *run)
{
  ampc_status status = recipes_check();
  for (const Recipe *r = recipes; !status && r->label; r++)
    if (recipe_wanted(run, r)) status = run_recipe(a, run, r);
  return status;
}
