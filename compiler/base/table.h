/* Tables and sentences that people read; programs read JSON.
 *
 * Note [tables]
 * No line is wider than line_columns() says. What makes a table fit, in this order:
 *  1. A column in which all cells are empty or "-" is not printed.
 *  2. Rows that are equal but for numbers in their key ("h.0.ln_1", "h.1.ln_1") are one row,
 *     "h.*.ln_1": column n tells how many they are, and their amounts are added up.
 *  3. Columns go until the rest fits, the one with the greatest number behind `!` first. A line
 *     below the tables names them. Those without such a number stay.
 *  4. Columns with a `<` share the room that is left, with the width behind it at least, the key
 *     first; a longer text goes on below itself.
 * --wide leaves out all but the first; --top N keeps the rows of the N greatest costs.
 *
 * Columns are given as text, "line:number!1|layer:key<10|bytes:bytes|why": title, kind, `!`, `<`.
 * Kinds: text, which goes without saying; key: what the row is about; number: text, flush right;
 * and the amounts: count, bytes, share (given in percent), time (in microseconds). */
#pragma once
#include "arena.h"

typedef struct TableView { /* --wide, --top */
  bool wide;
  uint32_t top; /* 0: all rows */
} TableView;

typedef union TableCell { /* as the kind of its column is */
  const char *text;
  double amount; /* below 0: "-" */
} TableCell;

enum { TABLE_COLUMNS = 24 };

typedef struct TableColumn {
  const char *title;
  char kind; /* its first letter; text: 0 */
  int drop;  /* 0: it stays */
  int least; /* 0: it is never narrower than its texts */
} TableColumn;

typedef struct TableRow {
  const char **text;
  double *amount, cost;
  uint32_t n;     /* rows that it stands for */
  uint32_t order; /* in which the rows came */
} TableRow;

typedef struct Table {
  Text *out, own;
  Arena *arena;
  TableView view;
  int width;                          /* of a line */
  TableColumn columns[TABLE_COLUMNS]; /* with n behind the key */
  uint32_t n, key;                    /* key: its index; there is none: TABLE_COLUMNS */
  VEC(TableRow) rows;
  bool folded, dropped[TABLE_COLUMNS]; /* in a table that was put */
} Table;

/* Tables of these columns. All is written to `out`; NULL: to stdout, when the table is closed. */
void table_open(Table *t, Arena *arena, Text *out, const TableView *view, const char *columns);
/* A cell for each column. Texts are kept, not copied. */
#define TABLE_ROW(t, cost, ...) table_row(t, cost, (TableCell[]){__VA_ARGS__})
void table_row(Table *t, double cost, const TableCell *cells);
/* Titles and rows, which are then forgotten: the next ones are another table. */
void table_put(Table *t);
/* A line or more of words, which goes on `indent` characters from the left. */
void table_say(Table *t, int indent, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Says what --wide would show beside. */
void table_close(Table *t);

/* Words behind what stands in the last line of `out`; where `width` is reached they go on `indent`
 * characters from the left. */
void text_wrap(Text *out, const char *words, int indent, int width);
/* A line of a list: words that begin at `left`, on the next line if `head` has no room there. */
void text_entry(Text *out, const char *head, const char *words, int left);
/* "h.*.ln_1" of "h.0.ln_1", or "h.*.ln_1", and "h.1.ln_1"; NULL: they differ in more than
 * numbers. */
const char *text_common(Arena *arena, const char *a, const char *b);

/* Amounts as tables show them; below 0: "-". */
const char *count_text(Arena *arena, double n);
const char *bytes_text(Arena *arena, double n);
const char *time_text(Arena *arena, double us); /* given in microseconds */
