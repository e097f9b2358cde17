/* What the chosen assignment is, in the language of jobs, and why. */
#include <math.h>
#include "tune.h"

static const double MUCH = 0.1; /* a fraction of a value that counts as a reason */

static const char *percent(const Tune *t, double fraction)
{
  return arena_printf(t->arena, fraction < 0.1 ? "%.1f %%" : "%.0f %%", 100 * fraction);
}

/* Returns the module of which f16 loses the largest part: the module itself, or one beside or
 * around it, whose values are f32 if this one is. */
static const Unit *most_under(const Tune *t, const Unit *u)
{
  const Unit *found = u;
  for (uint32_t i = 0; i < t->units.n; i++) {
    const Unit *other = &t->units.at[i];
    bool near = other->parent == u->parent || other == &t->units.at[u->parent];
    if (near && other->under > found->under) found = other;
  }
  return found;
}

static const char *under_text(const Tune *t, const Unit *u)
{
  const char *of = *u->path ? u->path : "the train block";
  return arena_printf(t->arena, "%s of a value of %s are 0 in f16, the least is %.2g",
                      percent(t, u->under), of, u->least);
}

/* Returns why a module is pinned. */
static const char *reason(const Tune *t, const ModulePin *pin)
{
  const Unit *u = &t->units.at[pin->unit];
  double worst = 0;
  for (uint32_t i = 0; i < t->trials.n; i++) { /* the trial that lowers only this module, if any */
    const Trial *trial = t->trials.at[i];
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->units.n; k++) n += t->units.at[k].own && trial->kinds[k];
    if (n == 1 && trial->kinds[pin->unit]) worst = trial->from_f32.gradient;
  }
  if (ampc_is_narrow(region_low(t->kinds[pin->kind])))
    return arena_printf(t->arena, "%s within it", region_kind_names[t->kinds[pin->kind]]);
  if (u->steps_over)
    return arena_printf(t->arena, "f16 overflows in %u of %u steps, largest value %.6g",
                        u->steps_over, t->steps, u->greatest);
  const Unit *under = u->lost ? most_under(t, u) : u;
  if (under->under > MUCH) return under_text(t, under);
  if (u->lost) return "in 16 bits, the loss or a gradient is not finite";
  if (worst > 0) return arena_printf(t->arena, "alone it deviates by %.2g in 16 bits", worst);
  return "deviates in 16 bits";
}

const char *tune_result(const Tune *t, const Trial *trial)
{
  Cover cover = cover_find(t->arena, &t->units, t->n_kinds, trial->kinds);
  const char **why = arena_array(t->arena, const char *, cover.pins.n + 1);
  why[0] = arena_printf(t->arena, "gradients deviate by %.2g from f32, bound %.2g",
                        trial->from_f32.gradient, t->bound);
  for (uint32_t i = 0; i < cover.pins.n; i++) why[1 + i] = reason(t, &cover.pins.at[i]);
  return tune_declaration(t, &cover, trial->scale, why);
}

/* Returns the time that the step would save without the pin. */
static double cost_of(const Tune *t, const Trial *trial, const Cover *cover, uint32_t pin)
{
  Cover without = {.base = cover->base};
  for (uint32_t i = 0; i < cover->pins.n; i++)
    if (i != pin) vec_push(t->arena, &without.pins, cover->pins.at[i]);
  return trial->us - tune_predict(t, tune_declaration(t, &without, trial->scale, NULL));
}

json_t *tune_pins_json(const Tune *t, const Trial *trial)
{
  json_t *out = json_array();
  Cover cover = cover_find(t->arena, &t->units, t->n_kinds, trial->kinds);
  for (uint32_t i = 0; i < cover.pins.n; i++) {
    const ModulePin *pin = &cover.pins.at[i];
    json_array_append_new(out,
                          json_pack("{s:s, s:s, s:s, s:f}", "path", t->units.at[pin->unit].path,
                                    "type", region_kind_names[t->kinds[pin->kind]], "why",
                                    reason(t, pin), "us", cost_of(t, trial, &cover, i)));
  }
  return out;
}
