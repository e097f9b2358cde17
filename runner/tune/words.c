/* What the chosen assignment is, in the language of jobs, and why. */
#include <math.h>
#include <string.h>
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
  return arena_printf(t->arena, "%s of the elements of a value in %s are 0 in f16",
                      percent(t, u->under), *u->path ? u->path : "the train block");
}

/* Returns the module with the ranges of all modules in it: a pin holds for them, too. */
static Unit with_inner(const Tune *t, uint32_t unit)
{
  Unit sum = t->units.at[unit];
  size_t n = strlen(sum.path);
  for (uint32_t i = unit + 1; i < t->units.n; i++) {
    const Unit *u = &t->units.at[i];
    if (strncmp(u->path, sum.path, n) != 0 || (n && u->path[n] != '.')) continue;
    sum.lost = sum.lost || u->lost;
    sum.greatest = fmax(sum.greatest, u->greatest);
    sum.under = fmax(sum.under, u->under);
    if (u->steps_over > sum.steps_over) sum.steps_over = u->steps_over;
  }
  return sum;
}

/* Returns the 16-bit kind of an assignment; 0: it has none. */
static uint8_t low_kind(const Tune *t, const Trial *trial)
{
  for (uint32_t i = 0; i < t->units.n; i++)
    if (t->units.at[i].own && ampc_is_narrow(region_low(t->kinds[trial->kinds[i]])))
      return trial->kinds[i];
  return 0;
}

/* Returns how much the job deviates if only this module is in 16 bits; 0: not measured. */
static double alone(const Tune *t, const Trial *chosen, uint32_t unit)
{
  uint8_t kind = low_kind(t, chosen);
  for (uint32_t i = 0; i < t->trials.n; i++) {
    const Trial *trial = t->trials.at[i];
    if (kind && trial->kinds[unit] == kind && trial_lowered(t, trial) == 1)
      return fmax(trial->from_f32.gradient, trial->from_f32.loss);
  }
  return 0;
}

/* Returns why a module is pinned. */
static const char *reason(const Tune *t, const Trial *chosen, const ModulePin *pin)
{
  Unit all = with_inner(t, pin->unit), *u = &all;
  double deviation = alone(t, chosen, pin->unit);
  bool f16 = t->kinds[low_kind(t, chosen)] == REGION_f16;
  if (ampc_is_narrow(region_low(t->kinds[pin->kind])))
    return arena_printf(t->arena, "%s keeps the bound here",
                        region_kind_names[t->kinds[pin->kind]]);
  if (f16 && u->steps_over)
    return arena_printf(t->arena, "f16 overflows in %u of %u steps, largest value %.6g",
                        u->steps_over, t->steps, u->greatest);
  const Unit *under = u->lost ? most_under(t, u) : u;
  if (f16 && under->under > MUCH) return under_text(t, under);
  if (u->lost) return "in 16 bits, the loss or a gradient is not finite";
  if (deviation > 0)
    return arena_printf(t->arena, "alone it deviates by %.2g in 16 bits", deviation);
  return "deviates in 16 bits";
}

const char *tune_result(const Tune *t, const Trial *trial)
{
  Cover cover = cover_find(t->arena, &t->units, t->n_kinds, trial->kinds);
  const char **why = arena_array(t->arena, const char *, cover.pins.n + 1);
  why[0] = arena_printf(t->arena, "gradients deviate by %.2g from f32, bound %.2g",
                        trial->from_f32.gradient, t->bound);
  for (uint32_t i = 0; i < cover.pins.n; i++) why[1 + i] = reason(t, trial, &cover.pins.at[i]);
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
                                    "type", region_kind_names[t->kinds[pin->kind]], "reason",
                                    reason(t, trial, pin), "us", cost_of(t, trial, &cover, i)));
  }
  return out;
}
