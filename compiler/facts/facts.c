/* Rows of facts: sums, groups, tables, JSON. */
#include "facts.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum FactSum { SUM_first, SUM_same, SUM_add, SUM_known } FactSum;

typedef struct Column {
  const char *name, *title, *kind;
  FactSum sum;
  size_t at; /* of the member of Facts */
} Column;

static const Column columns[] = {
#define COLUMN(name, title, kind, sum) {#name, title, #kind, SUM_##sum, offsetof(Facts, name)},
#include "columns.def"
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static bool is_text(const Column *k)
{
  return strchr("kwn", *k->kind) != NULL; /* Note [kinds of facts] */
}

static const char *text_of(const Facts *row, const Column *k)
{
  return *(const char *const *)((const char *)row + k->at);
}

static void set_text(Facts *row, const Column *k, const char *text)
{
  *(const char **)((char *)row + k->at) = text;
}

static double amount_of(const Facts *row, const Column *k)
{
  return *(const double *)((const char *)row + k->at);
}

static void set_amount(Facts *row, const Column *k, double amount)
{
  *(double *)((char *)row + k->at) = amount;
}

typedef struct Selection { /* Note [selections] */
  uint32_t n;
  struct {
    const Column *column; /* NULL: `@` */
    const char *marks;    /* up to the next space */
  } at[TABLE_COLUMNS];
} Selection;

static const Column *find_column(const char *name, size_t n)
{
  for (const Column *k = columns; k < columns + COLUMNS; k++)
    if (strncmp(k->name, name, n) == 0 && !k->name[n]) return k;
  abort(); /* a defect of ampc: columns.def lacks it */
}

static Selection selection_of(const char *s)
{
  Selection out = {0};
  for (s += strspn(s, " "); *s; s += strspn(s, " ")) {
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_@");
    if (out.n == TABLE_COLUMNS) abort();
    out.at[out.n].column = *s == '@' ? NULL : find_column(s, n);
    out.at[out.n++].marks = s + n;
    s += strcspn(s, " ");
  }
  return out;
}

/* ---- sums ---- */

Facts facts_none(void)
{
  Facts none = {0};
  for (uint32_t i = 0; i < COLUMNS; i++)
    if (!is_text(&columns[i])) set_amount(&none, &columns[i], -1);
  return none;
}

static bool is_equal(const Facts *a, const Facts *b, const Column *k)
{
  if (!is_text(k)) return !(amount_of(a, k) < amount_of(b, k) || amount_of(a, k) > amount_of(b, k));
  const char *x = text_of(a, k), *y = text_of(b, k);
  return x == y || (x && y && strcmp(x, y) == 0);
}

static void add_amount(Facts *sum, const Facts *row, const Column *k)
{
  double a = amount_of(sum, k), b = amount_of(row, k);
  bool known = a >= 0 && b >= 0;
  if (known || k->sum == SUM_add)
    set_amount(sum, k, known ? a + b : -1);
  else if (b >= 0)
    set_amount(sum, k, b);
}

void facts_place(Facts *f, Compile *c, Place place)
{
  if (!place.source) {
    f->line = 0;
    return;
  }
  const char *path = place.source->shown, *slash = strrchr(path, '/');
  bool job = strcmp(place.source->path, c->options.input) == 0;
  uint32_t n;
  const char *s = diag_line_text(c, &place, &n), *end = s + n;
  while (s < end && (*s == ' ' || *s == '\t')) s++;
  f->file = path;
  f->line = place.line;
  f->where = job ? arena_printf(c->arena, "%u", place.line)
                 : arena_printf(c->arena, "%s:%u", slash ? slash + 1 : path, place.line);
  f->source = arena_shown(c->arena, arena_strndup(c->arena, s, (size_t)(end - s)), "\t");
}

static double share_of(double part, double all)
{
  return part >= 0 && all > 0 ? part / all : -1;
}

void facts_shares(Facts *row, const Facts *all)
{
  row->of_bytes = share_of(row->bytes, all->bytes);
  row->of_predicted = share_of(row->predicted_us, all->predicted_us);
  row->of_measured = share_of(row->measured_us, all->measured_us);
}

void facts_add(Facts *sum, const Facts *row)
{
  for (const Column *k = columns; k < columns + COLUMNS; k++) {
    if (k->sum == SUM_add || k->sum == SUM_known)
      add_amount(sum, row, k);
    else if (k->sum == SUM_same && !is_equal(sum, row, k) && is_text(k))
      set_text(sum, k, NULL);
    else if (k->sum == SUM_same && !is_equal(sum, row, k))
      set_amount(sum, k, -1);
  }
}

/* Returns whether the row agrees with a group in the columns `by`. Sets *common to the common text
 * of the column with `*`. */
static bool agrees(Arena *arena, const Facts *group, const Facts *row, const Selection *by,
                   const char **common)
{
  for (uint32_t i = 0; i < by->n; i++) {
    const Column *k = by->at[i].column;
    const char *a = is_text(k) ? text_of(group, k) : NULL, *b = is_text(k) ? text_of(row, k) : NULL;
    if (k->sum == SUM_add || k->sum == SUM_known) abort();
    if (*by->at[i].marks == '*' && a && b && (*common = text_common(arena, a, b))) continue;
    if (!is_equal(group, row, k)) return false;
  }
  return true;
}

uint32_t facts_group(Arena *arena, FactRows *groups, const char *by, const Facts *row)
{
  Selection columns_by = selection_of(by);
  for (uint32_t i = groups->n; i-- > 0;) {
    const char *common = NULL;
    if (!agrees(arena, &groups->at[i], row, &columns_by, &common)) continue;
    facts_add(&groups->at[i], row);
    for (uint32_t k = 0; k < columns_by.n && common; k++)
      if (*columns_by.at[k].marks == '*') set_text(&groups->at[i], columns_by.at[k].column, common);
    return i;
  }
  vec_push(arena, groups, *row);
  return groups->n - 1;
}

void facts_sort(FactRows *rows, const char *column)
{
  const Column *k = find_column(column, strlen(column));
  for (uint32_t i = 1; i < rows->n; i++) {
    Facts row = rows->at[i];
    uint32_t to = i;
    for (; to > 0 && amount_of(&rows->at[to - 1], k) < amount_of(&row, k); to--)
      rows->at[to] = rows->at[to - 1];
    rows->at[to] = row;
  }
}

/* ---- tables ---- */

/* Adds a column in the form of table_open: "name:key<26". */
static void add_column(Text *out, const Column *k, const char *title, const char *marks)
{
  bool words = !k || *k->kind == 'w' || *k->kind == 'f';
  bool fixed = k && !is_text(k) && k->sum != SUM_add && k->sum != SUM_known;
  text_printf(out, "%s%s:%s%s%.*s", out->n ? "|" : "", title, words ? "" : k->kind,
              fixed ? "=" : "", (int)strcspn(marks, " "), marks);
}

void facts_open(FactTable *t, Arena *arena, Text *out, const TableView *view, const char *selected,
                const char *const *titles, uint32_t n_titles)
{
  Text text = text_new(arena);
  Selection s = selection_of(selected);
  for (uint32_t i = 0; i < s.n; i++) {
    const Column *k = s.at[i].column;
    if (k) add_column(&text, k, k->title, s.at[i].marks);
    for (uint32_t j = 0; !k && j < n_titles; j++) add_column(&text, NULL, titles[j], s.at[i].marks);
  }
  table_open(&t->of, arena, out, view, text.at);
  t->columns = selected;
  t->n_titles = n_titles;
}

static TableCell cell_of(const Facts *row, const Column *k)
{
  const char *text = is_text(k) ? text_of(row, k) : NULL;
  if (is_text(k)) return (TableCell){.text = text ? text : "-"};
  double amount = amount_of(row, k);
  if (*k->kind == 'f') return (TableCell){.text = amount < 0 ? "-" : amount > 0 ? "yes" : "no"};
  return (TableCell){.amount = *k->kind == 's' && amount > 0 ? 100 * amount : amount};
}

void facts_row(FactTable *t, double cost, const Facts *row, const char *const *texts)
{
  TableCell cells[TABLE_COLUMNS];
  Selection s = selection_of(t->columns);
  uint32_t n = 0;
  for (uint32_t i = 0; i < s.n; i++) {
    if (s.at[i].column) cells[n++] = cell_of(row, s.at[i].column);
    for (uint32_t j = 0; !s.at[i].column && j < t->n_titles; j++) cells[n++].text = texts[j];
  }
  table_row(&t->of, cost, cells);
}

/* ---- JSON ---- */

static json_t *value_of(const Facts *row, const Column *k)
{
  if (is_text(k)) return text_of(row, k) ? json_string(text_of(row, k)) : json_null();
  double amount = amount_of(row, k);
  if (amount < 0) return json_null();
  if (*k->kind == 'f') return json_boolean(amount > 0);
  return strchr("cb", *k->kind) ? json_integer((json_int_t)(amount + 0.5)) : json_real(amount);
}

void facts_into(json_t *out, const Facts *row, const char *selected)
{
  Selection s = selection_of(selected);
  for (uint32_t i = 0; i < s.n; i++) {
    if (!s.at[i].column) abort(); /* `@` */
    json_t *value = value_of(row, s.at[i].column);
    if (*s.at[i].marks == '?' && json_is_null(value))
      json_decref(value);
    else
      json_object_set_new(out, s.at[i].column->name, value);
  }
}

json_t *facts_json(const Facts *row, const char *selected)
{
  json_t *out = json_object();
  facts_into(out, row, selected);
  return out;
}
