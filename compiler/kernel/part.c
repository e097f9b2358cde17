/* Prints the accumulators of row kernels: types, initial values, statements, and combinations. */
#include "row.h"

/* Returns the type of an accumulator. Indices and reductions of integers are exact in long long. */
static const char *part_type(const Use *use)
{
  if (row_is_wide(use)) return "double";
  return use->s->kind == STATEMENT_first || use->op->integers ? "long long" : "real";
}

/* Returns the neutral element. For "first index" it is one past the row, larger than any index. */
static const char *part_start(const RowKernel *r, const RowOp *op, const Statement *s)
{
  if (s->kind == STATEMENT_first)
    return arena_printf(r->k->c->arena, "%lld", (long long)r->shape.length);
  if (s->kind == STATEMENT_sum || s->kind == STATEMENT_near) return op->integers ? "0" : "R(0.0)";
  if (s->kind == STATEMENT_product) return op->integers ? "1" : "R(1.0)";
  if (s->kind == STATEMENT_max) return op->integers ? "-0x7fffffffffffffffLL - 1" : "-ampc_inf()";
  return op->integers ? "0x7fffffffffffffffLL" : "ampc_inf()";
}

/* Returns the name of a combination: "sum", "min_int", "sum_f64". */
static const char *joined(const RowKernel *r, const Use *use)
{
  static const char *const names[] = {[STATEMENT_sum] = "sum",
                                      [STATEMENT_product] = "product",
                                      [STATEMENT_max] = "max",
                                      [STATEMENT_min] = "min",
                                      [STATEMENT_first] = "min"};
  bool ints = use->op->integers || use->s->kind == STATEMENT_first;
  const char *type = ints ? "_int" : row_is_wide(use) ? "_f64" : "";
  return arena_printf(r->k->c->arena, "%s%s", names[use->s->kind], type);
}

/* Adds one element to the accumulator. The second reduction of argmax finds the smallest c whose
 * element equals the maximum; NaN (e != e) counts as equal, as in PyTorch. */
void row_put_part(const RowKernel *r, const Use *use, const char *e)
{
  Arena *a = r->k->c->arena;
  const Statement *s = use->s;
  const char *form = !r->columns                                     ? "ROW_PUT(%s_part)"
                     : row_has_stretches(r, use) || row_is_wide(use) ? "%s_part[j]"
                                                                     : "%s[j]";
  const char *part = arena_printf(a, form, s->as);
  bool multiplies = s->kind == STATEMENT_product;
  if (s->kind == STATEMENT_sum || s->kind == STATEMENT_near || multiplies) {
    EMIT(r->k->p, "%s %s %s;\n", part, multiplies ? "*=" : "+=", e);
    return;
  }
  if (s->kind == STATEMENT_first)
    e = arena_printf(a, "%s == %s%s || %s != %s ? %s : %lld", e, (s - 1)->as,
                     r->columns ? "[j]" : "", e, e, r->columns ? "c" : "(c + j)",
                     (long long)r->shape.length);
  EMIT(r->k->p, "%s = ampc_%s(%s, %s);\n", part, joined(r, use), part, e);
}

/* Prints ROW_PART or COLUMN_PART, which declare the accumulators that the machine needs: for a row
 * 16 on the CPU and one per thread on CUDA, for columns one per column. */
void row_put_start(const RowKernel *r, const Use *use)
{
  const char *t = part_type(use), *start = part_start(r, use->op, use->s);
  bool stretches = row_has_stretches(r, use);
  if (!r->columns) {
    EMIT(r->k->p, "%s(%s, %s_part, %s);\n", stretches ? "ROW_PART_LONG" : "ROW_PART", t, use->s->as,
         start);
    return;
  }
  for (int part = row_is_wide(use); part <= (stretches || row_is_wide(use)); part++)
    EMIT(r->k->p, "COLUMN_PART(%u, %s, %s%s, %s);\n", r->vector, t, use->s->as, part ? "_part" : "",
         start);
}

/* Prints the results of columns. A sum in f64 is rounded here: later code computes in `real`. */
static void put_joined_columns(const RowKernel *r, const Use *use)
{
  const char *s = use->s->as, *part = row_is_wide(use) ? "_part" : "";
  EMIT(r->k->p, "column_%s(%s%s, %u, %u);\n", joined(r, use), s, part, r->vector,
       r->loops->tile.lanes);
  if (!row_is_wide(use)) return;
  EMIT(r->k->p, "COLUMN_LOCAL(%u, real, %s);\n", r->vector, s);
  EMIT(r->k->p, "VECTOR_EACH(%u, j) %s[j] = (real)%s_part[j];\n", r->vector, s, s);
}

/* Prints "const real s = row_sum(s_part);" to combine the partial results. */
void row_put_joined(const RowKernel *r, const Use *use)
{
  const char *type = row_is_wide(use) ? "real" : part_type(use);
  if (r->columns) {
    put_joined_columns(r, use);
    return;
  }
  EMIT(r->k->p, "const %s %s = %srow_%s(%s%s, %u);\n", type, use->s->as,
       row_is_wide(use) ? "(real)" : "", joined(r, use), use->s->as,
       row_has_stretches(r, use) ? "_part_sum" : "_part", r->loops->walk.threads);
}
