/* What is known of a command or a node, as a row of columns (columns.def). `ampc --explain`,
 * `amp inspect`, `amp profile` and `amp report` fill in rows, group them, and print some of their
 * columns as a table or as JSON.
 *
 * Note [kinds of facts]
 * The first letter of a kind tells it from the others. There are three kinds of texts. `key` names
 * the subject of a row; a table has at most one. `number` is a text that tables print flush right,
 * such as "12" or "mnist.amp:12". `words` is any other text. A text that is NULL is unknown.
 * Amounts: `count`, `bytes`, `time` in microseconds, `ratio`, `share` (1 is all), `flag` (0 or 1).
 * An amount below 0 is unknown. JSON has integers for counts and bytes, true or false for flags.
 *
 * Note [selections]
 * A text selects columns by name: "name<26 where!1 read". An unknown name is a defect of ampc and
 * ends it.
 *  - In a table, the marks of Note [tables] in table.h follow a name. `@` stands for the caller's
 *    own columns of text.
 *  - In JSON, an unknown fact is null. `?` after a name leaves an unknown fact out: it does not
 *    apply to the row.
 *  - For groups, one name may have `*`: "layer*" also joins rows whose layers differ only in
 *    numbers. The group's layer then has `*` for these numbers, "h.*.ln_1". Rows are not grouped by
 *    a column that is summed. */
#pragma once
#include <jansson.h>
#include "compiler/base/compile.h"
#include "compiler/diag/diag.h"

#define FACT_key    const char *
#define FACT_words  const char *
#define FACT_number const char *
#define FACT_count  double
#define FACT_bytes  double
#define FACT_time   double
#define FACT_ratio  double
#define FACT_share  double
#define FACT_flag   double

typedef struct Facts {
#define COLUMN(name, title, kind, sum) FACT_##kind name;
#include "columns.def"
} Facts;
typedef VEC(Facts) FactRows;

/* Returns a row of which nothing is known. */
Facts facts_none(void);
/* Sets file, line, where and source. place.source NULL: no line of the user's text. */
void facts_place(Facts *f, Compile *c, Place place);
/* Sets what a row has of the whole, as shares of bytes and times. */
void facts_shares(Facts *row, const Facts *all);
/* Adds the facts of `row` to `sum`, by the rule of each column. */
void facts_add(Facts *sum, const Facts *row);
/* Adds a row to the latest group that agrees with it in the columns `by`, or appends a group.
 * Returns the index of the group. */
uint32_t facts_group(Arena *arena, FactRows *groups, const char *by, const Facts *row);
/* Sorts by a column of amounts, the largest first; equal rows keep their order. */
void facts_sort(FactRows *rows, const char *column);

/* ---- tables ---- */
typedef struct FactTable {
  Table of;
  const char *columns;
  uint32_t n_titles; /* of the columns `@` */
} FactTable;
/* Begins tables with these columns, as table_open does. `titles`: the heads of the columns `@`. */
void facts_open(FactTable *t, Arena *arena, Text *out, const TableView *view, const char *columns,
                const char *const *titles, uint32_t n_titles);
/* Adds a row. `texts`: the cells of the columns `@`. The table orders rows by `cost`. */
void facts_row(FactTable *t, double cost, const Facts *row, const char *const *texts);

/* ---- JSON ---- */
json_t *facts_json(const Facts *row, const char *columns); /* a new object */
/* Adds the columns to an object, in their order. */
void facts_into(json_t *out, const Facts *row, const char *columns);
