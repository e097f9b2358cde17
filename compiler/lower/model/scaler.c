/* The loss scaler of a job: `precision f16 { scaler(...) }`, or the default scaler of f16. */
#include "model.h"
#include "common/number.h"

void lower_no_scaler(Lower *l)
{
  l->g->scaler = (ampc_scaler_desc){.init = 1, .growth = 1, .backoff = 1, .min = 1, .max = 1};
}

/* True if small gradients underflow in a type with fewer exponent bits than f32. */
bool needs_scaler(RegionKind kind)
{
  return ampc_type_of(region_low(kind))->exponent < ampc_type_of(AMPC_F32)->exponent;
}

/* Applies the defaults of scaler() in the layer library. --set can replace them. */
void default_scaler(Lower *l, RegionKind kind, Span span)
{
  lower_no_scaler(l);
  if (!needs_scaler(kind)) return;
  Args none = {.span = span};
  l->in_precision = true;
  library_call(l, "scaler", &none);
  l->in_precision = false;
}

/* Checks that `replay` lowers the scale: at the same scale the step would overflow again. */
static bool replay_helps(Lower *l, const ampc_scaler_desc *d, Span span)
{
  if (!d->replay || (d->dynamic && d->hysteresis == 1)) return true;
  const char *what =
      d->dynamic ? arena_printf(l->arena, "hysteresis=%lld", (long long)d->hysteresis) : "`static`";
  fail(l, E605, span, "on_overflow=\"replay\" and %s contradict each other", what);
  return diag_help(
      l->c,
      "a replay repeats the step at a lower scale, so the first overflow must lower the scale");
}

/* Checks bounds by the values that the kernels use. */
static bool scaler_bounds(Lower *l, const ampc_scaler_desc *d, Span span)
{
  if (d->min <= d->init && d->init <= d->max) return true;
  fail(l, E209, span, "the scaler starts at %g, outside of [%g, %g]", d->init, d->min, d->max);
  return diag_help(l->c, "`min` and `max` bound the scale, so min <= init <= max");
}

/* Runs _scaler(mode, init, ..): the arguments of scaler() in the layer library. --set replaces
 * them: "scaler.init". */
Datum native_scaler(Lower *l, Args *args)
{
  enum { MODE, INIT, GROWTH, BACKOFF, INTERVAL, MIN, MAX, STATIC, HYSTERESIS, OWN, REPLAY, COUNT };
  Datum v[COUNT];
  if (!l->in_precision) return fail(l, E210, args->span, "`scaler` is a clause of `precision`");
  for (uint32_t i = 0; i < COUNT; i++) v[i] = args->at.at[i].value;
  if (v[MODE].kind == D_word && strcmp(v[MODE].as.text, "off") == 0) {
    lower_no_scaler(l);
    return d_of(D_none);
  }
  if (v[MODE].kind != D_none)
    return fail(l, E209, args->at.at[MODE].span, "`scaler` takes `off` or named numbers, got %s",
                d_kind_text(l, v[MODE]));
  for (uint32_t i = INIT; i < COUNT; i++)
    if (!setting_argument(l, "scaler", i, "scaler", &v[i], &args->at.at[i].span))
      return d_of(D_error);
  bool fixed = v[STATIC].kind != D_none;
  ampc_scaler_desc *d = &l->g->scaler;
  *d = (ampc_scaler_desc){.init = 1, .growth = 1, .backoff = 1};
  if (fixed) {
    d->init = d->min = d->max = v[STATIC].as.number;
  } else {
    *d = (ampc_scaler_desc){.init = v[INIT].as.number,
                            .growth = v[GROWTH].as.number,
                            .backoff = v[BACKOFF].as.number,
                            .min = v[MIN].as.number,
                            .max = v[MAX].as.number,
                            .interval = v[INTERVAL].as.integer,
                            .hysteresis = v[HYSTERESIS].as.integer};
  }
  d->on = true;
  d->dynamic = !fixed;
  d->per_optimizer = v[OWN].as.truth;
  d->replay = strcmp(v[REPLAY].as.text, "replay") == 0;
  bool good = scaler_bounds(l, d, args->span) && replay_helps(l, d, args->span);
  return d_of(good ? D_none : D_error);
}
