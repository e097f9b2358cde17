/* The causes of a lost run. Each has a test, which looks at measurements only, never at the text of
 * the job. THE table at the end ranks the causes. */
#include "causes.h"
#include <math.h>
#include <string.h>
#include "runner/job/median.h"
#include "common/clock.h"

/* Limits of what is ordinary. A layer with inputs near 1 has outputs near 1 if the root mean square
 * of its weights is 1 / sqrt(inputs). */
static const double DATA_RMS = 30;      /* images in 0 to 255 have 100 */
static const double DATA_MOST = 1e4;    /* no standardized number is so far from the mean */
static const double GAIN = 10;          /* of initial weights; usual layers have 0.5 to 2 */
static const double DEEP_GAIN = 2.5;    /* the same, if many layers multiply it */
static const double GROWN = 10;         /* growth of weights that is an explosion */
static const double LEAST_WEIGHT = 0.1; /* smaller weights may well grow so much */
static const double RATE = 0.1;         /* larger learning rates are unusual */
static const double SLOPE = 10;         /* largest change per unit of learning rate; Adam has 1 */
static const double SPIKE = 30;         /* a gradient compared with the median before it */
static const double JUMP = 10;          /* a learning rate compared with the median before it */
enum { USUAL = 3 /* least number of steps that show what is usual */ };

#define SAY(e, ...) arena_printf((e)->a->c->arena, __VA_ARGS__)

/* ---- did the weights explode, and what made them ---- */

static double ratio_of(const Past *p, double least)
{
  return p->update / fmax(p->weights, least);
}

/* Returns the change of the weights per unit of learning rate: a gradient, or what the optimizer
 * makes of it. So a step is the product of this slope and the learning rate. */
static double slope_of(const Past *p)
{
  return p->lr > 0 ? p->greatest / p->lr : 0;
}

/* Returns the median of `of` over the first n steps, without those that did not change the weights;
 * 0: no step did. */
static double usual_of(const Evidence *e, uint32_t n, double of(const Past *))
{
  double *x = arena_array(e->a->c->arena, double, n + 1);
  uint32_t many = 0;
  for (uint32_t i = 0; i < n; i++)
    if (e->h.at.at[i].update > 0) x[many++] = of(&e->h.at.at[i]);
  return median(x, many);
}

static double gradient_of(const Past *p)
{
  return p->gradient;
}

static double largest_data(const Past *p)
{
  return p->input.greatest;
}

static double rate_of(const Past *p)
{
  return p->lr;
}

static bool has_jumped(const Evidence *e)
{
  double usual = usual_of(e, e->spot, rate_of);
  return e->spot >= USUAL && usual > 0 && e->h.at.at[e->spot].lr >= JUMP * usual;
}

/* Returns the norm of the trained weights in `w`, and the number of their elements. */
static double norm_of(const Watch *w, int64_t *n)
{
  double sum = 0;
  *n = 0;
  for (uint32_t i = 0; i < w->n; i++) {
    const Range *r = &w->at[i].range;
    if (w->at[i].probe->kind != PROBE_weight) continue;
    if (!watch_param(w, PROBE_update, w->at[i].probe->param)) continue;
    double rms = range_is_finite(r) ? range_rms(r) : INFINITY;
    sum += rms * rms * (double)r->n;
    *n += r->n;
  }
  return sqrt(sum);
}

/* Returns the first step that changed the weights by at least half of their norm; if there is none,
 * the one that changed them most. */
static uint32_t find_spot(const Evidence *e, double least)
{
  uint32_t most = 0;
  for (uint32_t i = 0; i < e->h.at.n; i++) {
    if (ratio_of(&e->h.at.at[i], least) >= 0.5) return i;
    if (ratio_of(&e->h.at.at[i], least) > ratio_of(&e->h.at.at[most], least)) most = i;
  }
  return most;
}

/* Returns the optimizer that made the weights explode. */
static const ampc_optimizer_desc *culprit_of(const Evidence *e)
{
  return &e->a->c->program->optimizers[e->h.at.at[e->spot].optimizer];
}

/* Returns the name of a setting of that optimizer. */
static const char *setting_name(const Evidence *e, const char *name)
{
  return SAY(e, "%s.%s", culprit_of(e)->name, name);
}

static double setting_of(const Evidence *e, const char *name)
{
  return history_setting(e->a, setting_name(e, name));
}

/* Decay alone multiplies weights by 1 - lr * decay, which explodes below -1. */
static bool is_decay(const Evidence *e)
{
  const Past *p = &e->h.at.at[e->spot];
  double factor = p->lr * setting_of(e, "weight_decay");
  double share = p->update / (factor * p->weights); /* another share: the gradient did more */
  return factor > 2 && share > 0.7 && share < 1.4;
}

/* A step is the product of slope and learning rate. Returns which of the two was too large. After
 * the explosion every slope is large, so only the slopes before it count. */
static Blame find_blame(const Evidence *e)
{
  const Past *p = &e->h.at.at[e->spot];
  double usual = usual_of(e, e->spot, slope_of);
  if (is_decay(e)) return BLAME_decay;
  if (has_jumped(e)) return BLAME_rate;
  if (e->spot >= USUAL && usual > 0 && slope_of(p) >= SPIKE * usual) return BLAME_spike;
  double slope = usual > 0 ? usual : slope_of(p), rate = p->lr / RATE;
  return slope >= SLOPE && slope > rate ? BLAME_gradient : BLAME_rate;
}

/* Whether the optimizer made NaN of finite gradients. Weights that explode become infinite first.
 */
static bool is_undefined(const Evidence *e)
{
  return e->first->probe->kind == PROBE_weight && e->first->range.nans && e->h.whole && e->h.at.n &&
         isfinite(e->h.at.at[e->h.at.n - 1].gradient);
}

void evidence_weigh(Evidence *e)
{
  int64_t n;
  e->grown = norm_of(&e->lost, &n);
  e->blame = BLAME_none;
  if (!e->h.at.n || is_undefined(e)) return;
  double least = LEAST_WEIGHT * sqrt((double)n), begun = e->h.at.at[0].weights;
  e->spot = find_spot(e, least / 10);
  bool kicked = e->h.whole && ratio_of(&e->h.at.at[e->spot], least / 10) >= 1;
  if (e->grown >= GROWN * fmax(begun, least) || (kicked && e->grown >= 3 * begun))
    e->blame = find_blame(e);
}

/* ---- the data ---- */

static const char *name_sample(const Evidence *e, double limit)
{
  char *text = arena_array(e->a->c->arena, char, 1024);
  return ampc_data.find_lost(again_data(e->a), limit, text, 1024) ? text : NULL;
}

static bool is_source(const Seen *s)
{
  return s->probe->kind == PROBE_value && s->probe->of.op == OP_source;
}

static bool data_not_finite(Evidence *e, Reason *out)
{
  const Range *r = &e->first->range;
  if (!is_source(e->first)) return false;
  const char *sample = name_sample(e, INFINITY);
  out->shown = SAY(e, "%lld of the %lld numbers in this batch are not finite%s%s",
                   (long long)(r->nans + r->infinite), (long long)r->n, sample ? ": " : "",
                   sample ? sample : "");
  out->help = "correct or leave out that sample, or replace such numbers with "
              "where(isfinite(x), x, 0.0)";
  return true;
}

static bool data_large(Evidence *e, Reason *out)
{
  Input in = e->blame == BLAME_spike ? e->h.at.at[e->spot].input : history_input(&e->h, &e->lost);
  if (e->blame == BLAME_rate || e->blame == BLAME_decay) return false;
  if (e->blame == BLAME_spike && in.greatest < SPIKE * usual_of(e, e->spot, largest_data))
    return false;
  if (in.rms < DATA_RMS && in.greatest < DATA_MOST) return false;
  char *text = arena_array(e->a->c->arena, char, 1024);
  bool column = in.few && ampc_data.find_column(again_data(e->a), in.greatest / NEAR, text, 1024);
  const char *where = column ? text : in.few ? name_sample(e, 0.999 * in.greatest) : NULL;
  out->shown = SAY(e, "%s reaches %.3g (root mean square %.2g)%s%s; a net expects numbers near 1",
                   seen_name(&e->lost, &e->lost.at[in.seen]), in.greatest, in.rms,
                   where ? ": " : "", where ? where : "");
  out->help = in.few && !column
                  ? "correct or leave out that sample, or limit the data with clamp()"
                  : "subtract the mean of the data and divide by the deviation, for example "
                    "with a layer Standardize";
  return true;
}

/* ---- initial values ---- */

/* Returns the values of the first step of the run, or of its checkpoint; NULL: unknown. */
static const Seen *begin_of(const Evidence *e)
{
  if (e->h.begin) return e->h.begin;
  return e->a->lost->step == e->h.first ? e->lost.at : NULL;
}

static bool weights_not_finite(Evidence *e, Reason *out)
{
  const Seen *at = begin_of(e);
  if (!at || e->first->probe->kind != PROBE_weight) return false;
  at += e->first - e->lost.at;
  if (range_is_finite(&at->range)) return false;
  out->shown = SAY(e, "%lld of %lld numbers of %s are not finite before the first step",
                   (long long)(at->range.nans + at->range.infinite), (long long)at->range.n,
                   seen_name(&e->lost, at));
  out->help = "look at the file that the job loads (`load`, `resume`) and at the initial value; "
              "`amp weights` writes weights of another checkpoint";
  return true;
}

/* If `s` is a product with a weight, returns how much larger than its inputs it is in the step that
 * `at` shows, for inputs that are independent; else 0. */
static double gain_of(const Evidence *e, const Seen *at, const Seen *s, const Seen **weight)
{
  const Node *n = &s->probe->of;
  bool product = s->probe->kind == PROBE_value && op_has(n, T_bilinear) && n->rank > 1;
  for (uint32_t k = 0; k < 2 && product && !seen_is_backward(s); k++) {
    const Seen *in = watch_input(&e->lost, s, k);
    if (!in || in->probe->kind != PROBE_weight || in->probe->of.rank < 2) continue;
    int64_t outputs = op_has(n, T_image) ? in->probe->of.dim[0] : n->dim[n->rank - (k ? 1 : 2)];
    *weight = &at[in - e->lost.at];
    double inputs = (double)ir_elements(&in->probe->of) / (double)outputs;
    return range_rms(&(*weight)->range) * sqrt(inputs);
  }
  return 0;
}

static bool values_begin_large(Evidence *e, Reason *out)
{
  const Seen *at = begin_of(e), *worst = NULL, *weight = NULL;
  double most = 0;
  uint32_t many = 0;
  if (!at || e->a->start || (e->blame && e->blame != BLAME_gradient)) return false;
  for (uint32_t i = 0; i < e->lost.n; i++) {
    double gain = gain_of(e, at, &e->lost.at[i], &weight);
    many += gain >= DEEP_GAIN;
    if (gain > most) worst = weight, most = gain;
  }
  bool deep = many >= 4;
  if (most < (deep ? DEEP_GAIN : GAIN)) return false;
  double rms = range_rms(&worst->range);
  out->shown =
      SAY(e,
          "%s begins with a root mean square of %.2g: products with it are about %.2g times "
          "as large as their inputs%s",
          seen_name(&e->lost, worst), rms, most,
          deep ? SAY(e, "; %u products are like that", many) : "");
  out->help = SAY(e, "leave out its initial value, or draw it with std=%.2g", rms / most);
  return true;
}

/* ---- the optimizer ---- */

static bool update_undefined(Evidence *e, Reason *out)
{
  if (!is_undefined(e)) return false;
  const Range *r = &e->first->range;
  e->spot = e->h.at.n - 1;
  out->shown = SAY(e,
                   "in step %lld %s made %lld of %lld numbers of %s NaN, although the gradient is "
                   "finite (norm %.3g)",
                   (long long)(e->h.first + e->spot), culprit_of(e)->kind, (long long)r->nans,
                   (long long)r->n, seen_name(&e->lost, e->first), e->h.at.at[e->spot].gradient);
  out->help = SAY(e, "%s %s=1e-8: with eps = 0, a gradient of 0 leads to 0 / 0", e->a->lost->set,
                  setting_name(e, "eps"));
  return true;
}

/* Returns "; the weights grew from 3.2 to 1e+09 (norm)", or "". */
static const char *growth_text(const Evidence *e)
{
  return e->h.at.n ? SAY(e, "; the weights grew from %.3g to %.3g (norm)", e->h.at.at[0].weights,
                         e->grown)
                   : "";
}

/* Returns "in step 5", or what was repeated instead. */
static const char *step_text(const Evidence *e)
{
  return SAY(e, "%sin step %lld", e->h.whole ? "" : "when the job is run again, ",
             (long long)(e->h.first + e->spot));
}

static bool decay_large(Evidence *e, Reason *out)
{
  if (e->blame != BLAME_decay) return false;
  double lr = e->h.at.at[e->spot].lr, decay = setting_of(e, "weight_decay");
  out->shown = SAY(e, "a step multiplies the weights by 1 - lr * weight_decay = %.3g%s",
                   1 - lr * decay, growth_text(e));
  out->help =
      SAY(e, "%s %s=%.1g, or less", e->a->lost->set, setting_name(e, "weight_decay"), 0.1 / lr);
  return true;
}

static bool gradient_large(Evidence *e, Reason *out)
{
  if (e->blame != BLAME_spike && e->blame != BLAME_gradient) return false;
  const Past *p = &e->h.at.at[e->spot];
  double before = e->blame == BLAME_spike ? usual_of(e, e->spot, gradient_of) : 0;
  const char *than = before > 0 ? SAY(e, ", after %.2g in the steps before", before) : "";
  out->shown =
      SAY(e,
          "%s the norm of the gradient was %.3g%s, and the step changed the weights by %.3g "
          "times their size%s",
          step_text(e), p->gradient, than, p->update / p->weights, growth_text(e));
  out->help = SAY(e, "add clip_norm=%g to the optimizer, which limits the norm of the gradient",
                  before > 0 ? pow(10, round(log10(before))) : 1);
  return true;
}

/* Looks for the learning rate with which the loss becomes lowest. Returns what to do. */
static const char *try_rates(Evidence *e)
{
  enum { TRIES = 12, SECONDS = 30 };
  Trial best = {0};
  double factor = 1, rate = setting_of(e, "lr"), end = seconds_now() + SECONDS;
  for (int i = 0; i < TRIES && e->h.whole; i++) {
    Trial t;
    factor /= 10;
    if (history_try(e->a, culprit_of(e)->name, factor, end, &t) || !t.steps) break;
    if (best.steps && !(t.after < best.after)) break;
    if (t.good) best = t;
  }
  if (!best.steps) return "a smaller learning rate, a schedule with warmup, or clip_norm";
  const char *loss = "", *what;
  if (isfinite(best.after))
    loss = SAY(e, "; their mean loss is %.3g in the first half and %.3g in the second", best.before,
               best.after);
  if (rate > 0 && best.rates == 1)
    what = SAY(e, "%s %s=%.3g", e->a->lost->set, setting_name(e, "lr"), rate * best.factor);
  else
    what = SAY(e, "learning rates of `%s` %g times smaller", culprit_of(e)->name, 1 / best.factor);
  return SAY(e, "%s: %lld steps of this run are finite%s", what, (long long)best.steps, loss);
}

static bool rate_large(Evidence *e, Reason *out)
{
  if (e->blame != BLAME_rate && e->blame != BLAME_gradient) return false;
  const Past *p = &e->h.at.at[e->spot];
  const char *jump = "";
  if (has_jumped(e)) jump = SAY(e, " (mostly %.3g before)", usual_of(e, e->spot, rate_of));
  if (!e->h.whole)
    out->shown = growth_text(e) + strlen("; ");
  else
    out->shown =
        SAY(e,
            "%s %s with a learning rate of %.3g%s changed the weights by %.3g times their "
            "size%s",
            step_text(e), culprit_of(e)->kind, p->lr, jump, p->update / p->weights, growth_text(e));
  out->help = has_jumped(e) ? "a schedule without this jump" : try_rates(e);
  return true;
}

/* ---- the loss scale, the type, the operation ---- */

/* Returns half of the largest power of two with which the gradients in f16 of this step are finite:
 * other steps have larger ones. */
static double largest_scale(const Evidence *e)
{
  double most = 0;
  for (uint32_t i = 0; i < e->plain.n; i++) {
    const Seen *s = &e->plain.at[i];
    if (seen_is_backward(s) && s->probe->kind == PROBE_value && s->probe->of.dtype == AMPC_F16)
      most = fmax(most, s->range.greatest);
  }
  return most > 0 ? exp2(floor(log2(ampc_type_of(AMPC_F16)->greatest / most)) - 1) : 0;
}

static bool scale_large(Evidence *e, Reason *out)
{
  if (e->bad || e->blame) return false;
  out->shown =
      SAY(e, "the gradient leaves the range of its type at scale %g but not at 1", e->scale);
  const ampc_scaler_desc *d = &e->a->c->program->scaler;
  double fits = largest_scale(e);
  out->help = "lower `min` or `static` of the scaler, or put autocast(f32) around this line";
  if (fits >= 1)
    out->help = SAY(e, "%s scaler.%s=%.0f, or put autocast(f32) around this line", e->a->lost->set,
                    d->min == d->max ? "static" : "min", fits);
  return true;
}

static bool range_left(Evidence *e, Reason *out)
{
  if (!e->bad || !e->f32_finite) return false;
  out->shown = SAY(e, "%s leaves the range of f16 (65504); in f32 the same step is finite",
                   seen_name(&e->plain, e->bad));
  out->help = "put autocast(f32) around this line, use bf16, or make its inputs smaller";
  return true;
}

typedef enum Fault { ZERO, NEGATIVE, LARGE, MASKED } Fault;

/* Where ops have no finite result: an input is 0, negative, large, or -inf in a whole row. */
static const struct Limit {
  const char *ops;    /* names, each between spaces */
  const char *origin; /* in backward: the op whose gradient it is; NULL: any */
  uint32_t input;
  Fault fault;
  const char *shown, *help;
} limits[] = {
    {" div ", "sqrt", 1, ZERO, "sqrt has no finite gradient at 0",
     "add a small number to its input: sqrt(x + 1e-12)"},
    {" div ", NULL, 1, ZERO, "the divisor is 0",
     "add a small number to the divisor: x / (y + 1e-6)"},
    {" reciprocal rsqrt ", NULL, 0, ZERO, "the divisor is 0", "add a small number to it"},
    {" pow ", NULL, 0, ZERO, "the base is 0", "add a small number to the base"},
    {" log log2 ", NULL, 0, ZERO, "log(0) is -inf",
     "clamp its input: log(clamp(x, min=1e-6)); after softmax, use log_softmax"},
    {" log log2 sqrt rsqrt ", NULL, 0, NEGATIVE, "numbers below 0 have no real result",
     "clamp its input: clamp(x, min=1e-6)"},
    {" softmax log_softmax ", NULL, 0, MASKED, "all numbers of a row are -inf",
     "leave one number of each row unmasked, or replace its result with where()"},
    {" cross_entropy_rows ", NULL, 0, MASKED, "the class of a label is masked with -inf",
     "leave the class of each label unmasked"},
    {" exp ", NULL, 0, LARGE, "e^x leaves the range of f32 above 88.7",
     "subtract the maximum of x first, clamp it, or use softmax or logsumexp"},
    {" pow ", NULL, 0, LARGE, "the power leaves the range of f32", "clamp the base"},
};

static bool has_fault(const struct Limit *l, const Seen *s, const Seen *in)
{
  if (l->fault == NEGATIVE) return s->range.nans > 0 && !in->range.zeros;
  if (l->fault == MASKED) return in->meant;
  return l->fault == ZERO ? in->range.zeros > 0 : in->range.greatest > 88;
}

static bool is_limit_of(const struct Limit *l, const Evidence *e, const Seen **out)
{
  const Probe *p = e->bad->probe;
  *out = l->input < p->of.n_in ? watch_input(&e->plain, e->bad, l->input) : NULL;
  return *out && strstr(l->ops, SAY(e, " %s ", op_of(&p->of)->name)) &&
         has_fault(l, e->bad, *out) &&
         (!l->origin || (p->origin && strcmp(p->origin, l->origin) == 0));
}

/* `large`: looks for inputs that are too large; else for all other faults. */
static bool find_fault(Evidence *e, bool large, Reason *out)
{
  if (!e->bad || e->bad->probe->kind != PROBE_value) return false;
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    const struct Limit *l = &limits[i];
    const Seen *in;
    if ((l->fault == LARGE) != large || !is_limit_of(l, e, &in)) continue;
    const char *name = seen_name(&e->plain, in), *how = "";
    if (l->fault == ZERO)
      how = SAY(e, ": %lld of %lld numbers of %s are 0", (long long)in->range.zeros,
                (long long)in->range.n, name);
    if (l->fault == NEGATIVE)
      how = SAY(e, ": %lld of %lld numbers of %s are negative", (long long)e->bad->range.nans,
                (long long)in->range.n, name);
    if (large) how = SAY(e, ", and %s reaches %.3g", name, in->range.greatest);
    out->shown = SAY(e, "%s%s", l->shown, how);
    out->help = l->help;
    return true;
  }
  return false;
}

static bool op_singular(Evidence *e, Reason *out)
{
  return !e->blame && find_fault(e, false, out);
}

static bool op_overflows(Evidence *e, Reason *out)
{
  return find_fault(e, true, out) || find_fault(e, false, out);
}

/* In f32, only values that grew from one operation to the next become so large. */
static bool values_large(Evidence *e, Reason *out)
{
  if (!e->bad || e->bad->probe->kind != PROBE_value || !e->bad->range.infinite) return false;
  for (uint32_t i = 0; i < e->bad->probe->of.n_in; i++) {
    const Seen *in = watch_input(&e->plain, e->bad, i);
    if (!in || in->range.greatest < 1e15) continue;
    out->shown = SAY(e,
                     "%s leaves the range of %s: %s reaches %.3g, although data, weights and "
                     "learning rate are ordinary",
                     seen_name(&e->plain, e->bad), ir_dtype_name(e->bad->probe->of.dtype),
                     seen_name(&e->plain, in), in->range.greatest);
    out->help = "keep values near 1: a normalization such as LayerNorm between the layers, fewer "
                "iterations of a scan, or smaller initial weights";
    return true;
  }
  return false;
}

/* What is left: nothing else is out of line. */
static bool op_alone(Evidence *e, Reason *out)
{
  if (!e->bad || e->bad->probe->kind != PROBE_value) return false;
  out->shown = SAY(e, "%s is not finite, although data, weights and learning rate are ordinary",
                   seen_name(&e->plain, e->bad));
  out->help = "look at the arguments of this operation, such as eps, and at its inputs";
  return true;
}

/* The steps before are not known, so neither is what made the weight so. */
static bool weight_lost(Evidence *e, Reason *out)
{
  if (e->first->probe->kind != PROBE_weight) return false;
  out->shown = SAY(e, "%s was not finite before this step", seen_name(&e->lost, e->first));
  out->help = "resume from an earlier checkpoint, with a smaller learning rate";
  return true;
}

/* ---- the table ---- */

/* THE causes, in the order in which one leads to the next. Data and initial values make gradients
 * large. Large gradients or a large learning rate make weights explode. Large weights make values
 * leave the range of their type. So the first cause with evidence is the most likely one. */
static const struct Cause {
  const char *name;
  bool (*find)(Evidence *e, Reason *out);
  bool last; /* only if no other cause is found */
} causes[] = {
    {"data", data_not_finite, false},              /* a number of a file is NaN or infinite */
    {"initial values", weights_not_finite, false}, /* so is a loaded weight */
    {"operation", update_undefined, false},        /* the optimizer computes 0 / 0 */
    {"loss scale", scale_large, false},            /* at a scale of 1 all is finite */
    {"operation", op_singular, false},             /* ordinary weights, but 1 / 0 */
    {"data", data_large, false},                   /* far from 1 */
    {"initial values", values_begin_large, false}, /* each layer makes values larger */
    {"weight decay", decay_large, false},          /* the weights exploded: by decay, */
    {"missing clipping", gradient_large, false},   /* a large gradient, */
    {"learning rate", rate_large, false},          /* or large steps */
    {"range of the type", range_left, false},      /* in f32 all is finite */
    {"operation", op_overflows, false},            /* e^100 */
    {"learning rate", weight_lost, true},          /* the steps before are not known */
    {"range of the type", values_large, true},     /* even that of f32 */
    {"operation", op_alone, true},                 /* nothing else is out of line */
};
_Static_assert(sizeof causes / sizeof *causes <= CAUSES_MOST, "CAUSES_MOST");

static bool is_named(const Reason *of, uint32_t n, const char *cause)
{
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(of[i].cause, cause) == 0) return true;
  return false;
}

uint32_t causes_find(Evidence *e, Reason *out)
{
  uint32_t n = 0;
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
    if (!(n && causes[i].last) && !is_named(out, n, causes[i].name) && causes[i].find(e, &out[n]))
      out[n++].cause = causes[i].name;
  return n;
}
