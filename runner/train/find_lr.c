/* See find_lr.h.
 *
 * The test is a run of the training loop. It ends after `n` steps, or when the loss diverges, and
 * saves nothing. In step i each learning rate is base * low (high / low)^(i / (n - 1)). The first
 * rate of the job has base 1, the others keep their ratio to it. --set replaces a schedule by a
 * number, so the job is compiled with `--set opt.lr=...` for each rate. */
#include "ampc_metrics.h"
#include "find_lr.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/driver.h"
#include "compiler/graph/ops.h"
#include "compiler/graph/optimizers.h"
#include "runner/job/plot.h"

enum { STEPS = 100 };

typedef struct Rate { /* the learning rate of an optimizer, or of a group of its parameters */
  const char *key;    /* "opt.lr" */
  const char *number; /* the setting that has it: "opt.lr", "opt.lr.peak"; NULL: an expression */
  double base;        /* the number in the job, then its ratio to the first rate */
} Rate;

typedef struct Point {
  double rate, loss, smooth; /* rate: of the first of the job's rates */
} Point;

struct FindLr {
  Arena *arena;
  LrRange range;
  VEC(Rate) rates;
  VEC(Point) points;
  uint32_t best;  /* the point with the lowest smooth loss */
  double average; /* of the losses so far: smooth, but biased towards 0 */
  double last;    /* rate of the last step, which may have no point: its loss was not finite */
  int64_t steps;
  bool json, ended, diverged; /* ended: the test, not a failure, has ended the run */
};

/* ---- the rates of the job ---- */

int find_lr_read(const OptionGiven *given)
{
  LrRange *out = given->into;
  char *end;
  *out = (LrRange){1e-7, 10};
  if (!given->value) return OPTIONS_GO_ON;
  out->low = strtod(given->value, &end);
  bool good = end > given->value && *end == ',';
  if (good) out->high = strtod(end + 1, &end);
  good = good && !*end && out->low >= 1e-30 && out->low < out->high && out->high <= 1e30;
  return good ? OPTIONS_GO_ON
              : option_wrong(given, "expected LOW,HIGH: two rates above 0, the lower first");
}

/* Finds the number that determines a rate: a setting, or of a schedule its highest value. */
static void find_number(const Graph *g, Value v, Rate *out)
{
  static const char *const names[] = {"peak", "start", "lr"};
  const Node *n = ir_node(g, v);
  if (n->op == OP_setting) {
    const Setting *s = &g->settings.at[attr_int(n, "index")];
    out->number = s->name;
    out->base = s->value;
  }
  if (strncmp(op_of(n)->name, "schedule_", 9) != 0) return;
  for (size_t k = 0; k < sizeof names / sizeof *names && !out->number; k++)
    for (uint32_t i = 0; i < n->n_in; i++)
      if (strcmp(op_of(n)->signature.input[i].name, names[k]) == 0) find_number(g, n->in[i], out);
}

static bool is_known(const FindLr *f, const Rate *rate)
{
  bool known = false;
  for (uint32_t i = 0; i < f->rates.n; i++) {
    const Rate *r = &f->rates.at[i];
    known = known || strcmp(r->key, rate->key) == 0 ||
            (r->number && rate->number && strcmp(r->number, rate->number) == 0);
  }
  return known;
}

/* Adds the rates of a `minimize`: those of its optimizer and of groups of parameters. A group
 * without a rate of its own follows the optimizer's number. */
static void add_rates(FindLr *f, const Graph *g, const Node *minimize)
{
  int64_t optimizer = attr_int(minimize, "optimizer");
  const Optimizer *o = &g->optimizers.at[optimizer];
  for (uint32_t i = 0; i < o->groups.n; i++) {
    if (o->groups.at[i].shared || !optimizer_has_group(g, optimizer, i)) continue;
    const char *group = i ? arena_printf(f->arena, ".group%u", i) : "";
    Rate rate = {.key = arena_printf(f->arena, "%s%s.lr", o->name, group)};
    find_number(g, minimize->in[1 + i * optimizer_of(o)->n_settings], &rate);
    if (is_known(f, &rate)) continue;
    if (rate.number) rate.number = arena_strdup(f->arena, rate.number);
    vec_push(f->arena, &f->rates, rate);
  }
}

/* The test is one curve. The losses of several blocks, which train in turn, are none. */
static ampc_status check_blocks(const Graph *g)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->blocks.n; i++)
    n += g->blocks.at[i].kind == AMPC_TRAIN && g->blocks.at[i].variant_of < 0;
  if (n < 2) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE,
                   "--find-lr tests one train block, but the job has %u; for the test, make the "
                   "others comments",
                   n);
}

/* Makes the bases ratios to the first one. */
static ampc_status set_ratios(FindLr *f)
{
  if (!f->rates.n) return ampc_fail(AMPC_BAD_USAGE, "--find-lr: the job minimizes nothing");
  double first = f->rates.at[0].base;
  for (uint32_t i = 0; i < f->rates.n; i++) {
    Rate *r = &f->rates.at[i];
    if (f->rates.n > 1 && (!r->number || first == 0))
      return ampc_fail(AMPC_BAD_USAGE,
                       "--find-lr keeps the ratios of the job's learning rates, but %s is %s; for "
                       "the test, give a number: --set %s=1e-3",
                       r->key, r->number ? "0" : "an expression", r->key);
    r->base = f->rates.n > 1 ? r->base / first : 1;
  }
  return AMPC_OK;
}

/* Appends `--set KEY=RATE` for each rate, with its first value. */
static void set_rates(FindLr *f, Options *o)
{
  Assignment *all = arena_array(f->arena, Assignment, o->n_settings + f->rates.n);
  if (o->n_settings) memcpy(all, o->settings, o->n_settings * sizeof *all);
  for (uint32_t i = 0; i < f->rates.n; i++) {
    const Rate *r = &f->rates.at[i];
    all[o->n_settings++] =
        (Assignment){r->key, arena_printf(f->arena, "%.9g", r->base * f->range.low)};
  }
  o->settings = all;
}

ampc_status find_lr_open(Arena *arena, LrRange range, Options *options, FindLr **out)
{
  FindLr *f = *out = arena_new(arena, FindLr);
  *f = (FindLr){.arena = arena, .range = range};
  Options first = *options;
  first.dump_after = "lower";
  Compile *c = compile_create(&first);
  ampc_status status = AMPC_OK;
  if (!compile_job(c))
    status = ampc_fail(c->cannot_read ? AMPC_BAD_FILE : (ampc_status)1, "%s", "");
  for (uint32_t i = 1; !status && i < c->graph->nodes.n; i++)
    if (c->graph->nodes.at[i].op == OP_minimize) add_rates(f, c->graph, &c->graph->nodes.at[i]);
  if (!status) status = check_blocks(c->graph);
  compile_destroy(c);
  if (!status) status = set_ratios(f);
  if (!status) set_rates(f, options);
  return status;
}

/* ---- the run ---- */

static double rate_at(const FindLr *f, int64_t step)
{
  double part = (double)step / (double)(f->steps > 1 ? f->steps - 1 : 1);
  return f->range.low * pow(f->range.high / f->range.low, part);
}

/* Reads the sum of the losses of the last step, as means over its bodies. NaN: it had none. */
static ampc_status read_loss(ampc_runtime *rt, uint32_t block, double *out)
{
  const ampc_program *p = ampc_program_of(rt);
  const ampc_block *b = &p->blocks[block];
  ampc_status status = AMPC_OK;
  *out = NAN;
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics && !status; i++) {
    ampc_metric m = {0};
    if (p->metrics[i].is_loss) status = ampc_get_metric(rt, i, &m);
    if (m.count > 0) *out = (isnan(*out) ? 0 : *out) + m.sum / m.count;
  }
  return status ? status : ampc_clear_metrics(rt, block);
}

/* Smoothed losses are noise at first. */
static uint32_t first_smooth(const FindLr *f)
{
  return (uint32_t)(f->steps / 10);
}

/* Whether the loss has diverged: it is above four times its minimum, and above its first value. A
 * loss that can be negative has risen by three times what it had fallen. */
static bool has_diverged(const FindLr *f, const Point *now)
{
  double first = f->points.at[0].smooth, best = f->points.at[f->best].smooth;
  double limit = best > 0 ? fmax(first, 4 * best) : first + 3 * (first - best);
  return f->points.n > first_smooth(f) && now->smooth > limit;
}

static void add_point(FindLr *f, double rate, double loss)
{
  const double keep = 0.9;
  f->average = keep * f->average + (1 - keep) * loss;
  Point now = {rate, loss, f->average / (1 - pow(keep, f->points.n + 1))};
  vec_push(f->arena, &f->points, now);
  if (now.smooth < f->points.at[f->best].smooth) f->best = f->points.n - 1;
  f->diverged = has_diverged(f, &now);
}

/* After a step: notes its loss, and sets the rates of the next step. A skipped step counts. */
static ampc_status after_step(void *context, ampc_runtime *rt, uint32_t block, int64_t step,
                              const char **out_note)
{
  FindLr *f = context;
  ampc_state state;
  double loss;
  (void)out_note;
  ampc_status status = ampc_get_state(rt, &state);
  if (!status) status = read_loss(rt, block, &loss);
  if (status) return status;
  f->diverged = state.bad_loss != 0 || isinf(loss);
  f->last = rate_at(f, step - 1);
  if (!f->diverged && !isnan(loss)) add_point(f, f->last, loss);
  f->ended = f->diverged || step >= f->steps;
  if (f->ended) return ampc_fail(AMPC_INTERRUPTED, "the test has ended");
  for (uint32_t i = 0; i < f->rates.n && !status; i++)
    status = ampc_set(rt, f->rates.at[i].key, f->rates.at[i].base * rate_at(f, step));
  return status;
}

void find_lr_options(FindLr *f, ampc_train_options *o)
{
  f->json = o->json;
  f->steps = o->steps || o->steps_given ? o->steps : STEPS;
  o->steps = f->steps;
  o->quiet = o->train_only = o->fresh = true;
  o->json = false;
  o->after_step = after_step;
  o->context = f;
  o->lost = NULL;
}

/* ---- the answer ---- */

/* Returns the rate at which the smoothed loss falls fastest, over a twelfth of the steps; 0: it
 * falls by less than a hundredth. The loss also falls before its minimum if the rate is much too
 * low, but slowly. Near the minimum the rate is already too high: only the lag of smoothing puts
 * the minimum there. */
static double propose(const FindLr *f)
{
  if (!f->points.n) return 0;
  uint32_t window = f->steps >= 12 ? (uint32_t)f->steps / 12 : 1;
  double most = 0, rate = 0, first = f->points.at[0].smooth;
  if (first - f->points.at[f->best].smooth < fabs(first) / 100) return 0;
  for (uint32_t i = first_smooth(f); i < f->points.n && i <= f->best; i++) {
    uint32_t from = i > window ? i - window : 0;
    double fall = f->points.at[from].smooth - f->points.at[i].smooth;
    if (fall <= most) continue;
    most = fall;
    rate = f->points.at[(from + i) / 2].rate;
  }
  return rate;
}

static const char *number(Arena *a, double v)
{
  return isfinite(v) ? arena_printf(a, "%.9g", v) : "null";
}

static void print_json(const FindLr *f, double rate)
{
  for (uint32_t i = 0; i < f->points.n; i++) {
    const Point *p = &f->points.at[i];
    printf("{\"event\":\"lr\",\"lr\":%s,\"loss\":%s,\"smoothed\":%s}\n", number(f->arena, p->rate),
           number(f->arena, p->loss), number(f->arena, p->smooth));
  }
  printf("{\"event\":\"found\",\"diverged\":%s,\"lr\":{", f->diverged ? "true" : "false");
  for (uint32_t i = 0; i < f->rates.n; i++) {
    const Rate *r = &f->rates.at[i];
    printf("%s\"%s\":%s", i ? "," : "", r->number ? r->number : r->key,
           rate > 0 ? arena_printf(f->arena, "%.2g", r->base * rate) : "null");
  }
  puts("}}");
}

/* Draws the losses. Of a curve that falls, the end is left out where it has risen by more than
 * twice its fall: otherwise the fall would be invisible. */
static void draw(const FindLr *f, bool falls)
{
  const Point *at = f->points.at;
  uint32_t n = f->points.n;
  double top = 2 * at[0].smooth - at[f->best].smooth;
  while (falls && at[n - 1].smooth > top) n--;
  double *smooth = arena_array(f->arena, double, n);
  for (uint32_t i = 0; i < n; i++) smooth[i] = at[i].smooth;
  plot_curve(
      smooth, n, arena_printf(f->arena, "smoothed loss by %s", f->rates.at[0].key),
      arena_printf(f->arena, "%.2g to %.2g, a logarithmic scale", at[0].rate, at[n - 1].rate));
}

static void print_text(const FindLr *f, double rate)
{
  draw(f, rate > 0);
  if (f->diverged) printf("the loss diverged at %.2g\n", f->last);
  if (rate <= 0) return;
  puts("the loss fell fastest at this rate; use it with --set, or write it in the job:");
  for (uint32_t i = 0; i < f->rates.n; i++) {
    const Rate *r = &f->rates.at[i];
    if (r->number)
      printf("  --set %s=%.2g\n", r->number, r->base * rate);
    else
      printf("  %s: an expression, whose highest value should be %.2g\n", r->key, r->base * rate);
  }
}

ampc_status find_lr_tell(const FindLr *f, ampc_status status, bool silent)
{
  if (!f->ended && status) return status;
  double rate = propose(f);
  if (!silent && f->points.n) (f->json ? print_json : print_text)(f, rate);
  if (rate > 0) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED,
                   "--find-lr: no rate from %.2g to %.2g made the loss fall within %u steps; try "
                   "other rates (--find-lr=LOW,HIGH) or more steps (--steps N)",
                   f->range.low, f->steps ? f->last : f->range.high, f->points.n);
}
