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

static bool is_below(Lower *l, Value v, int64_t n)
{
  Interval b = integer_range(l->c, v);
  return b.low >= 0 && b.high < (double)n;
}

static void check_below(Lower *l, Value v, int64_t n, const char *why, Span span)
{
  const Node *index = ir_node(l->g, v);
  if (l->at.loop || !ir_elements(index) || is_below(l, v, n)) return;
  ampc_check check = {.why = why, .rows = n, .rank = index->rank};
  memcpy(check.dim, index->dim, sizeof check.dim);
  int64_t at = l->g->checks.n;
  vec_push(l->arena, &l->g->checks, check);
  append(l, span, OP_check_index, &v, 1, ATTRS({"rows", {.i = n}}, {"check", {.i = at}}));
}

void check_computed(Lower *l, Value v, int64_t n, const char *name, Span span)
{
  check_below(l, v, n, with_place(l, index_limit_name(l, name), span), span);
}

void check_labels(Lower *l, Value v, int64_t n, int64_t ignored, const char *name, Span span)
{
  if (is_below(l, v, n)) return;
  if (ignored < 0 || ignored >= n) { /* ignored labels count as class 0 here */
    Datum same = tensor_binary(l, OPER_eq, d_tensor(v), d_int(ignored), span);
    Value in[] = {as_tensor(l, same, span), as_tensor(l, d_int(0), span), v};
    Datum kept = append(l, span, OP_where, in, 3, NULL);
    if (d_is(kept, D_error)) return;
    v = kept.as.tensor;
  }
  const char *of = arena_printf(l->arena, AMPC_LABELS_OF "%s", name);
  check_below(l, v, n, with_place(l, of, span), span);
}
