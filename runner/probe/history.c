#include "history.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "runtime/base/interrupt.h"
#include "common/clock.h"
#include "runtime/runtime.h"

const Seen *watch_param(const Watch *w, ProbeKind kind, uint32_t param)
{
  for (uint32_t i = 0; i < w->n; i++)
    if (w->at[i].probe->kind == kind && w->at[i].probe->param == param && w->at[i].range.n)
      return &w->at[i];
  return NULL;
}

/* ---- the inputs of the net ---- */

enum { FROM_DATA = 1, FROM_WEIGHT = 2 };

/* Returns the value that `s` holds in another type; s itself if it is no cast. */
static const Seen *before_casts(const Watch *w, const Seen *s)
{
  const Seen *in = s;
  while (op_has(&s->probe->of, T_casts) && (in = watch_input(w, s, 0))) s = in;
  return s;
}

void history_inputs(History *h, const Watch *w)
{
  uint8_t *from = arena_array(w->c->arena, uint8_t, w->n + 1);
  h->inputs = arena_array(w->c->arena, uint8_t, w->n + 1);
  for (uint32_t i = 0; i < w->n; i++) {
    const Seen *s = &w->at[i];
    const Node *n = &s->probe->of;
    bool value = s->probe->kind == PROBE_value;
    /* a cast of integers has no probed input */
    bool data = value && (n->op == OP_source || (op_has(n, T_casts) && !watch_input(w, s, 0)));
    from[i] = (uint8_t)(data ? FROM_DATA : s->probe->kind == PROBE_weight ? FROM_WEIGHT : 0);
    for (uint32_t k = 0; k < n->n_in && value; k++)
      if (watch_input(w, s, k)) from[i] |= from[watch_input(w, s, k) - w->at];
    for (uint32_t k = 0; k < n->n_in && (from[i] & FROM_WEIGHT) && value; k++) {
      const Seen *in = watch_input(w, s, k);
      if (in && from[in - w->at] == FROM_DATA) h->inputs[before_casts(w, in) - w->at] = 1;
    }
  }
}

Input history_input(const History *h, const Watch *w)
{
  Input most = {0};
  for (uint32_t i = 0; i < w->n; i++)
    if (h->inputs[i] && w->at[i].range.greatest > most.greatest)
      most = (Input){.seen = i, .greatest = w->at[i].range.greatest};
  if (!(most.greatest > 0)) return most;
  const Range *r = &w->at[most.seen].range;
  int64_t near = 0;
  int top = ilogb(most.greatest) + 127;
  for (int e = top > 6 ? top - 6 : 1; e <= top; e++) near += r->exponent[e];
  most.rms = range_rms(r);
  most.few = near * 4 <= r->n;
  return most;
}

/* ---- one step ---- */

/* Reads the learning rate of an optimizer, or of that of its groups which has the largest: STATE
 * has only the former after schedules. */
static ampc_status read_rate(const Again *a, uint32_t optimizer, double *out)
{
  const ampc_program *p = a->c->program;
  char group[128];
  int size = snprintf(group, sizeof group, "%s.group", p->optimizers[optimizer].name);
  ampc_optimizer o;
  ampc_ref at = {AMPC_STATE, ampc_state_optimizer(optimizer)};
  ampc_status status = ampc_read(a->rt, at, &o, sizeof o);
  *out = fabs((double)o.lr);
  for (uint32_t i = 0; i < p->n_settings; i++) {
    const char *name = p->settings[i].name, *dot = strrchr(name, '.');
    if (strncmp(name, group, (size_t)size) == 0 && strcmp(dot, ".lr") == 0)
      *out = fmax(*out, p->settings[i].value);
  }
  return status;
}

static double square_norm(const Range *r)
{
  double rms = range_is_finite(r) ? range_rms(r) : INFINITY;
  return rms * rms * (double)r->n;
}

static ampc_status history_measure(const History *h, const Again *a, Past *out)
{
  const Watch *w = &a->watch;
  *out = (Past){0};
  for (uint32_t i = 0; i < w->n; i++) {
    const Seen *s = &w->at[i];
    if (s->probe->kind == PROBE_update) {
      const Seen *weight = watch_param(w, PROBE_weight, s->probe->param);
      out->update += square_norm(&s->range);
      if (weight) out->weights += square_norm(&weight->range);
      if (s->range.greatest > out->greatest) out->optimizer = s->probe->optimizer;
      out->greatest = fmax(out->greatest, s->range.greatest);
    }
  }
  out->input = history_input(h, w);
  out->weights = sqrt(out->weights);
  out->update = sqrt(out->update);
  ampc_optimizer o;
  ampc_ref at = {AMPC_STATE, ampc_state_optimizer(out->optimizer)};
  ampc_status status = ampc_read(a->rt, at, &o, sizeof o);
  out->gradient = (double)o.grad_norm;
  return status ? status : read_rate(a, out->optimizer, &out->lr);
}

static void note_changes(History *h, const Watch *w, int64_t step)
{
  h->changed = step;
  for (uint32_t i = 0; i < w->n; i++) {
    const Seen *s = &w->at[i], *update;
    if (s->probe->kind != PROBE_weight) continue;
    update = watch_param(w, PROBE_update, s->probe->param);
    if (update) h->change[i] = range_is_finite(&update->range) ? update->range.greatest : INFINITY;
  }
}

/* ---- the run ---- */

static bool has_time(double end)
{
  return seconds_now() < end && !interrupt_requested();
}

static ampc_status repeat_from(History *h, Again *a, const char *start)
{
  Watch *w = &a->watch;
  double end = seconds_now() + HISTORY_SECONDS;
  h->at.n = 0;
  h->begin = NULL;
  a->start = start;
  ampc_status status = again_begin(a);
  int64_t step = h->first = a->first;
  for (; step < a->lost->step && !status && has_time(end); step++) {
    Past past;
    status = again_step(a, step);
    if (!status) status = history_measure(h, a, &past);
    if (status) break;
    vec_push(a->c->arena, &h->at, past);
    if (past.update > 0) note_changes(h, w, step);
    if (h->begin) continue;
    h->begin = arena_array(a->c->arena, Seen, w->n + 1);
    memcpy(h->begin, w->at, w->n * sizeof *w->at);
  }
  if (!status) status = again_same(a, &h->whole);
  h->whole = h->whole && step == a->lost->step;
  return status;
}

/* The beginning shows most, but may be too far away. */
ampc_status history_repeat(History *h, Again *a)
{
  h->change = arena_array(a->c->arena, double, a->watch.n + 1);
  ampc_status status = repeat_from(h, a, a->lost->begun);
  if (!status && !h->whole && a->lost->saved) status = repeat_from(h, a, a->lost->saved);
  return status;
}

/* ---- another learning rate ---- */

/* Whether the name of a setting is that of a learning rate, such as "opt.lr" or "opt.lr.peak". */
static bool is_rate(const char *name, const char *optimizer)
{
  static const char *const ends[] = {".lr", ".lr.peak", ".lr.start", ".lr.end", ".lr.floor"};
  size_t size = strlen(name), own = strlen(optimizer);
  if (strncmp(name, optimizer, own) != 0 || name[own] != '.') return false;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (size > strlen(ends[i]) && strcmp(name + size - strlen(ends[i]), ends[i]) == 0) return true;
  return false;
}

double history_setting(const Again *a, const char *name)
{
  const ampc_program *p = a->from->program;
  float value = 0;
  for (uint32_t i = 0; i < p->n_settings; i++)
    if (strcmp(p->settings[i].name, name) == 0 &&
        ampc_read(a->from, runtime_setting_place(p, i), &value, sizeof value))
      return 0;
  return (double)value;
}

/* Gives the twin the learning rates of the lost run times `factor`. */
static ampc_status scale_rates(Again *a, const char *optimizer, double factor, uint32_t *rates)
{
  const ampc_program *p = a->c->program;
  ampc_status status = AMPC_OK;
  *rates = 0;
  for (uint32_t i = 0; i < p->n_settings && !status; i++) {
    if (!is_rate(p->settings[i].name, optimizer)) continue;
    ++*rates;
    float value = (float)(factor * history_setting(a, p->settings[i].name));
    status = ampc_write(a->rt, runtime_setting_place(p, i), &value, sizeof value);
  }
  return status;
}

/* Losses are averaged, because those of small batches differ. */
ampc_status history_try(Again *a, const char *optimizer, double factor, double end, Trial *out)
{
  enum { BEYOND = 10 };
  *out = (Trial){.factor = factor, .good = true};
  ampc_status status = again_begin(a);
  if (!status) status = scale_rates(a, optimizer, factor, &out->rates);
  int64_t n = a->lost->step + BEYOND - a->first + 1, i = 0;
  if (!out->rates) return status;
  for (; i < n && out->good && !status && has_time(end); i++) {
    status = again_step(a, a->first + i);
    /* a scaler may still be lowering its scale, so backward may overflow */
    out->good = !watch_first_lost(&a->watch, false);
    if (i < n / 2) out->before += again_loss(a) / (double)(n / 2);
    if (i >= n / 2) out->after += again_loss(a) / (double)(n - n / 2);
  }
  if (i == n || !out->good) out->steps = i;
  return status;
}
