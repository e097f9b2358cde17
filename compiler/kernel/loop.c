/* The loops of row kernels, over the elements of a row or over the rows of some columns, and their
 * long sums. */
#include "row.h"

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

/* Declares "i": the index of the vector's first element in the shape of the rows. */
void row_put_index(const RowKernel *r)
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

bool row_loads_at_index(const Chain *ch)
{
  for (uint32_t i = 0; i < ch->loads.n; i++)
    if (index_is(&ch->loads.at[i].index, VAR_i)) return true;
  return false;
}

/* Note [long sums]
 * Each addition rounds to the precision of the whole sum: a mean of a million equal numbers would
 * be wrong in its third digit. So long rows and columns are cut into stretches of elements. After
 * each stretch the accumulator is added to a total and restarts at 0. */
enum { LONG_ROW = 4096, LONG_COLUMN = 128 };

static bool is_long(const RowKernel *r)
{
  return r->shape.part_rows > (r->columns ? LONG_COLUMN : LONG_ROW);
}

/* True if the statement's accumulator restarts after each stretch. Sums of integers are exact, sums
 * of doubles nearly so. */
bool row_has_stretches(const RowKernel *r, const Use *use)
{
  bool rounds = use->s->kind == STATEMENT_sum && !use->op->integers && !use->op->wide;
  return is_long(r) && rounds;
}

bool row_is_wide(const Use *use)
{
  return use->op->wide && (use->s->kind == STATEMENT_sum || use->s->kind == STATEMENT_product);
}

static const Use *first_with_stretches(const RowKernel *r, const Uses *uses)
{
  for (uint32_t i = 0; i < uses->n; i++)
    if (row_has_stretches(r, &uses->at[i])) return &uses->at[i];
  return NULL;
}

/* Returns the statements of the loop's long sums after each stretch. */
static const char *ends_text(const RowKernel *r, const Uses *uses)
{
  Text ends = text_new(r->k->c->arena);
  for (uint32_t i = 0; i < uses->n; i++) {
    if (!row_has_stretches(r, &uses->at[i])) continue;
    if (r->columns)
      text_printf(&ends, " COLUMN_END(%u, %s);", r->vector, uses->at[i].s->as);
    else
      text_printf(&ends, " ROW_END(%s_part);", uses->at[i].s->as);
  }
  return ends.at;
}

/* True if the index is the first of contiguous elements: "i", "c * 64 + column". */
static bool is_vector(const RowKernel *r, const Index *x)
{
  return index_counts(x, VAR_i) || index_counts(x, r->columns ? VAR_column : VAR_c);
}

static bool changes_by_row(const Load *l)
{
  return index_has(&l->index, VAR_i) || index_has(&l->index, VAR_c);
}

/* True if 4 rows at once and two numbers for each sum leave too few of a thread's 128 registers for
 * addresses and shared values. Then ptxas spills on some machines. If the kernel calls an expensive
 * function such as SiLU's derivative, the values that all rows share count, too. A reduction of
 * parts is not crowded: it is short, and waits for its loads, not for registers. */
static bool is_crowded(const RowKernel *r, const Uses *uses, const Chain *elements)
{
  enum { AT_ONCE = 4, MOST = 88 };
  int64_t bytes = 0, sums = 2 * (int64_t)r->vector * uses->n, shared = 0;
  for (uint32_t i = 0; i < elements->loads.n; i++) {
    const Load *l = &elements->loads.at[i];
    const Node *n = ir_node(r->k->g, l->value);
    if (!is_vector(r, &l->index)) continue;
    if (changes_by_row(l))
      bytes += r->vector * ir_dtype_size(r->k->c, n->dtype);
    else if (group_is_dear(r->k->g, r->k->group))
      shared += r->vector;
  }
  return r->shape.parts && AT_ONCE * bytes / 4 + sums + shared > MOST;
}

/* Opens the loop over rows: COLUMN_ROWS divides the rows of a tile among the block's threads. */
static void open_rows_of_columns(const RowKernel *r, const char *how, const char *ends)
{
  const char *t = r->k->index_type, *begin = r->shape.parts ? "begin" : "0";
  long long size = r->shape.part_rows, all = r->shape.length;
  const char *rest = arena_printf(r->k->c->arena, "(%s, c, %s, %lld, %lld, %s{", t, begin, size,
                                  all, ends ? arena_printf(r->k->c->arena, "{%s }, ", ends) : "");
  row_open(r, arena_printf(r->k->c->arena, "COLUMN_ROWS%s%s", how, rest));
}

void row_open_near(const RowKernel *r)
{
  row_open(r,
           arena_printf(r->k->c->arena, "COLUMN_NEAR(%s, c, begin, %lld, %lld, {", r->k->index_type,
                        (long long)r->shape.part_rows, (long long)r->shape.length));
}

void row_open_vector(const RowKernel *r)
{
  row_open(r, arena_printf(r->k->c->arena, "VECTOR_EACH(%s, j) {", r->width));
}

/* Opens the loop along the row. ROW_REDUCE divides the elements among the row's threads, or on the
 * CPU among 16 accumulators in a fixed order. ROW_EACH has no reduction. */
void row_open_elements(const RowKernel *r, const Uses *uses, const Chain *elements)
{
  Arena *a = r->k->c->arena;
  const char *ends = uses && first_with_stretches(r, uses) ? ends_text(r, uses) : NULL;
  const char *odd = r->loops->odd ? "_ODD" : "";
  const char *walk = arena_printf(a, "%u, %u, %s, c, %lld", r->vector, r->loops->walk.threads,
                                  r->k->index_type, (long long)r->shape.length);
  if (r->columns)
    open_rows_of_columns(r,
                         !ends                           ? ""
                         : is_crowded(r, uses, elements) ? "_CROWDED"
                                                         : "_LONG",
                         ends);
  else if (ends)
    row_open(r, arena_printf(a, "ROW_REDUCE_LONG%s(%s, {%s }, {", odd, walk, ends));
  else
    row_open(r, arena_printf(a, "ROW_%s%s(%s, {", uses ? "REDUCE" : "EACH", odd, walk));
}

/* ---- vectors ---- */

void row_put_loads(const RowKernel *r, const Chain *ch, bool outside)
{
  for (uint32_t i = 0; i < ch->loads.n; i++) {
    const Load *l = &ch->loads.at[i];
    if (is_vector(r, &l->index) && (!outside || !changes_by_row(l)))
      put_vector(r->k, r->width, argument_of(r->k, l->value), &l->index);
  }
}

/* Declares the vectors of results. A node that adds to a gradient also loads it. */
void row_put_results(const RowKernel *r, const bool *needed, const Index *index)
{
  for (uint32_t i = 0; i < r->k->group->n; i++) {
    Value v = r->k->group->nodes[i];
    bool adds = op_has(ir_node(r->k->g, v), T_effect);
    uint32_t argument = argument_of(r->k, v);
    if (needed[i] && is_vector(r, result_index(r->k, argument, index)))
      put_result_vector(r->k, adds, r->width, argument, index);
  }
}

void row_put_draws(const RowKernel *r, const bool *needed, const Index *index)
{
  if (r->loops->odd) return; /* vectors begin at any element */
  for (uint32_t i = 0; i < r->k->group->n; i++)
    if (needed[i])
      put_drawn_vector(r->k, ir_node(r->k->g, r->k->group->nodes[i]), r->vector, index);
}
