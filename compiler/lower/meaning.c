/* Records what the names and calls of a job mean. */
#include "meaning.h"

enum { MAX_MEANINGS = 1 << 18 }; /* a job with long loops gets no records of its later parts */

static void record(Lower *l, const File *file, Span span, Datum value, bool result)
{
  struct Meanings *m = l->meanings;
  if (!m || file->builtin || m->at.n == MAX_MEANINGS || !span.end) return;
  switch ((DatumKind)value.kind) {
  case D_error:
  case D_absent:
  case D_word:
  case D_function:
  case D_native:
  case D_op:
  case D_own:
  case D_class:
    return;
  default:
    vec_push(l->arena, &m->at, (Meaning){span, value, m->at.n, result});
  }
}

/* Returns the span of a name, of the last name of a path, or of the name that is called. */
static Span name_span(const Expr *e)
{
  if (e->kind == EXPR_call) e = e->as.call.callee;
  return e->kind == EXPR_name   ? e->span
         : e->kind == EXPR_attr ? e->as.attr.name.span
                                : (Span){0, 0};
}

void meaning_add_expression(Lower *l, const File *file, const Expr *e, Datum value)
{
  if (l->meanings) record(l, file, name_span(e), value, e->kind == EXPR_call);
}

void meaning_add_binding(Lower *l, const File *file, Span name, Datum value)
{
  record(l, file, name, value, false);
}
