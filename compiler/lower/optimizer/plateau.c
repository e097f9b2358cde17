/* Lowers plateau_schedule(lr, metric, ...): a setting that the run lowers when a metric of an eval
 * block stops improving. Kernels read it like any setting, as "opt.lr.start". The rule for lowering
 * it is data of the plan, for runtime/train/plateau.c. The eval block may come after the train
 * block, so the metric is looked up after all blocks. */
#include "ampc_metrics.h"
#include "plateau.h"
#include "optimizer.h"
#include "compiler/lower/evaluate.h"
#include <string.h>

/* Runs _plateau(lr, metric, ..): the arguments of plateau_schedule() in the layer library. */
static Datum run_plateau(Lower *l, Args *args)
{
  Schedule *s = arena_new(l->arena, Schedule);
  Plateau *p = arena_new(l->arena, Plateau);
  for (int i = 0; i < PLATEAU_ARGUMENTS; i++) p->argument[i] = args->at.at[i].value;
  p->span = diag_user_span(l->c, args->span);
  s->plateau = p;
  return (Datum){.kind = D_schedule, .as.schedule = s};
}

/* ---- the setting ---- */

/* Replaces numbers by --set, "opt.lr.factor", and fills in the rule. */
static bool read_rule(Lower *l, Plateau *p, const char *key, ampc_domain domain, Span span)
{
  static const uint32_t settings[] = {PLATEAU_factor,   PLATEAU_patience, PLATEAU_threshold,
                                      PLATEAU_cooldown, PLATEAU_eps,      PLATEAU_min_lr};
  Datum *v = p->argument;
  const char *start = arena_printf(l->arena, "%s.start", key);
  Span given = span; /* of the last value read: in the end, of min_lr */
  double number;
  if (!setting_value(l, start, &v[PLATEAU_lr], &given) ||
      !want_in(l, v[PLATEAU_lr], given, arena_printf(l->arena, "`%s`", start), domain, &number))
    return false;
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    given = span;
    if (!setting_argument(l, "plateau_schedule", settings[i], key, &v[settings[i]], &given))
      return false;
  }
  p->rule = (ampc_plateau){.highest = v[PLATEAU_mode].kind == D_str &&
                                      strcmp(v[PLATEAU_mode].as.text, "max") == 0,
                           .absolute = strcmp(v[PLATEAU_threshold_mode].as.text, "abs") == 0,
                           .patience = v[PLATEAU_patience].as.integer,
                           .cooldown = v[PLATEAU_cooldown].as.integer,
                           .factor = v[PLATEAU_factor].as.number,
                           .threshold = v[PLATEAU_threshold].as.number,
                           .eps = v[PLATEAU_eps].as.number};
  return want_in(l, v[PLATEAU_min_lr], given, arena_printf(l->arena, "`%s.min_lr`", key), domain,
                 &p->rule.least);
}

/* Returns the node of the setting. `key`: "opt.lr"; `domain`: the range of the setting. */
Value plateau_node(Lower *l, const Plateau *from, const char *key, ampc_domain domain, Span span)
{
  Plateau p = *from;
  if (!key) {
    fail(l, E210, span, "plateau_schedule is allowed only as a setting of an optimizer");
    diag_help(l->c, "`optimizer opt = SGD(net, lr=plateau_schedule(0.1, \"%s\"))`",
              p.argument[PLATEAU_metric].as.text);
    return (Value){0};
  }
  if (!read_rule(l, &p, key, domain, span)) return (Value){0};
  uint32_t before = l->g->settings.n;
  Value v = setting_node(l, arena_printf(l->arena, "%s.start", key),
                         d_number(p.argument[PLATEAU_lr]), domain, span);
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
  const char *metric = p->argument[PLATEAU_metric].as.text;
  Text t = text_new(l->arena);
  bool trained = false, matrix = false;
  for (uint32_t i = 0; i < l->g->metrics.n; i++) {
    const Metric *m = &l->g->metrics.at[i];
    bool other = !is_judge(l->g, m) && is_named(l, m, metric);
    matrix |= other && m->kind == AMPC_METRIC_CONFUSION;
    trained |= other && m->kind != AMPC_METRIC_CONFUSION;
    if (is_judge(l->g, m))
      text_printf(&t, "%s\"%s.%s\"", t.n ? ", " : "", l->g->blocks.at[m->block].name, m->name);
  }
  fail(l, E201, p->span,
       matrix ? "plateau_schedule needs a metric that is one number, and `%s` is a matrix"
              : "plateau_schedule needs a metric of an eval block, and none has `%s`",
       metric);
  if (trained)
    diag_help(l->c,
              "metrics of a train block vary with its batches; give an eval block "
              "`metric %s = ...`",
              metric);
  else if (t.n)
    diag_help(l->c, "metrics of eval blocks: %s", t.at);
  else
    diag_help(l->c,
              "the job has no eval block with a metric: `eval x, y in ... { metric %s = ... "
              "}`",
              metric);
}

/* Finds the metric in the first eval block that has it. */
static bool find_metric(Lower *l, Plateau *p)
{
  const char *metric = p->argument[PLATEAU_metric].as.text;
  for (uint32_t i = 0; i < l->g->metrics.n; i++) {
    const Metric *m = &l->g->metrics.at[i];
    if (!is_judge(l->g, m) || !is_named(l, m, metric)) continue;
    p->rule.metric = i;
    ampc_metric_desc desc = {.is_loss = m->is_loss, .kind = m->kind, .mode = m->mode};
    if (p->argument[PLATEAU_mode].kind == D_none)
      p->rule.highest = ampc_mode_of(&desc) == AMPC_MODE_MAX;
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
    {"plateau", PLATEAU_ARGUMENTS, PLATEAU_ARGUMENTS, .internal = true, .run = run_plateau},
    {0},
};
