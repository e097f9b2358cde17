/* The fewest pins that give an assignment.
 *
 * A module without a pin has the type of the module around it. So the least number of pins below a
 * module depends only on its own type. Children come after their parents, so one loop from the end
 * computes it for all modules and types. */
#include <string.h>
#include "tune.h"

enum { NEVER = 1 << 28 };

typedef struct Search {
  const Units *u;
  uint32_t n_kinds;
  Kinds kinds;
  uint32_t *has; /* [unit][type]: pins below the unit, if it has the type */
} Search;

static uint32_t *pins_below(const Search *s, uint32_t unit, uint32_t kind)
{
  return &s->has[unit * s->n_kinds + kind];
}

/* Returns the type of the unit if it inherits `kind`: without a pin, if that is as good. */
static uint32_t best(const Search *s, uint32_t unit, uint32_t kind)
{
  uint32_t found = kind;
  for (uint32_t k = 0; k < s->n_kinds; k++)
    if (*pins_below(s, unit, k) + (k != kind) < *pins_below(s, unit, found) + (found != kind))
      found = k;
  return found;
}

static void count_pins(Search *s)
{
  for (uint32_t i = s->u->n; i-- > 0;) {
    const Unit *unit = &s->u->at[i];
    for (uint32_t k = 0; k < s->n_kinds; k++)
      if (unit->own && s->kinds[i] != k) *pins_below(s, i, k) = NEVER;
    for (uint32_t k = 0; k < s->n_kinds && i; k++) {
      uint32_t to = best(s, i, k);
      *pins_below(s, unit->parent, k) += *pins_below(s, i, to) + (to != k);
    }
  }
}

Cover cover_find(Arena *arena, const Units *u, uint32_t n_kinds, Kinds kinds)
{
  Search s = {u, n_kinds, kinds, arena_array(arena, uint32_t, u->n * n_kinds)};
  uint8_t *is = arena_array(arena, uint8_t, u->n);
  Cover out = {0};
  count_pins(&s);
  for (uint8_t k = 1; k < n_kinds; k++) /* the job itself has no pin */
    if (*pins_below(&s, 0, k) < *pins_below(&s, 0, out.base)) out.base = k;
  is[0] = out.base;
  for (uint32_t i = 1; i < u->n; i++) {
    uint8_t inherited = is[u->at[i].parent];
    is[i] = (uint8_t)best(&s, i, inherited);
    if (is[i] != inherited) vec_push(arena, &out.pins, ((ModulePin){i, is[i]}));
  }
  return out;
}

/* ---- the declaration ---- */

static bool has_kind(const Tune *t, const Cover *cover, RegionKind kind)
{
  bool found = t->kinds[cover->base] == kind;
  for (uint32_t i = 0; i < cover->pins.n; i++)
    found = found || t->kinds[cover->pins.at[i].kind] == kind;
  return found;
}

static void add_comment(Text *out, const char *why)
{
  if (why && *why) text_printf(out, "   # " TUNE_MARK " %s", why);
  text_puts(out, "\n");
}

static void add_scaler(const Tune *t, Text *out, double scale, bool comment)
{
  if (t->scaler) {
    text_printf(out, "  %s\n", t->scaler);
  } else if (scale >= 1 && scale < 65536) {
    text_printf(out, "  scaler(init=%.1f)", scale);
    add_comment(out, comment ? "the scale after the steps" : NULL);
  }
}

const char *tune_declaration(const Tune *t, const Cover *cover, double scale,
                             const char *const *why)
{
  Text lines = text_new(t->arena), out = text_new(t->arena);
  text_puts(&lines, t->clauses);
  if (has_kind(t, cover, REGION_f16) || strstr(t->clauses, "autocast(f16"))
    add_scaler(t, &lines, scale, why != NULL);
  for (uint32_t i = 0; i < cover->pins.n; i++) {
    const ModulePin *pin = &cover->pins.at[i];
    text_printf(&lines, "  autocast(%s, \"%s\")", region_kind_names[t->kinds[pin->kind]],
                t->units.at[pin->unit].path);
    add_comment(&lines, why ? why[1 + i] : NULL);
  }
  bool braces = lines.at && *lines.at;
  text_printf(&out, "precision %s%s", region_kind_names[t->kinds[cover->base]], braces ? " {" : "");
  add_comment(&out, why ? *why : NULL);
  if (braces) text_printf(&out, "%s}\n", lines.at);
  return out.at;
}
