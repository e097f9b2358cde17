/* Implements index_check.h. */
#include "index_check.h"
#include "elaborate.h"

const char *with_place(Lower *l, const char *why, Span span)
{
  Place p = diag_place(l->c, diag_user_span(l->c, span));
  const char *file = p.source ? file_name(p.source->path) : "";
  return arena_printf(l->arena, "%s, %s:%u", why, file, p.line);
}

const char *index_limit_name(Lower *l, const char *name)
{
  return *name == '`' ? name : arena_printf(l->arena, "rows of %s", name);
}

void check_computed(Lower *l, Value v, int64_t n, const char *name, Span span)
{
  const Node *index = ir_node(l->g, v);
  Interval b = integer_range(l->c, v);
  if (l->at.loop || !ir_elements(index) || (b.low >= 0 && b.high < (double)n)) return;
  const char *why = with_place(l, index_limit_name(l, name), span);
  ampc_check check = {.why = why, .rows = n, .rank = index->rank};
  memcpy(check.dim, index->dim, sizeof check.dim);
  int64_t at = l->g->checks.n;
  vec_push(l->arena, &l->g->checks, check);
  append(l, span, OP_check_index, &v, 1, ATTRS({"rows", {.i = n}}, {"check", {.i = at}}));
}
