/* The integers that a value may hold, by interval arithmetic over the nodes that it is computed
 * from. */
#include "compiler/graph/ops.h"
#include <math.h>

enum { DEEPEST = 12 }; /* the longest chain of nodes that is examined */

static Interval range_of(Compile *c, Value v, int deep);

Interval source_range(const ampc_source *s)
{
  if (s->kind == AMPC_SOURCE_SYNTHETIC) return (Interval){s->low, s->high - 1};
  return s->dtype == AMPC_U8 ? (Interval){0, 255} : (Interval){-INFINITY, INFINITY};
}

static Interval joined(Interval a, Interval b)
{
  return (Interval){fmin(a.low, b.low), fmax(a.high, b.high)};
}

static Interval of_type(DType d)
{
  if (d == AMPC_BOOL) return (Interval){0, 1};
  return d == AMPC_U8 ? (Interval){0, 255} : (Interval){-INFINITY, INFINITY};
}

static Interval of_data(const ampc_source *s)
{
  Interval b = source_range(s);
  if (!s->limit) return b; /* with a limit, the loader checks the values */
  return (Interval){fmax(b.low, fmin(0, (double)s->ignored)),
                    fmin(b.high, fmax((double)s->limit - 1, (double)s->ignored))};
}

static Interval product(Interval a, Interval b)
{
  if (!isfinite(a.low + a.high + b.low + b.high)) return (Interval){-INFINITY, INFINITY};
  double p = a.low * b.low, q = a.low * b.high, r = a.high * b.low, s = a.high * b.high;
  return (Interval){fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s))};
}

/* Returns the range of a remainder, which has the sign of the divisor. */
static Interval rest(Interval divisor)
{
  bool positive = divisor.low > 0 && isfinite(divisor.high);
  return positive ? (Interval){0, divisor.high - 1} : (Interval){-INFINITY, INFINITY};
}

static Interval of_two(OpKind op, Interval a, Interval b)
{
  switch (op) {
  case OP_add:
    return (Interval){a.low + b.low, a.high + b.high};
  case OP_sub:
    return (Interval){a.low - b.high, a.high - b.low};
  case OP_mul:
    return product(a, b);
  case OP_remainder:
    return rest(b);
  case OP_minimum:
    return (Interval){fmin(a.low, b.low), fmin(a.high, b.high)};
  default:
    return (Interval){fmax(a.low, b.low), fmax(a.high, b.high)};
  }
}

/* True if b is within 2^53. Beyond that, doubles round and i64 may wrap around. */
static bool is_exact(Interval b)
{
  return b.low > -0x1p53 && b.high < 0x1p53;
}

static Interval of_node(Compile *c, const Node *n, int deep)
{
  switch (n->op) {
  case OP_integer:
    return (Interval){(double)attr_int(n, "value"), (double)attr_int(n, "value")};
  case OP_indices:
    return (Interval){0, (double)(ir_elements(n) - 1)};
  case OP_source:
    return of_data(&c->graph->sources.at[attr_int(n, "index")]);
  case OP_argmax:
  case OP_argmin:
  case OP_sort_order:
    return (Interval){0, (double)(ir_in(c, n, 0)->dim[attr_int(n, "dim")] - 1)};
  case OP_clamp: {
    Interval b = range_of(c, n->in[0], deep);
    return (Interval){fmax(b.low, attr_float(n, "min")), fmin(b.high, attr_float(n, "max"))};
  }
  case OP_where:
    return joined(range_of(c, n->in[1], deep), range_of(c, n->in[2], deep));
  case OP_add:
  case OP_sub:
  case OP_mul:
  case OP_remainder:
  case OP_minimum:
  case OP_maximum:
    return of_two(n->op, range_of(c, n->in[0], deep), range_of(c, n->in[1], deep));
  default:
    if (n->op == OP_full || n->op == OP_cast || op_of(n)->tmpl == TMPL_alias ||
        op_has(n, T_strided))
      return range_of(c, n->in[0], deep);
    return of_type(n->dtype);
  }
}

static Interval range_of(Compile *c, Value v, int deep)
{
  const Node *n = ir_node(c->graph, v);
  if (deep == DEEPEST || !dtype_is_integer(n->dtype)) return of_type(n->dtype);
  Interval b = of_node(c, n, deep + 1), all = of_type(n->dtype);
  b = (Interval){fmax(b.low, all.low), fmin(b.high, all.high)};
  return is_exact(b) ? b : all;
}

Interval integer_range(Compile *c, Value v)
{
  return range_of(c, v, 0);
}
