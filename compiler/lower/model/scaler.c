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

/* The numbers of a scaler, in the order of the arguments of scaler() in the layer library, after
 * `mode`. A scale and its inverse are both numbers of f32. */
enum {
  SCALER_init,
  SCALER_growth,
  SCALER_backoff,
  SCALER_interval,
  SCALER_min,
  SCALER_max,
  SCALER_static,
  SCALER_hysteresis,
  SCALER_COUNT
};
static const struct {
  const char *name;
  ampc_domain domain; /* range of a real number */
  int64_t most;       /* largest value of a count, which is at least 1; 0: not a count */
} scaler_numbers[SCALER_COUNT] = {
    [SCALER_init] = {"init", AMPC_SCALE, 0},
    [SCALER_growth] = {"growth", AMPC_ABOVE_ONE, 0},
    [SCALER_backoff] = {"backoff", AMPC_SHRINKING, 0},
    [SCALER_interval] = {.name = "interval", .most = AMPC_MOST_STEPS},
    [SCALER_min] = {"min", AMPC_SCALE, 0},
    [SCALER_max] = {"max", AMPC_SCALE, 0},
    [SCALER_static] = {"static", AMPC_SCALE, 0},
    [SCALER_hysteresis] = {.name = "hysteresis", .most = AMPC_MOST_STEPS},
};

/* Reads number i, or its value in --set: "scaler.init". `none` leaves the output unchanged. */
static bool scaler_number(Lower *l, int i, Datum given, Span span, double *real, int64_t *count)
{
  const char *name = scaler_numbers[i].name;
  if (!setting_value(l, arena_printf(l->arena, "scaler.%s", name), &given, &span)) return false;
  const char *what = arena_printf(l->arena, "`%s` of the scaler", name);
  if (scaler_numbers[i].most)
    return want_count(l, given, span, what, (Counts){1, scaler_numbers[i].most}, count);
  return given.kind == D_none || want_in(l, given, span, what, scaler_numbers[i].domain, real);
}

static bool scaler_truth(Lower *l, const char *name, Datum given, Span span, bool *out)
{
  return setting_value(l, arena_printf(l->arena, "scaler.%s", name), &given, &span) &&
         want_bool(l, given, span, arena_printf(l->arena, "`%s` of the scaler", name), out);
}

/* Reads "skip" or "replay". */
static bool scaler_replay(Lower *l, Datum given, Span span, bool *out)
{
  const char *text;
  if (!setting_value(l, "scaler.on_overflow", &given, &span) ||
      !want_str(l, given, span, "`on_overflow` of the scaler", &text))
    return false;
  *out = strcmp(text, "replay") == 0;
  if (*out || strcmp(text, "skip") == 0) return true;
  return refuse(l, E209, span,
                "`on_overflow` of the scaler is \"%s\"; it must be \"skip\" or \"replay\"", text);
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

/* Runs scaler(mode, init, growth, backoff, interval, min, max, static, hysteresis, per_optimizer,
 * on_overflow) of the layer library. */
Datum native_scaler(Lower *l, Args *args)
{
  ampc_scaler_desc *d = &l->g->scaler;
  double v[SCALER_COUNT] = {0};
  int64_t count[SCALER_COUNT] = {0};
  bool own, replay;
  const ArgValue *at = args->at.at;
  if (!l->in_precision) return fail(l, E210, args->span, "`scaler` is a clause of `precision`");
  if (at[0].value.kind == D_word && strcmp(at[0].value.as.text, "off") == 0) {
    lower_no_scaler(l);
    return d_of(D_none);
  }
  if (at[0].value.kind != D_none)
    return fail(l, E209, args->span, "`scaler` takes `off` or named numbers, got %s",
                d_kind_text(l, at[0].value));
  if (!scaler_truth(l, "per_optimizer", at[SCALER_COUNT + 1].value, args->span, &own) ||
      !scaler_replay(l, at[SCALER_COUNT + 2].value, args->span, &replay))
    return d_of(D_error);
  for (int i = 0; i < SCALER_COUNT; i++)
    if (!scaler_number(l, i, at[i + 1].value, args->span, &v[i], &count[i])) return d_of(D_error);
  *d = (ampc_scaler_desc){.on = true,
                          .dynamic = true,
                          .per_optimizer = own,
                          .replay = replay,
                          .init = v[SCALER_init],
                          .growth = v[SCALER_growth],
                          .backoff = v[SCALER_backoff],
                          .min = v[SCALER_min],
                          .max = v[SCALER_max],
                          .interval = count[SCALER_interval],
                          .hysteresis = count[SCALER_hysteresis]};
  double scale = v[SCALER_static];
  if (scale > 0)
    *d = (ampc_scaler_desc){.on = true,
                            .per_optimizer = own,
                            .replay = replay,
                            .init = scale,
                            .growth = 1,
                            .backoff = 1,
                            .min = scale,
                            .max = scale};
  bool good = scaler_bounds(l, d, args->span) && replay_helps(l, d, args->span);
  return d_of(good ? D_none : D_error);
}
