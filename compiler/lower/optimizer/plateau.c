/* Lowers plateau_schedule(lr, metric, ...): a setting that the run lowers when a metric of an eval
 * block stops improving. Kernels read it like any setting, as "opt.lr.start". The rule for lowering
 * it is data of the plan, for runtime/train/plateau.c. The eval block may come after the train
 * block, so the metric is looked up after all blocks. */
#include "plateau.h"
#include "optimizer.h"
#include "common/number.h"
#include <string.h>

static const char *of_plateau(Lower *l, const char *name)
{
  return arena_printf(l->arena, "`%s` of plateau_schedule", name);
}

/* In C, since `metric` is a reserved word and so cannot name an argument of a def of the library.
 * Arguments and defaults are as in torch.optim.lr_scheduler.ReduceLROnPlateau, except that `mode`
 * is that of the metric by default. */
enum { LR, METRIC, FACTOR, PATIENCE, MODE, THRESHOLD, RELATIVE, COOLDOWN, LEAST, EPS, ARGUMENTS };
static const char *const names[ARGUMENTS] = {"lr",     "metric",    "factor",         "patience",
                                             "mode",   "threshold", "threshold_mode", "cooldown",
                                             "min_lr", "eps"};
static const Signature signature = {
    "plateau_schedule",
    "plateau_schedule(lr, metric, factor=0.1, patience=10, mode=none, threshold=1e-4, "
    "threshold_mode=\"rel\", cooldown=0, min_lr=0.0, eps=1e-8)",
    names, ARGUMENTS, METRIC + 1};

static bool want_real(Lower *l, const Datum *value, uint32_t i, Span span, ampc_domain domain,
                      double *out)
{
  return want_in(l, value[i], span, of_plateau(l, names[i]), domain, out);
}

/* Accepts one of two words; *out becomes true for the second word. */
static bool want_word(Lower *l, const Datum *value, uint32_t i, Span span, const char *const two[2],
                      bool *out)
{
  const char *word;
  if (!want_str(l, value[i], span, of_plateau(l, names[i]), &word)) return false;
  *out = strcmp(word, two[1]) == 0;
  return *out || strcmp(word, two[0]) == 0 ||
         refuse(l, E209, span, "`%s` of plateau_schedule is \"%s\"; it must be \"%s\" or \"%s\"",
                names[i], word, two[0], two[1]);
}

static bool want_evaluations(Lower *l, const Datum *value, uint32_t i, Span span, int64_t *out)
{
  return want_count(l, value[i], span, of_plateau(l, names[i]), (Counts){0, AMPC_MOST_STEPS}, out);
}

static Datum run_plateau(Lower *l, Args *args)
{
  static const char *const modes[] = {"min", "max"}, *const relative[] = {"rel", "abs"};
  Datum v[ARGUMENTS] = {
      [LR] = d_of(D_absent),     [METRIC] = d_of(D_absent), [FACTOR] = d_float(0.1),
      [PATIENCE] = d_int(10),    [MODE] = d_of(D_none),     [THRESHOLD] = d_float(1e-4),
      [RELATIVE] = d_str("rel"), [COOLDOWN] = d_int(0),     [LEAST] = d_float(0),
      [EPS] = d_float(1e-8)};
  const ArgValue *given[ARGUMENTS] = {NULL};
  if (!args_bind(l, args, &signature, given)) return d_of(D_error);
  for (int i = 0; i < ARGUMENTS; i++)
    if (given[i]) v[i] = given[i]->value;
  Schedule *s = arena_new(l->arena, Schedule);
  Plateau *p = arena_new(l->arena, Plateau);
  ampc_plateau *rule = &p->rule;
  Span span = p->span = args->span;
  bool good = want_real(l, v, LR, span, AMPC_FINITE, &p->start) &&
              want_str(l, v[METRIC], span, of_plateau(l, "metric"), &p->metric) &&
              want_real(l, v, FACTOR, span, AMPC_FRACTION, &rule->factor) &&
              want_evaluations(l, v, PATIENCE, span, &rule->patience) &&
              (v[MODE].kind == D_none || want_word(l, v, MODE, span, modes, &rule->highest)) &&
              want_real(l, v, THRESHOLD, span, AMPC_NOT_NEGATIVE, &rule->threshold) &&
              want_word(l, v, RELATIVE, span, relative, &rule->absolute) &&
              want_evaluations(l, v, COOLDOWN, span, &rule->cooldown) &&
              want_real(l, v, LEAST, span, AMPC_FINITE, &rule->least) &&
              want_real(l, v, EPS, span, AMPC_NOT_NEGATIVE, &rule->eps);
  p->of_metric = v[MODE].kind == D_none;
  s->plateau = p;
  return good ? (Datum){.kind = D_schedule, .as.schedule = s} : d_of(D_error);
}

/* ---- the setting ---- */

/* Reads a number of the schedule, which --set can replace: "opt.lr.factor". */
static bool real_of(Lower *l, const char *key, const char *name, ampc_domain domain, Span span,
                    double *at)
{
  Datum v = d_float(*at);
  key = arena_printf(l->arena, "%s.%s", key, name);
  return setting_value(l, key, &v, &span) &&
         want_in(l, v, span, arena_printf(l->arena, "`%s`", key), domain, at);
}

static bool count_of(Lower *l, const char *key, const char *name, Span span, int64_t *at)
{
  Datum v = d_int(*at);
  key = arena_printf(l->arena, "%s.%s", key, name);
  return setting_value(l, key, &v, &span) &&
         want_count(l, v, span, arena_printf(l->arena, "`%s`", key), (Counts){0, AMPC_MOST_STEPS},
                    at);
}

/* Returns the node of the setting. `key`: "opt.lr"; `domain`: the range of the setting. */
Value plateau_node(Lower *l, const Plateau *from, const char *key, ampc_domain domain, Span span)
{
  Plateau p = *from;
  if (!key) {
    fail(l, E210, span, "plateau_schedule is allowed only as a setting of an optimizer");
    diag_help(l->c, "`optimizer opt = SGD(net, lr=plateau_schedule(0.1, \"%s\"))`", p.metric);
    return (Value){0};
  }
  if (!real_of(l, key, "start", domain, span, &p.start) ||
      !real_of(l, key, "factor", AMPC_FRACTION, span, &p.rule.factor) ||
      !count_of(l, key, "patience", span, &p.rule.patience) ||
      !real_of(l, key, "threshold", AMPC_NOT_NEGATIVE, span, &p.rule.threshold) ||
      !count_of(l, key, "cooldown", span, &p.rule.cooldown) ||
      !real_of(l, key, "min_lr", domain, span, &p.rule.least) ||
      !real_of(l, key, "eps", AMPC_NOT_NEGATIVE, span, &p.rule.eps))
    return (Value){0};
  uint32_t before = l->g->settings.n;
  Value v = setting_node(l, arena_printf(l->arena, "%s.start", key), p.start, domain, span);
  p.rule.setting = (uint32_t)attr_int(ir_node(l->g, v), "index");
  if (p.rule.setting < before) return v; /* another block has made the setting */
  vec_push(l->arena, &l->plateaus, p);
  return v;
}

/* ---- the metric ---- */

static bool is_judge(const Graph *g, const Metric *m)
{
  return g->blocks.at[m->block].kind == AMPC_EVAL && m->kind != AMPC_METRIC_CONFUSION;
}

/* True if `name` is the metric's name: "acc" or "eval2.acc". */
static bool is_named(const Lower *l, const Metric *m, const char *name)
{
  const char *block = l->g->blocks.at[m->block].name;
  return strcmp(m->name, name) == 0 ||
         strcmp(arena_printf(l->arena, "%s.%s", block, m->name), name) == 0;
}

static void report_metric(Lower *l, const Plateau *p)
{
  Text t = text_new(l->arena);
  bool trained = false, matrix = false;
  for (uint32_t i = 0; i < l->g->metrics.n; i++) {
    const Metric *m = &l->g->metrics.at[i];
    bool other = !is_judge(l->g, m) && is_named(l, m, p->metric);
    matrix |= other && m->kind == AMPC_METRIC_CONFUSION;
    trained |= other && m->kind != AMPC_METRIC_CONFUSION;
    if (is_judge(l->g, m))
      text_printf(&t, "%s\"%s.%s\"", t.n ? ", " : "", l->g->blocks.at[m->block].name, m->name);
  }
  fail(l, E201, p->span,
       matrix ? "plateau_schedule needs a metric that is one number, and `%s` is a matrix"
              : "plateau_schedule needs a metric of an eval block, and none has `%s`",
       p->metric);
  if (trained)
    diag_help(l->c,
              "metrics of a train block vary with its batches; give an eval block "
              "`metric %s = ...`",
              p->metric);
  else if (t.n)
    diag_help(l->c, "metrics of eval blocks: %s", t.at);
  else
    diag_help(l->c,
              "the job has no eval block with a metric: `eval x, y in ... { metric %s = ... "
              "}`",
              p->metric);
}

/* Finds the metric in the first eval block that has it. */
static bool find_metric(Lower *l, Plateau *p)
{
  for (uint32_t i = 0; i < l->g->metrics.n; i++) {
    const Metric *m = &l->g->metrics.at[i];
    if (!is_judge(l->g, m) || !is_named(l, m, p->metric)) continue;
    p->rule.metric = i;
    ampc_metric_desc desc = {.is_loss = m->is_loss, .kind = m->kind, .mode = m->mode};
    if (p->of_metric) p->rule.highest = ampc_mode_of(&desc) == AMPC_MODE_MAX;
    return true;
  }
  report_metric(l, p);
  return false;
}

/* In `amp repl`, watching a value of a train block evaluates nothing and needs no metric. */
void plateaus_settle(Lower *l)
{
  for (uint32_t i = 0; i < l->plateaus.n && !l->c->options.watch; i++)
    if (find_metric(l, &l->plateaus.at[i]))
      vec_push(l->arena, &l->g->plateaus, l->plateaus.at[i].rule);
}

const Native plateau_natives[] = {
    {"plateau_schedule", 1, ARGUMENTS, .keys = true, .run = run_plateau},
    {0},
};
