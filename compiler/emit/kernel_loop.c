/* The loops of row kernels: over the elements of a row, or over the rows of some columns; and what
 * long sums need of them. */
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

/* "i": the element's number in the shape of the rows; of columns that of the first one. */
static void put_index(const RowKernel *r)
{
  const char *t = r->k->index_type;
  if (r->shape.parts)
    EMIT(r->k->p, "const %s i = c * %lld + column;\n", t, (long long)r->shape.inner);
  else if (r->columns)
    EMIT(r->k->p, "const %s i = (o * %lld + c) * %lld + column;\n", t, (long long)r->shape.length,
         (long long)r->shape.inner);
  else
    EMIT(r->k->p, "const %s i = row * %lld + c;\n", t, (long long)r->shape.length);
}

/* Note [long sums]
 * What is added to a sum of n terms is rounded as the whole sum is: a mean of a million equal
 * numbers would be wrong in its third digit. Of long rows each accumulator begins anew after some
 * elements, and what it has is added to the sum of all before; columns the same. */
enum { LONG_ROW = 4096, LONG_COLUMN = 128 };

static bool is_long(const RowKernel *r)
{
  return r->shape.part_rows > (r->columns ? LONG_COLUMN : LONG_ROW);
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

/* What the long sums of the loop do after each stretch. */
static const char *ends_text(const RowKernel *r, const Uses *uses)
{
  Text ends;
  text_init(&ends, r->k->c->arena);
  for (uint32_t i = 0; i < uses->n; i++) {
    if (!row_has_stretches(r, &uses->at[i])) continue;
    if (r->columns)
      text_printf(&ends, " COLUMN_END(%u, %s);", r->tile.vector, uses->at[i].s->as);
    else
      text_printf(&ends, " ROW_END(%s_part);", uses->at[i].s->as);
  }
  return ends.at;
}

/* COLUMN_ROWS shares the rows of a tile out to the block's threads. */
static void open_rows_of_columns(const RowKernel *r, const char *ends)
{
  const char *t = r->k->index_type, *begin = r->shape.parts ? "begin" : "0";
  long long size = r->shape.part_rows, all = r->shape.length;
  const char *rest = arena_printf(r->k->c->arena, "(%s, c, %s, %lld, %lld, %s{", t, begin, size,
                                  all, ends ? arena_printf(r->k->c->arena, "{%s }, ", ends) : "");
  row_open(r, arena_printf(r->k->c->arena, "COLUMN_ROWS%s%s", ends ? "_LONG" : "", rest));
}

void row_open_near(const RowKernel *r)
{
  row_open(r,
           arena_printf(r->k->c->arena, "COLUMN_NEAR(%s, c, begin, %lld, %lld, {", r->k->index_type,
                        (long long)r->shape.part_rows, (long long)r->shape.length));
  put_index(r);
}

void row_open_columns(const RowKernel *r)
{
  row_open(r, arena_printf(r->k->c->arena, "VECTOR_EACH(%u, j) {", r->tile.vector));
}

/* Along the row: ROW_REDUCE shares the elements out to the block's threads, or on the CPU to 16
 * accumulators in a fixed order; ROW_EACH is the same without a result. */
void row_open_elements(const RowKernel *r, const Uses *uses)
{
  Arena *a = r->k->c->arena;
  long long n = r->shape.length;
  const char *t = r->k->index_type;
  const char *ends = uses && first_with_stretches(r, uses) ? ends_text(r, uses) : NULL;
  if (r->columns)
    open_rows_of_columns(r, ends);
  else if (ends)
    row_open(r, arena_printf(a, "ROW_REDUCE_LONG(%s, c, %lld, {%s }, {", t, n, ends));
  else if (uses)
    row_open(r, arena_printf(a, "ROW_REDUCE(%s, c, %lld, {", t, n));
  else
    row_open(r, arena_printf(a, "ROW_EACH(%s, c, %lld) {", t, n));
  put_index(r);
}

void row_close_elements(const RowKernel *r, const Uses *uses)
{
  row_close(r, uses || r->columns ? "});" : "}");
}
