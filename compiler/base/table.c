/* Tables and sentences for people: Note [tables]. */
#include "table.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/bytes.h"
#include "common/terminal.h"

enum { GAP = 2 };

/* ---- amounts ---- */

static const char *scaled_text(Arena *arena, double n, const char *unit)
{
  char text[AMPC_BYTES_ROOM];
  return n >= 0 ? arena_strdup(arena, ampc_scaled_text((int64_t)n, unit, text)) : "-";
}

const char *count_text(Arena *arena, double n)
{
  return scaled_text(arena, n, "");
}

const char *bytes_text(Arena *arena, double n)
{
  return scaled_text(arena, n, "B");
}

/* Prints three digits. A time below one nanosecond is too short to be predicted. */
const char *time_text(Arena *arena, double us)
{
  static const char *const units[] = {"ns", "us", "ms", "s"};
  double n = us * 1000;
  int unit = 0;
  if (!(us >= 0)) return "-";
  if (n > 0 && n < 1) return "<1 ns";
  while (n >= 999.5 && unit < 3) n /= 1000, unit++;
  return arena_printf(arena, "%.*f %s", n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2, n, units[unit]);
}

/* Returns an amount as text; NULL if the kind is no amount. */
static const char *amount_text(Arena *arena, char kind, double amount)
{
  switch (kind) {
  case 'c':
    return count_text(arena, amount);
  case 'b':
    return bytes_text(arena, amount);
  case 's':
    return amount < 0 ? "-" : arena_printf(arena, "%.1f %%", amount);
  case 't':
    return time_text(arena, amount);
  case 'r':
    return amount < 0 ? "-" : arena_printf(arena, "%.1f", amount);
  default:
    return NULL;
  }
}

/* ---- lines ---- */

static bool begins_character(char c)
{
  return ((unsigned char)c & 0xc0) != 0x80;
}

/* Returns the number of characters in the first n bytes, without those of colours. */
static int count_characters(const char *s, size_t n)
{
  int count = 0;
  bool color = false;
  for (size_t i = 0; i < n; i++) {
    color = color || s[i] == '\033';
    count += !color && begins_character(s[i]);
    color = color && s[i] != 'm';
  }
  return count;
}

static int text_width(const char *s)
{
  return count_characters(s, strlen(s));
}

/* Returns how many bytes of s to print in a line of `width` characters: up to the last space, else
 * up to the last separator within a name, else as many as fit. */
static size_t line_size(const char *s, int width)
{
  size_t space = 0, dot = 0, sign = 0, n = 0;
  for (int used = 0; s[n]; n++) {
    if (s[n] == ' ' && s[n + 1] != '%') space = n;
    if (begins_character(s[n]) && used++ == width)
      return space ? space : dot ? dot : sign ? sign : n;
    if (s[n] == '.') dot = n + 1;
    if (strchr("_/,>*", s[n])) sign = n + 1;
  }
  return n;
}

static int cursor_of(const Text *t)
{
  size_t n = t->n;
  while (n && t->at[n - 1] != '\n') n--;
  return count_characters(t->at + n, t->n - n);
}

void text_wrap(Text *out, const char *words, int indent, int width)
{
  int room = width - cursor_of(out);
  for (;; room = width - indent) {
    size_t n = line_size(words, room > 1 ? room : 1);
    text_add(out, words, n);
    words += n + strspn(words + n, " ");
    if (!*words) return;
    text_printf(out, "\n%*s", indent, "");
  }
}

void text_entry(Text *out, const char *head, const char *words, int left)
{
  int room = left - text_width(head);
  text_printf(out, "%s%s%*s", head, room < 2 ? "\n" : "", room < 2 ? left : room, "");
  text_wrap(out, words, left, line_columns());
  text_puts(out, "\n");
}

void table_say(Table *t, int indent, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  text_wrap(t->out, arena_vprintf(t->arena, fmt, ap), indent, t->width);
  va_end(ap);
  text_puts(t->out, "\n");
}

/* ---- rows ---- */

static const char *read_column(Arena *arena, const char *s, TableColumn *out)
{
  char *end = (char *)s + strcspn(s, ":|");
  *out = (TableColumn){.title = arena_strndup(arena, s, (size_t)(end - s))};
  size_t kind = *end == ':' ? strspn(++end, "abcdefghijklmnopqrstuvwxyz") : 0;
  if (kind) out->kind = *end;
  end += kind;
  if (*end == '~') out->loose = true, end++;
  if (*end == '=') out->fixed = true, end++;
  if (*end == '!') out->drop = (int)strtol(end + 1, &end, 10);
  if (*end == '<') out->least = (int)strtol(end + 1, &end, 10);
  return *end ? end + 1 : end;
}

void table_open(Table *t, Arena *arena, Text *out, const TableView *view, const char *columns)
{
  *t = (Table){.out = out ? out : &t->own,
               .arena = arena,
               .view = *view,
               .width = view->wide ? INT_MAX : line_columns(),
               .key = TABLE_COLUMNS};
  text_init(&t->own, arena);
  while (*columns) {
    columns = read_column(arena, columns, &t->columns[t->n++]);
    if (t->columns[t->n - 1].kind != 'k') continue;
    t->key = t->n - 1;
    t->columns[t->n++] = (TableColumn){.title = "n", .kind = 'n'};
  }
}

const char *text_common(Arena *arena, const char *a, const char *b)
{
  static const char ends[] = "._ ";
  ArenaMark mark = arena_mark(arena);
  Text t = text_new(arena);
  for (;;) {
    size_t n = strcspn(a, ends), m = strcspn(b, ends);
    bool equal = n == m && strncmp(a, b, n) == 0;
    bool numbers = n && m && strspn(a, "0123456789*") >= n && strspn(b, "0123456789") >= m;
    if (equal || numbers) text_add(&t, equal ? a : "*", equal ? n : 1);
    a += n, b += m;
    if (!(equal || numbers) || *a != *b) break;
    if (!*a) return t.at;
    text_add(&t, a++, 1), b++;
  }
  arena_release(arena, mark);
  return NULL;
}

/* Adds `row` to `into` if they differ only in numbers of the key; else returns false. */
static bool fold_into(const Table *t, TableRow *into, const TableRow *row)
{
  for (uint32_t i = 0; i < t->n; i++)
    if (i != t->key && !t->columns[i].loose && strcmp(into->text[i], row->text[i]) != 0)
      return false;
  const char *key = text_common(t->arena, into->text[t->key], row->text[t->key]);
  if (!key) return false;
  into->text[t->key] = key;
  for (uint32_t i = 0; i < t->n; i++)
    if (!t->columns[i].fixed) into->amount[i] += row->amount[i];
  into->cost += row->cost;
  return ++into->n;
}

void table_row(Table *t, double cost, const TableCell *cells)
{
  TableRow row = {.text = arena_array(t->arena, const char *, t->n),
                  .amount = arena_array(t->arena, double, t->n),
                  .cost = cost,
                  .n = 1,
                  .order = t->rows.n};
  for (uint32_t i = 0; i < t->n; i++) {
    row.text[i] = "";
    if (i == t->key + 1) continue;
    row.text[i] = amount_text(t->arena, t->columns[i].kind, cells->amount);
    row.amount[i] = row.text[i] ? cells->amount : 0;
    if (!row.text[i]) row.text[i] = cells->text;
    cells++;
  }
  for (uint32_t i = t->rows.n; i-- > 0 && t->key < t->n && !t->view.wide;)
    if (fold_into(t, &t->rows.at[i], &row)) return;
  vec_push(t->arena, &t->rows, row);
}

/* Formats the sums and the number of rows in each row that combines several. */
static void finish_rows(Table *t)
{
  for (uint32_t k = 0; k < t->rows.n; k++) {
    TableRow *r = &t->rows.at[k];
    if (r->n == 1) continue;
    t->folded = true;
    for (uint32_t i = 0; i < t->n; i++) {
      const char *sum = amount_text(t->arena, t->columns[i].kind, r->amount[i]);
      if (sum) r->text[i] = sum;
    }
    r->text[t->key + 1] = arena_printf(t->arena, "%u", r->n);
  }
}

static int by_cost(const void *a, const void *b)
{
  const TableRow *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? 1 : -1;
  return x->order < y->order ? -1 : 1;
}

/* ---- widths ---- */

/* Returns the width of the widest cell; 0 if all cells of the column are empty or "-". */
static int natural_width(const Table *t, uint32_t column)
{
  int most = 0;
  bool tells = false;
  for (uint32_t k = 0; k < t->rows.n; k++) {
    const char *text = t->rows.at[k].text[column];
    int n = text_width(text);
    if (n > most) most = n;
    tells |= *text && strcmp(text, "-") != 0;
  }
  int title = text_width(t->columns[column].title);
  return !tells ? 0 : most > title ? most : title;
}

/* Returns the next column to drop; t->n if none is left. */
static uint32_t find_dropped(const Table *t, const int *width)
{
  uint32_t found = t->n;
  for (uint32_t i = 0; i < t->n; i++)
    if (width[i] && t->columns[i].drop &&
        (found == t->n || t->columns[i].drop > t->columns[found].drop))
      found = i;
  return found;
}

/* Sets each column to its smallest width, but at most `most`. Returns by how many characters a row
 * is wider than a line; a negative number is the width that remains. */
static int narrow(const Table *t, const int *natural, int most, int *width)
{
  int used = -GAP;
  for (uint32_t i = 0; i < t->n; i++) {
    int least = t->columns[i].least > most ? most : t->columns[i].least;
    width[i] = least && least < natural[i] ? least : natural[i];
    if (width[i]) used += width[i] + GAP;
  }
  return used - t->width;
}

/* Chooses the widths of the columns. Reduces the smallest widths if these do not fit in a line. */
static void fit(Table *t, int *width)
{
  enum { CRAMPED = 6 };
  int natural[TABLE_COLUMNS], most = INT8_MAX;
  memcpy(natural, width, sizeof natural);
  for (uint32_t i; narrow(t, natural, most, width) > 0 && (i = find_dropped(t, natural)) < t->n;) {
    natural[i] = 0;
    t->dropped[i] = true;
  }
  while (narrow(t, natural, most, width) > 0 && most > CRAMPED) most--;
  int room = -narrow(t, natural, most, width);
  if (t->key < t->n) /* a whole name is easier to read: first, widen the key to a quarter line */
    for (int *key = &width[t->key]; *key < natural[t->key] && *key < t->width / 4 && room > 0;)
      ++*key, room--;
  for (bool any = true; any && room > 0;) { /* one character each, in turn */
    any = false;
    for (uint32_t i = 0; i < t->n && room > 0; i++)
      if (width[i] < natural[i]) width[i]++, room--, any = true;
  }
}

/* ---- printing ---- */

/* Prints a row, in as many lines as its longest cell needs. */
static void put_row(Table *t, const int *width, const char *const *texts)
{
  const char *rest[TABLE_COLUMNS];
  memcpy(rest, texts, t->n * sizeof *rest);
  for (bool more = true; more;) {
    int at = 0, used = 0;
    more = false;
    for (uint32_t i = 0; i < t->n; i++) {
      if (!width[i]) continue;
      size_t n = line_size(rest[i], width[i]);
      int size = count_characters(rest[i], n);
      bool left = !t->columns[i].kind || t->columns[i].kind == 'k';
      int start = left ? at : at + width[i] - size;
      if (n) text_printf(t->out, "%*s%.*s", start - used, "", (int)n, rest[i]), used = start + size;
      rest[i] += n + strspn(rest[i] + n, " ");
      more |= *rest[i] != 0;
      at += width[i] + GAP;
    }
    text_puts(t->out, "\n");
  }
}

void table_put(Table *t)
{
  int width[TABLE_COLUMNS] = {0};
  const char *titles[TABLE_COLUMNS];
  uint32_t all = t->rows.n, n = t->view.top && t->view.top < all ? t->view.top : all;
  finish_rows(t);
  if (t->view.top || t->sorted) qsort(t->rows.at, all, sizeof *t->rows.at, by_cost);
  t->rows.n = n;
  for (uint32_t i = 0; i < t->n; i++) {
    width[i] = natural_width(t, i);
    titles[i] = t->columns[i].title;
  }
  fit(t, width);
  put_row(t, width, titles);
  for (uint32_t k = 0; k < n; k++) put_row(t, width, t->rows.at[k].text);
  if (n < all) table_say(t, 2, "  %u rows of %u", n, all);
  t->rows.n = 0;
}

void table_close(Table *t)
{
  Text note = text_new(t->arena);
  if (t->folded) text_puts(&note, "; n: number of similar rows that are added up");
  for (uint32_t i = 0, k = 0; i < t->n; i++)
    if (t->dropped[i])
      text_printf(&note, "%s%s", k++ ? ", " : "; columns left out: ", t->columns[i].title);
  if (note.n) table_say(t, 2, "%s; --wide shows all", note.at + 2);
  if (t->out == &t->own) fwrite(t->own.at, 1, t->own.n, stdout);
}
