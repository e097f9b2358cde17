/* Pins: `autocast(f32, "norm")` in `model` or `precision`. The modules that the patterns name
 * compute in a precision of their own. `.autocast(f32)` does the same where a module is built
 * (module.c). */
#include "model.h"

typedef struct Pin {
  RegionKind kind;
  Span span;
} Pin;

static void apply_pin(Lower *l, Instance *m, void *data)
{
  const Pin *pin = data;
  (void)l;
  m->pinned = true;
  m->pin = pin->kind;
  m->pin_span = pin->span;
}

bool pin_kind(Lower *l, Scope *s, const Stmt *st, RegionKind *out)
{
  const ArgList *list = &st->as.region.args;
  if (list->n >= 2 && !st->as.region.has_block) return region_kind_of(l, s, list->at[0].value, out);
  fail(l, E205, st->span, "as a clause, `autocast` takes a type and then patterns");
  return diag_help(l->c, "`autocast(f32, \"norm\")`");
}

/* Pins the modules below the roots of `m` that the clause names. */
static void pin_modules(Lower *l, Scope *s, Match m, const Stmt *st, RegionKind kind)
{
  const ArgList *list = &st->as.region.args;
  Pin pin = {kind, st->span};
  Args args = {.span = st->span};
  ArgList patterns = {list->at + 1, list->n - 1};
  if (!eval_args(l, s, &patterns, &args)) return;
  m.modules = true;
  m.module = apply_pin;
  m.data = &pin;
  match_patterns(l, &m, args.at.at, args.at.n);
}

void clause_pins(Lower *l, Scope *s, const Model *model, const Stmt *st)
{
  RegionKind kind;
  if (pin_kind(l, s, st, &kind)) pin_modules(l, s, match_of(l, model), st, kind);
}

void job_pins(Lower *l)
{
  Scope *s = scope_new(l, NULL, l->job, NULL);
  Match m = {0};
  for (uint32_t i = 0; i < l->models.n; i++) {
    const Model *model = &l->models.at[i];
    Datum root = {.kind = D_instance, .as.instance = model->root};
    vec_push(l->arena, &m.roots, (Root){root, model->name});
    m.broken = m.broken || model->broken;
  }
  for (uint32_t i = 0; i < l->pins.n; i++)
    pin_modules(l, s, m, l->pins.at[i].clause, l->pins.at[i].kind);
}
