/* Says why a run was lost: the first value that is not finite, what it is computed from, and the
 * most likely cause. A twin with probes on all values repeats the steps. The run stays as it is. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "causes.h"
#include "compiler/base/table.h"
#include "compiler/driver.h"
#include "common/terminal.h"

/* ---- output ---- */

/* Prints a line. If it is too long, the next lines begin with `indent` blanks. */
__attribute__((format(printf, 3, 4))) static void say(const Evidence *e, int indent,
                                                      const char *fmt, ...)
{
  Arena *arena = e->a->c->arena;
  Text lines = text_new(arena);
  va_list args;
  va_start(args, fmt);
  text_wrap(&lines, arena_vprintf(arena, fmt, args), indent, line_columns());
  va_end(args);
  fprintf(stderr, "%s\n", lines.at);
}

static void tell_line(const Again *a, const Seen *s)
{
  uint32_t size;
  if (!s->place.source) return;
  const char *text = diag_line_text(a->c, &s->place, &size);
  while (size && (*text == ' ' || *text == '\t')) text++, size--;
  const char *kept = arena_shown(a->c->arena, arena_strndup(a->c->arena, text, size), "");
  fprintf(stderr, "  %5u | %s\n", s->place.line, kept);
}

/* Adds a weight's last update: "; step 3 changed it by up to 1e+03 (AdamW, lr 1e+03)". */
static void add_update(Text *out, const Evidence *e, const Seen *weight)
{
  const ampc_program *p = e->a->c->program;
  const History *h = &e->h;
  double change = h->whole && h->changed ? h->change[weight - e->lost.at] : 0;
  const Seen *update = watch_param(&e->lost, PROBE_update, weight->probe->param);
  if (!(change > 0) || !update) return;
  uint32_t optimizer = update->probe->optimizer;
  const Past *past = &h->at.at[h->changed - h->first];
  double lr = past->optimizer == optimizer ? past->lr : (double)e->a->optimizers[optimizer].lr;
  text_printf(out, "; step %lld changed it by up to %.3g (%s, lr %.3g)", (long long)h->changed,
              change, p->optimizers[optimizer].kind, lr);
}

/* Prints "    net relu `h`, f16, from 0.0025 up to 1.77" for each input. */
static void tell_inputs(const Evidence *e, const Seen *s)
{
  bool any = false;
  for (uint32_t i = 0; i < s->probe->of.n_in; i++) {
    const Seen *in = watch_input(&e->lost, s, i);
    if (!in || !in->range.n) continue;
    if (!any) say(e, 2, "  it is computed from (absolute values)");
    any = true;
    Text line = text_new(e->a->c->arena);
    text_printf(&line, "%s, %s, from %.3g up to %.3g", seen_name(&e->lost, in),
                ir_dtype_name(in->probe->of.dtype), in->range.least, in->range.greatest);
    if (in->range.zeros)
      text_printf(&line, "; %lld of %lld are 0", (long long)in->range.zeros,
                  (long long)in->range.n);
    if (in->probe->kind == PROBE_weight) add_update(&line, e, in);
    say(e, 6, "    %s", line.at);
  }
}

static void tell_value(const Evidence *e)
{
  const Seen *s = e->first;
  const Range *r = &s->range;
  const char *place = "";
  if (s->place.source)
    place = arena_printf(e->a->c->arena, ", %s:%u", s->place.source->shown, s->place.line);
  say(e, 2, "diagnosis: in step %lld the first value that is not finite is %s%s",
      (long long)e->a->lost->step, seen_name(&e->lost, s), place);
  tell_line(e->a, s);
  say(e, 4,
      "  of %lld numbers (%s), %lld are infinite and %lld are NaN; the largest finite one is %.3g",
      (long long)r->n, ir_dtype_name(s->probe->of.dtype), (long long)r->infinite,
      (long long)r->nans, r->greatest);
  tell_inputs(e, s);
}

enum { MOST_TOLD = 2 }; /* causes */

static void tell_causes(Evidence *e)
{
  Reason found[CAUSES_MOST];
  uint32_t n = causes_find(e, found);
  for (uint32_t i = 0; i < n && i < MOST_TOLD; i++) {
    say(e, 4, "  %s: %s", i ? "or" : "most likely cause", found[i].cause);
    say(e, 4, "    %s", found[i].shown);
    say(e, 4, "    help: %s", found[i].help);
  }
  if (e->blame && !e->h.whole)
    say(e, 4,
        "    The steps before this one could not be repeated in time, or not with the same "
        "weights. So the step in which the weights grew is not known. To see it, resume from a "
        "checkpoint near this step (--save-every).");
}

/* ---- evidence ---- */

static Watch snapshot(const Watch *w)
{
  Watch copy = *w;
  copy.at = arena_array(w->c->arena, Seen, w->n + 1);
  memcpy(copy.at, w->at, w->n * sizeof *w->at);
  return copy;
}

/* Returns the copy in `to` of a value of `from`. */
static const Seen *same(const Watch *to, const Watch *from, const Seen *s)
{
  return s ? &to->at[s - from->at] : NULL;
}

static ampc_status see_lost(Evidence *e)
{
  Again *a = e->a;
  const Seen *first;
  e->scale = (double)a->state.scale;
  ampc_status status = again_lost(a, false, &first);
  e->lost = e->plain = snapshot(&a->watch);
  e->first = same(&e->lost, &a->watch, first);
  e->bad = e->first;
  if (status || !first || !seen_is_backward(first) || e->scale == 1) return status;
  status = again_lost(a, true, &first);
  e->plain = snapshot(&a->watch);
  e->bad = same(&e->plain, &a->watch, first);
  return status;
}

/* If the step has several optimizers, one may have updated its weights before the loss of the next
 * was lost. So the run no longer has the weights with which the step began. The twin has them when
 * it has repeated all steps before: it repeats the lost step from there. */
static ampc_status see_within(Evidence *e)
{
  Again *a = e->a;
  bool same_weights = false;
  if (e->h.whole || !e->h.at.n || a->c->program->n_optimizers < 2) return AMPC_OK;
  ampc_status status = again_step(a, a->lost->step);
  if (!status) status = again_same(a, &same_weights);
  const Seen *first = watch_first_lost(&a->watch, false);
  if (!first) first = watch_first_lost(&a->watch, true);
  if (status || !same_weights || !first) return status;
  e->h.whole = true;
  e->lost = e->plain = snapshot(&a->watch);
  e->first = e->bad = same(&e->lost, &a->watch, first);
  return AMPC_OK;
}

/* Whether the value has infinite elements, in a type with a smaller range than f32. */
static bool leaves_range(const Seen *s)
{
  return s && s->probe->kind == PROBE_value && s->range.infinite > 0 &&
         ampc_type_of(s->probe->of.dtype)->exponent < ampc_type_of(AMPC_F32)->exponent;
}

/* Repeats the lost step in f32, to see whether only the range of f16 is too small. */
static ampc_status see_f32(Evidence *e, Compile *c, const char *device)
{
  Again b;
  const Seen *first;
  ampc_status status = again_open(&b, c, device, e->a->data_dir, e->a->from, e->a->lost, false);
  if (!status) status = again_lost(&b, true, &first);
  e->f32_finite = !status && !first;
  again_close(&b);
  return status;
}

static ampc_status tell(Evidence *e, CompileProbed *compile, void *context, const char *device)
{
  ampc_status status = see_lost(e);
  if (status) return status;
  if (!e->first) {
    fprintf(stderr, "diagnosis: all numbers of the repeated step %lld are finite\n",
            (long long)e->a->lost->step);
    return AMPC_OK;
  }
  history_inputs(&e->h, &e->lost);
  status = history_repeat(&e->h, e->a);
  if (!status) status = see_within(e);
  if (status) e->h.whole = false; /* for example, the run began in another block */
  evidence_weigh(e);
  tell_value(e);
  if (leaves_range(e->bad) && !e->blame) {
    Compile *c = compile(context, "f32");
    if (c) see_f32(e, c, device);
  }
  tell_causes(e);
  return AMPC_OK;
}

void diagnose(CompileProbed *compile, void *context, const char *device, const char *data_dir,
              ampc_runtime *rt, const Lost *lost)
{
  Again a;
  Evidence e = {.a = &a};
  Compile *c = compile(context, NULL);
  ampc_status status = again_open(&a, c, device, data_dir, rt, lost, true);
  if (!status) status = tell(&e, compile, context, device);
  if (status) fprintf(stderr, "no diagnosis: %s\n", ampc_last_error());
  again_close(&a);
}
