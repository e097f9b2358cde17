/* Probes as text: the worst in words, then a table in the order of the step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "probe.h"

enum { MOST_FINDINGS = 8, NAME_WIDTH = 44 };

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

static void print_findings(const Watch *w, const char *path)
{
  uint32_t n, told = 0, more = 0;
  const Finding *at = watch_findings(w, &n);
  for (uint32_t i = 0; i < n; i++) {
    if (!is_asked(at[i].seen, path)) continue;
    if (told == MOST_FINDINGS) {
      more++;
      continue;
    }
    printf("%u. %s\n", ++told, finding_text(w, &at[i]));
    if (*at[i].cure) printf("   help: %s\n", at[i].cure);
  }
  if (more) printf("   and %u more\n", more);
  if (!told) puts("nothing leaves the range of its type");
  putchar('\n');
}

/* "0", "0.1 %", "<0.1 %" */
static const char *share_text(const Watch *w, int64_t n, int64_t of)
{
  double share = 100 * (double)n / (double)of;
  if (!n) return "0";
  if (share < 0.1) return "<0.1 %";
  return arena_printf(w->c->arena, "%.1f %%", share);
}

/* Of a gradient all columns are of what the optimizer sees: the scale taken off. */
static void print_row(const Watch *w, const Seen *s)
{
  const Range *r = &s->range;
  double scale = seen_scale(w, s);
  const char *name = seen_name(w, s);
  printf("%-*s %-4s %5.0u %9.2e %9.2e %7s %7s %7s %7s\n", NAME_WIDTH, name,
         ir_dtype_name(s->probe->of.dtype), s->place.source ? s->place.line : 0,
         r->greatest / scale, r->least / scale, share_text(w, r->zeros, r->n),
         share_text(w, r->nans + r->infinite, r->n), share_text(w, range_over(r, AMPC_F16), r->n),
         share_text(w, range_under(r, AMPC_F16, scale), r->n));
}

static void print_head(const char *title)
{
  printf("%-*s %-4s %5s %9s %9s %7s %7s %7s %7s\n", NAME_WIDTH, title, "type", "line", "greatest",
         "least", "zero", "lost", ">f16", "<f16");
}

/* ---- which rows ---- */

typedef struct TableRow {
  const Seen *seen;
  double key; /* rows with a greater one come first */
} TableRow;

static double share_under(const Watch *w, const Seen *s)
{
  return (double)range_under(&s->range, AMPC_F16, seen_scale(w, s)) / (double)s->range.n;
}

static int compare(const void *a, const void *b)
{
  const TableRow *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? 1 : -1;
  return x->seen < y->seen ? -1 : x->seen > y->seen; /* in the order of the step */
}

/* Those that are asked for, in the order of the step. */
static TableRow *chosen(const Watch *w, const char *path, uint32_t *n)
{
  TableRow *out = arena_array(w->c->arena, TableRow, w->n + 1);
  *n = 0;
  for (uint32_t i = 0; i < w->n; i++)
    if (w->at[i].range.n && w->at[i].probe->kind != PROBE_scale && is_asked(&w->at[i], path))
      out[(*n)++].seen = &w->at[i];
  return out;
}

static void print_rows(const Watch *w, const TableRow *rows, uint32_t n, const char *title)
{
  print_head(title);
  for (uint32_t i = 0; i < n; i++) print_row(w, rows[i].seen);
}

/* The `most` rows whose keys are greatest, of those that have one. */
static void print_first(const Watch *w, TableRow *rows, uint32_t n, uint32_t most,
                        const char *title)
{
  uint32_t some = 0;
  qsort(rows, n, sizeof *rows, compare);
  while (some < most && some < n && rows[some].key > 0) some++;
  if (some) print_rows(w, rows, some, title), putchar('\n');
}

void watch_print(const Watch *w, const char *path, uint32_t most)
{
  uint32_t n;
  TableRow *rows = chosen(w, path, &n);
  print_findings(w, path);
  if (!most || n <= most) {
    print_rows(w, rows, n, "in the order of the step");
  } else {
    for (uint32_t i = 0; i < n; i++)
      rows[i].key = rows[i].seen->range.greatest / seen_scale(w, rows[i].seen);
    print_first(w, rows, n, most, "the greatest");
    for (uint32_t i = 0; i < n; i++) rows[i].key = share_under(w, rows[i].seen);
    print_first(w, rows, n, most, "of which most would be 0 in f16");
    printf("of %u values; --all shows them\n", n);
  }
  printf(
      "absolute values; least: of those that are not 0; lost: infinite or NaN; >f16, <f16: would\n"
      "be infinite, 0 in f16. Values of backward (gradient in ..) are times the loss scale, %g, "
      "gradients\n"
      "of parameters are not\n",
      w->scale);
}
