/* The loops of row kernels: over the elements of a row, or of the columns that a thread has; and
 * what long sums need of them. */
#include "kernel_row.h"

void row_open(const RowKernel *r, const char *line)
{
  EMIT(r->k->p, "%s\n", line);
  r->k->p->indent++;
}

void row_close(const RowKernel *r, const char *line)
{
  r->k->p->indent--;
  EMIT(r->k->p, "%s\n", line);
}

/* Columns are taken COLUMNS at a time: j counts inside the strip that starts at `first`. */
void row_put_column(const RowKernel *r)
{
  EMIT(r->k->p, "const %s column = first + j;\n", r->k->index_type);
}

/* "i": the element's number in the shape of the rows. */
static void put_index(const RowKernel *r)
{
  const char *t = r->k->index_type;
  if (r->parts)
    EMIT(r->k->p, "const %s i = c * %lld + column;\n", t, (long long)r->inner);
  else if (r->columns)
    EMIT(r->k->p, "const %s i = (o * %lld + c) * %lld + column;\n", t, (long long)r->length,
         (long long)r->inner);
  else
    EMIT(r->k->p, "const %s i = row * %lld + c;\n", t, (long long)r->length);
}

/* Note [long sums]
 * What is added to a sum of n terms is rounded as the whole sum is: a mean of a million equal
 * numbers would be wrong in its third digit. Of long rows each accumulator begins anew after some
 * elements, and what it has is added to the sum of all before; columns the same. */
enum { LONG_ROW = 4096, LONG_COLUMN = 1024, COLUMN_STRETCH = 256 };

static bool is_long(const RowKernel *r)
{
  int64_t of_part = r->parts ? r->length / r->parts : r->length;
  return r->columns ? of_part > LONG_COLUMN : of_part > LONG_ROW;
}

/* Whether the statement's accumulator begins anew. Sums of integers are exact. */
bool row_has_stretches(const RowKernel *r, const Use *use)
{
  return is_long(r) && use->s->kind == STATEMENT_sum && !use->op->integers;
}

static const Use *first_with_stretches(const RowKernel *r, const Uses *uses)
{
  for (uint32_t i = 0; i < uses->n; i++)
    if (row_has_stretches(r, &uses->at[i])) return &uses->at[i];
  return NULL;
}

/* Columns: each thread walks its own. `uses` are the reductions of the loop, if there are any. */
static void open_rows_of_columns(const RowKernel *r, const Uses *uses)
{
  Arena *a = r->k->c->arena;
  const char *t = r->k->index_type, *begin = r->parts ? "begin" : "0";
  const char *end = r->parts ? "end" : arena_printf(a, "%lld", (long long)r->length);
  if (uses && first_with_stretches(r, uses)) {
    row_open(r, arena_printf(a, "for (%s row_at = %s; row_at < %s; row_at += %d) {", t, begin, end,
                             COLUMN_STRETCH));
    row_open(r, arena_printf(a, "for (%s c = row_at; c < %s && c < row_at + %d; c++) {", t, end,
                             COLUMN_STRETCH));
  } else {
    row_open(r, arena_printf(a, "for (%s c = %s; c < %s; c++) {", t, begin, end));
  }
  row_open(r, "EACH_COLUMN(j, width) {");
  row_put_column(r);
}

/* Along the row: ROW_REDUCE shares the elements out to the block's threads, or on the CPU to 16
 * accumulators in a fixed order; ROW_EACH is the same without a result. */
void row_open_elements(const RowKernel *r, const Uses *uses)
{
  Arena *a = r->k->c->arena;
  long long n = r->length;
  const char *t = r->k->index_type;
  if (r->columns) {
    open_rows_of_columns(r, uses);
  } else if (uses && first_with_stretches(r, uses)) {
    Text ends;
    text_init(&ends, a);
    for (uint32_t i = 0; i < uses->n; i++)
      if (row_has_stretches(r, &uses->at[i]))
        text_printf(&ends, " ROW_END(%s_part);", uses->at[i].s->as);
    row_open(r, arena_printf(a, "ROW_REDUCE_LONG(%s, c, %lld, {%s }, {", t, n, ends.at));
  } else if (uses) {
    row_open(r, arena_printf(a, "ROW_REDUCE(%s, c, %lld, {", t, n));
  } else {
    row_open(r, arena_printf(a, "ROW_EACH(%s, c, %lld) {", t, n));
  }
  put_index(r);
}

void row_close_elements(const RowKernel *r, const Uses *uses)
{
  row_close(r, uses && !r->columns ? "});" : "}");
  if (!r->columns) return;
  row_close(r, "}");
  if (!uses || !first_with_stretches(r, uses)) return;
  for (uint32_t i = 0; i < uses->n; i++) {
    const char *s = uses->at[i].s->as;
    if (!row_has_stretches(r, &uses->at[i])) continue;
    EMIT(r->k->p, "EACH_COLUMN(j, width) %s[j] += %s_part[j];\n", s, s);
    EMIT(r->k->p, "EACH_COLUMN(j, width) %s_part[j] = R(0.0);\n", s);
  }
  row_close(r, "}");
}
