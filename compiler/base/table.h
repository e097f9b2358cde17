/* Tables and sentences for people. Programs read JSON instead.
 *
 * Note [tables]
 * No line is wider than line_columns(). A table is made to fit in these steps:
 *  1. A column whose cells are all empty or "-" is not printed.
 *  2. Rows that differ only in numbers in their key ("h.0.ln_1", "h.1.ln_1") become one row,
 *     "h.*.ln_1". Column n counts them, and their amounts are added up.
 *  3. Columns are dropped until the rest fits, the largest number after `!` first. A line below
 *     the tables names them. A column without such a number is never dropped.
 *  4. Columns with `<` get at least the width after it, and divide the remaining width among
 *     them, the key first. A longer text wraps within its column.
 * --wide turns off all steps but the first. --top N keeps the N rows with the highest cost.
 *
 * A text defines the columns: "line:number!1|layer:key<10|bytes:bytes|why". Each has a title, then
 * optionally a kind, `~`, `=`, `!` and `<`. A column of measured amounts has `~`: step 2 also
 * combines rows that differ there. Step 2 does not add up amounts of a column with `=`. Kinds: text
 * (the default); key: the subject of the row; number: text, flush right; and the amounts count,
 * bytes, share (a percentage), ratio, time (in microseconds). */
#pragma once
#include "arena.h"

typedef struct TableView { /* --wide, --top */
  bool wide;
  uint32_t top; /* 0: all rows */
} TableView;

/* The kind of the column determines the member. */
typedef union TableCell {
  const char *text;
  double amount; /* below 0: "-" */
} TableCell;

enum { TABLE_COLUMNS = 24 };

typedef struct TableColumn {
  const char *title;
  char kind;  /* the first letter of the kind; 0: text */
  bool loose; /* `~`: rows that differ here become one row nevertheless */
  bool fixed; /* `=`: equal amounts are not added up */
  int drop;   /* the number after `!`; 0: never dropped */
  int least;  /* the number after `<`; 0: never narrower than its texts */
} TableColumn;

typedef struct TableRow {
  const char **text;
  double *amount, cost;
  uint32_t n;     /* number of rows that this row combines */
  uint32_t order; /* position among the added rows */
} TableRow;

typedef struct Table {
  Text *out, own;
  Arena *arena;
  TableView view;
  int width;                          /* width of a line, in characters */
  TableColumn columns[TABLE_COLUMNS]; /* the column `n` (number of rows) follows the key */
  /* n: number of columns; key: index of the key column, or TABLE_COLUMNS */
  uint32_t n, key;
  VEC(TableRow) rows;
  bool sorted;                         /* set by the caller: the highest cost first */
  bool folded, dropped[TABLE_COLUMNS]; /* rows, columns: in any table that was printed */
} Table;

/* Begins tables with these columns. Output goes to `out`, or to stdout in table_close if `out` is
 * NULL. */
void table_open(Table *t, Arena *arena, Text *out, const TableView *view, const char *columns);
/* Adds a row, with a cell for each column. Texts are not copied. */
#define TABLE_ROW(t, cost, ...) table_row(t, cost, (TableCell[]){__VA_ARGS__})
void table_row(Table *t, double cost, const TableCell *cells);
/* Prints the titles and rows, and removes the rows: the next row begins a new table. */
void table_put(Table *t);
/* Prints a sentence. Further lines are indented by `indent` characters. */
void table_say(Table *t, int indent, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Prints a line about the columns and rows that only --wide shows. */
void table_close(Table *t);

/* Appends words to the last line of `out`. A line that would exceed `width` wraps, and the next one
 * is indented by `indent` characters. */
void text_wrap(Text *out, const char *words, int indent, int width);
/* Prints a list entry: `head`, then words in column `left`, on the next line if `head` is too
 * long. */
void text_entry(Text *out, const char *head, const char *words, int left);
/* Returns the common pattern of two names that differ only in numbers: "h.*.ln_1" for "h.0.ln_1"
 * (or "h.*.ln_1") and "h.1.ln_1". Returns NULL if they differ otherwise. */
const char *text_common(Arena *arena, const char *a, const char *b);

/* Return amounts as tables print them. A negative amount is "-". */
const char *count_text(Arena *arena, double n);
const char *bytes_text(Arena *arena, double n);
const char *time_text(Arena *arena, double us); /* `us`: microseconds */
