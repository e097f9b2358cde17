/* Prints probed values as text: the worst findings in words, then tables. */
#include <string.h>
#include "probe.h"

enum { MOST_FINDINGS = 8 };

static const char *const kinds[] = {[PROBE_value] = "",
                                    [PROBE_weight] = "weight ",
                                    [PROBE_gradient] = "gradient of ",
                                    [PROBE_update] = "update of ",
                                    [PROBE_scale] = "loss scale "};

const char *seen_name(const Watch *w, const Seen *s)
{
  const char *name = arena_printf(w->c->arena, "%s%s", kinds[s->probe->kind], s->name);
  return arena_shown(w->c->arena, name, "");
}

static const char *place_text(const Watch *w, const Seen *s)
{
  if (!s->place.source) return "";
  return arena_printf(w->c->arena, " (%s:%u)", s->place.source->shown, s->place.line);
}

const char *finding_text(const Watch *w, const Finding *f)
{
  return arena_printf(w->c->arena, "%s%s, %s: %s", seen_name(w, f->seen), place_text(w, f->seen),
                      ir_dtype_name(f->seen->probe->of.dtype), f->text);
}

static bool is_asked(const Seen *s, const char *path)
{
  return !path || strncmp(s->name, path, strlen(path)) == 0;
}

static void put_findings(const Watch *w, const char *path, Table *t)
{
  uint32_t n, told = 0, more = 0;
  const Finding *at = watch_findings(w, &n);
  for (uint32_t i = 0; i < n; i++) {
    if (!is_asked(at[i].seen, path)) continue;
    if (told == MOST_FINDINGS) {
      more++;
      continue;
    }
    table_say(t, 3, "%u. %s", ++told, finding_text(w, &at[i]));
    if (*at[i].cure) table_say(t, 9, "   help: %s", at[i].cure);
  }
  if (more) table_say(t, 3, "   and %u more", more);
  if (!told) table_say(t, 0, "nothing leaves the range of its type");
  text_puts(t->out, "\n");
}

/* Returns a fraction as text: "0", "0.1 %", "<0.1 %". */
static const char *share_text(const Watch *w, int64_t n, int64_t of)
{
  double share = 100 * (double)n / (double)of;
  if (!n) return "0";
  if (share < 0.1) return "<0.1 %";
  return arena_printf(w->c->arena, "%.1f %%", share);
}

/* Adds a row. A parameter's gradient is shown divided by the loss scale, as the optimizer uses
 * it. */
static void add_row(const Watch *w, const Seen *s, double key, Table *t)
{
  const Range *r = &s->range;
  double scale = seen_scale(w, s);
  TABLE_ROW(t, key, {seen_name(w, s)}, {ir_dtype_name(s->probe->of.dtype)},
            {s->place.source ? arena_printf(t->arena, "%u", s->place.line) : "-"},
            {arena_printf(t->arena, "%.2e", r->greatest / scale)},
            {arena_printf(t->arena, "%.2e", r->least / scale)}, {share_text(w, r->zeros, r->n)},
            {share_text(w, r->nans + r->infinite, r->n)},
            {share_text(w, range_over(r, AMPC_F16), r->n)},
            {share_text(w, range_under(r, AMPC_F16, scale), r->n)});
}

/* ---- which rows ---- */

static double greatest(const Watch *w, const Seen *s)
{
  return s->range.greatest / seen_scale(w, s);
}

static double share_under(const Watch *w, const Seen *s)
{
  return (double)range_under(&s->range, AMPC_F16, seen_scale(w, s)) / (double)s->range.n;
}

static bool has_row(const Seen *s, const char *path)
{
  return s->range.n && s->probe->kind != PROBE_scale && is_asked(s, path);
}

/* Prints the rows whose key is above 0. `key` NULL: all rows, in the order of the step. */
static void put_rows(const Watch *w, const char *path, const char *title,
                     double key(const Watch *, const Seen *), Table *t)
{
  for (uint32_t i = 0; i < w->n; i++) {
    const Seen *s = &w->at[i];
    double at = key ? key(w, s) : 0;
    if (has_row(s, path) && (!key || at > 0)) add_row(w, s, at, t);
  }
  if (!t->rows.n) return;
  table_say(t, 0, "%s", title);
  table_put(t);
  text_puts(t->out, "\n");
}

void watch_print(const Watch *w, const char *path, uint32_t most)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->n; i++) n += has_row(&w->at[i], path);
  TableView view = {w->c->options.view.wide, n > most ? most : 0};
  Table t;
  table_open(&t, w->c->arena, NULL, &view,
             "value:<24|type|line:number!1|greatest:number|least:number!3|zero:number!2|lost:"
             "number|>f16:number|<f16:number");
  put_findings(w, path, &t);
  if (view.top) {
    put_rows(w, path, "the largest values", greatest, &t);
    put_rows(w, path, "the largest fractions that would be 0 in f16", share_under, &t);
    table_say(&t, 0, "%u values in total; --wide shows all", n);
  } else {
    put_rows(w, path, "all values, in the order of the step", NULL, &t);
  }
  table_say(&t, 0,
            "all numbers are absolute values; least: the smallest above 0; lost: infinite or NaN; "
            ">f16: would be infinite in f16; <f16: would be 0 in f16. Values of backward (gradient "
            "in ..) are multiplied by the loss scale, %g; gradients of parameters are not",
            w->scale);
  table_close(&t);
}
