/* Bounds of integers, by interval arithmetic over what they are made of; see index_check.h. */
#include "index_check.h"
#include <math.h>

typedef struct Bounds { /* inclusive; infinite: nothing is known */
  double low, high;
} Bounds;

enum { DEEPEST = 12 }; /* nodes behind each other that are looked at */

static Bounds bounds_of(Lower *l, Value v, int deep);

const char *with_place(Lower *l, const char *why, Span span)
{
  Place p = diag_place(l->c, diag_user_span(l->c, span));
  const char *file = p.source ? p.source->path : "", *slash = strrchr(file, '/');
  return arena_printf(l->arena, "%s, %s:%u", why, slash ? slash + 1 : file, p.line);
}

void source_bounds(const ampc_source *s, double *low, double *high)
{
  bool synthetic = s->kind == AMPC_SOURCE_SYNTHETIC;
  *low = synthetic ? s->low : s->dtype == AMPC_U8 ? 0 : -INFINITY;
  *high = synthetic ? s->high - 1 : s->dtype == AMPC_U8 ? 255 : INFINITY;
}

static Bounds joined(Bounds a, Bounds b)
{
  return (Bounds){fmin(a.low, b.low), fmax(a.high, b.high)};
}

static Bounds of_type(DType d)
{
  if (d == AMPC_BOOL) return (Bounds){0, 1};
  return d == AMPC_U8 ? (Bounds){0, 255} : (Bounds){-INFINITY, INFINITY};
}

static Bounds of_data(const ampc_source *s)
{
  Bounds b;
  source_bounds(s, &b.low, &b.high);
  if (!s->limit) return b; /* else the loader looks */
  return (Bounds){fmax(b.low, fmin(0, (double)s->ignored)),
                  fmin(b.high, fmax((double)s->limit - 1, (double)s->ignored))};
}

static Bounds product(Bounds a, Bounds b)
{
  if (!isfinite(a.low + a.high + b.low + b.high)) return (Bounds){-INFINITY, INFINITY};
  double p = a.low * b.low, q = a.low * b.high, r = a.high * b.low, s = a.high * b.high;
  return (Bounds){fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s))};
}

/* The sign is the divisor's. */
static Bounds rest(Bounds divisor)
{
  bool positive = divisor.low > 0 && isfinite(divisor.high);
  return positive ? (Bounds){0, divisor.high - 1} : (Bounds){-INFINITY, INFINITY};
}

static Bounds of_two(OpKind op, Bounds a, Bounds b)
{
  switch (op) {
  case OP_add:
    return (Bounds){a.low + b.low, a.high + b.high};
  case OP_sub:
    return (Bounds){a.low - b.high, a.high - b.low};
  case OP_mul:
    return product(a, b);
  case OP_remainder:
    return rest(b);
  case OP_minimum:
    return (Bounds){fmin(a.low, b.low), fmin(a.high, b.high)};
  default:
    return (Bounds){fmax(a.low, b.low), fmax(a.high, b.high)};
  }
}

/* i64 wraps around and doubles round beyond this. */
static bool is_exact(Bounds b)
{
  return b.low > -0x1p53 && b.high < 0x1p53;
}

static Bounds of_node(Lower *l, const Node *n, int deep)
{
  switch (n->op) {
  case OP_integer:
    return (Bounds){(double)attr_int(n, "value"), (double)attr_int(n, "value")};
  case OP_indices:
    return (Bounds){0, (double)(ir_elements(n) - 1)};
  case OP_source:
    return of_data(&l->g->sources.at[attr_int(n, "index")]);
  case OP_argmax:
  case OP_argmin:
  case OP_sort_order:
    return (Bounds){0, (double)(ir_in(l->c, n, 0)->dim[attr_int(n, "dim")] - 1)};
  case OP_clamp: {
    Bounds b = bounds_of(l, n->in[0], deep);
    return (Bounds){fmax(b.low, attr_float(n, "min")), fmin(b.high, attr_float(n, "max"))};
  }
  case OP_where:
    return joined(bounds_of(l, n->in[1], deep), bounds_of(l, n->in[2], deep));
  case OP_add:
  case OP_sub:
  case OP_mul:
  case OP_remainder:
  case OP_minimum:
  case OP_maximum:
    return of_two(n->op, bounds_of(l, n->in[0], deep), bounds_of(l, n->in[1], deep));
  default:
    if (n->op == OP_full || n->op == OP_cast || op_of(n)->tmpl == TMPL_alias ||
        op_has(n, T_strided))
      return bounds_of(l, n->in[0], deep);
    return of_type(n->dtype);
  }
}

static Bounds bounds_of(Lower *l, Value v, int deep)
{
  const Node *n = ir_node(l->g, v);
  if (deep == DEEPEST || !dtype_is_integer(n->dtype)) return of_type(n->dtype);
  Bounds b = of_node(l, n, deep + 1), all = of_type(n->dtype);
  b = (Bounds){fmax(b.low, all.low), fmin(b.high, all.high)};
  return is_exact(b) ? b : all;
}

bool may_be_negative(Lower *l, Value v)
{
  return bounds_of(l, v, 0).low < 0;
}

void check_computed(Lower *l, Value v, int64_t n, const char *name, Span span)
{
  const Node *index = ir_node(l->g, v);
  Bounds b = bounds_of(l, v, 0);
  if (l->at.loop || !ir_elements(index) || (b.low >= 0 && b.high < (double)n)) return;
  const char *why = with_place(l, arena_printf(l->arena, "rows of %s", name), span);
  ampc_check check = {.why = why, .rows = n, .rank = index->rank};
  memcpy(check.dim, index->dim, sizeof check.dim);
  int64_t at = l->g->checks.n;
  vec_push(l->arena, &l->g->checks, check);
  append(l, span, OP_check_index, &v, 1, ATTRS({"rows", {.i = n}}, {"check", {.i = at}}));
}
