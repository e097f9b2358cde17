/* Elementwise ops, reductions and rows that ONNX composes of several ops. The project's kernels
 * compute them in f32 and round once, so the parts are f32. */
#include "compiler/graph/ops.h"
#include "put_ops.h"

DType put_type(DType type)
{
  if (ampc_is_float(type)) return AMPC_F32;
  return type == AMPC_I64 ? AMPC_I64 : AMPC_I32;
}

/* Input i in a type in which the result can be computed */
static const char *wide(Export *e, const Node *n, uint32_t i)
{
  return in_as(e, n, i, put_type(n->dtype));
}

/* Input 0 of an op whose result has another type */
static const char *own(Export *e, const Node *n)
{
  DType type = in_node(e, n, 0)->dtype;
  return put_cast(e, in_value(e, n, 0), type, put_type(type));
}

static const char *rounded(Export *e, const Node *n, const char *x)
{
  return put_cast(e, x, put_type(n->dtype), n->dtype);
}

static const char *one(Export *e, const char *op, const char *x)
{
  return build_node(e->b, op, FROM(x), NO_ATTRS);
}

static const char *two(Export *e, const char *op, const char *x, const char *y)
{
  return build_node(e->b, op, FROM(x, y), NO_ATTRS);
}

static const char *where(Export *e, const char *condition, const char *x, const char *y)
{
  return build_node(e->b, "Where", FROM(condition, x, y), NO_ATTRS);
}

static const char *number(Export *e, double v)
{
  return build_number(e->b, AMPC_F32, v);
}

/* ---- elementwise ---- */

const char *put_elu(Export *e, const Node *n)
{
  return build_node(e->b, "Elu", FROM(put_cast(e, wide(e, n, 0), AMPC_F32, n->dtype)),
                    WITH(REAL("alpha", attr_float(n, "alpha"))));
}

const char *put_whole(Export *e, const Node *n)
{
  if (!ampc_is_float(n->dtype)) return in_value(e, n, 0);
  return put_same(e, n, n->op == OP_floor ? "Floor" : n->op == OP_ceil ? "Ceil" : "Round");
}

const char *put_isnan(Export *e, const Node *n)
{
  return one(e, "IsNaN", in_as(e, n, 0, AMPC_F32));
}

const char *put_isfinite(Export *e, const Node *n)
{
  /* x - x is 0, or NaN for infinities and NaN */
  const char *x = in_as(e, n, 0, AMPC_F32);
  return one(e, "Not", one(e, "IsNaN", two(e, "Sub", x, x)));
}

const char *put_clamp(Export *e, const Node *n)
{
  const char *x = wide(e, n, 0), *in[] = {x, "", "", NULL};
  double low = attr_float(n, "min"), high = attr_float(n, "max");
  if (isfinite(low)) in[1] = build_number(e->b, put_type(n->dtype), low);
  if (isfinite(high)) in[2] = build_number(e->b, put_type(n->dtype), high);
  return rounded(e, n, build_node(e->b, "Clip", in, NO_ATTRS));
}

/* ONNX's Mod of integers has the sign of the divisor, as here; that of floats has the sign of x. */
static const char *rest_of(Export *e, const Node *n, const char *x, const char *y)
{
  if (!ampc_is_float(n->dtype)) return two(e, "Mod", x, y);
  const char *r = build_node(e->b, "Mod", FROM(x, y), WITH(INT("fmod", 1)));
  const char *signs = two(e, "Mul", one(e, "Sign", r), one(e, "Sign", y));
  return where(e, two(e, "Less", signs, number(e, 0)), two(e, "Add", r, y), r);
}

const char *put_remainder(Export *e, const Node *n)
{
  return rounded(e, n, rest_of(e, n, wide(e, n, 0), wide(e, n, 1)));
}

/* (x - remainder) / y is whole except for rounding; Round corrects floats. A float x / 0 stays
 * x / y. */
const char *put_floor_divide(Export *e, const Node *n)
{
  const char *x = wide(e, n, 0), *y = wide(e, n, 1);
  const char *q = two(e, "Div", two(e, "Sub", x, rest_of(e, n, x, y)), y);
  if (ampc_is_float(n->dtype))
    q = where(e, two(e, "Equal", y, number(e, 0)), two(e, "Div", x, y), one(e, "Round", q));
  return rounded(e, n, q);
}

/* Whether x is negative or -0.0 */
static const char *is_minus(Export *e, const char *x)
{
  const char *zero = number(e, 0);
  return two(e, "Or", two(e, "Less", x, zero), two(e, "Less", one(e, "Reciprocal", x), zero));
}

/* atan(y / x) holds if x is positive; if x is negative, the angle is pi further. */
const char *put_atan2(Export *e, const Node *n)
{
  const char *y = wide(e, n, 0), *x = wide(e, n, 1);
  const char *angle = one(e, "Atan", two(e, "Div", y, x)), *zero = number(e, 0);
  angle = where(e, two(e, "Equal", y, zero), y, angle);
  const char *turn = where(e, is_minus(e, y), number(e, -acos(-1)), number(e, acos(-1)));
  return rounded(e, n, where(e, is_minus(e, x), two(e, "Add", angle, turn), angle));
}

const char *put_logical(Export *e, const Node *n)
{
  bool both = n->op == OP_logical_and;
  if (n->dtype == AMPC_BOOL) return put_same(e, n, both ? "And" : "Or");
  return rounded(e, n, two(e, both ? "BitwiseAnd" : "BitwiseOr", wide(e, n, 0), wide(e, n, 1)));
}

const char *put_ne(Export *e, const Node *n)
{
  return one(e, "Not", put_same(e, n, "Equal"));
}

const char *put_counted_mean(Export *e, const Node *n)
{
  return put_same(e, n, "Div");
}

/* ---- reductions ---- */

static const char *reduced(Export *e, const char *op, const char *x, uint64_t axes, bool keep)
{
  int64_t list[MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < MAX_RANK; i++)
    if (axes >> i & 1) list[count++] = i;
  if (!count) return x;
  return build_node(e->b, op, FROM(x, build_ints(e->b, list, count)), WITH(INT("keepdims", keep)));
}

static const char *const reducers[] = {
    [OP_sum] = "ReduceSum",       [OP_mean] = "ReduceMean",          [OP_prod] = "ReduceProd",
    [OP_amax] = "ReduceMax",      [OP_amin] = "ReduceMin",           [OP_max_along] = "ReduceMax",
    [OP_min_along] = "ReduceMin", [OP_logsumexp] = "ReduceLogSumExp"};

static const char *reduce(Export *e, const Node *n, uint64_t axes)
{
  return rounded(e, n, reduced(e, reducers[n->op], wide(e, n, 0), axes, attr_int(n, "keepdim")));
}

const char *put_reduce(Export *e, const Node *n)
{
  return reduce(e, n, (uint64_t)attr_int(n, "dim"));
}

const char *put_along(Export *e, const Node *n)
{
  return reduce(e, n, UINT64_C(1) << attr_int(n, "dim"));
}

const char *put_arg(Export *e, const Node *n)
{
  return build_node(e->b, n->op == OP_argmax ? "ArgMax" : "ArgMin", FROM(own(e, n)),
                    WITH(INT("axis", attr_int(n, "dim")), INT("keepdims", attr_int(n, "keepdim"))));
}

const char *put_cumsum(Export *e, const Node *n)
{
  const char *axis = build_number(e->b, AMPC_I64, (double)attr_int(n, "dim"));
  return rounded(e, n,
                 build_node(e->b, "CumSum", FROM(wide(e, n, 0), axis),
                            WITH(INT("reverse", attr_int(n, "reverse")))));
}

const char *put_sort_order(Export *e, const Node *n)
{
  int64_t axis = attr_int(n, "dim");
  const char *size = sized_value(e, n, sized_dim(e, n, (uint32_t)axis));
  if (!size) return NULL;
  const char *values = build_name(e->b, "TopK"), *order = build_name(e->b, "TopK");
  build_results(e->b, "TopK", FROM(own(e, n), size), FROM(values, order),
                WITH(INT("axis", axis), INT("largest", attr_int(n, "descending"))));
  return order;
}

/* ---- rows ---- */

const char *put_softmax(Export *e, const Node *n)
{
  const char *op = n->op == OP_softmax ? "Softmax" : "LogSoftmax";
  return rounded(e, n,
                 build_node(e->b, op, FROM(wide(e, n, 0)), WITH(INT("axis", attr_int(n, "dim")))));
}

const char *put_cross_entropy(Export *e, const Node *n)
{
  OnnxBuild *b = e->b;
  int64_t dim = attr_int(n, "dim");
  double smooth = attr_float(n, "label_smoothing");
  const char *axis = build_int(b, dim);
  const char *p = build_node(b, "LogSoftmax", FROM(wide(e, n, 0)), WITH(INT("axis", dim)));
  const char *t = in_as(e, n, 1, AMPC_I64);
  const char *ignored = build_number(b, AMPC_I64, (double)attr_int(n, "ignore_index"));
  ignored = two(e, "Equal", t, ignored);
  t = two(e, "Unsqueeze", where(e, ignored, build_number(b, AMPC_I64, 0), t), axis);
  t = build_node(b, "GatherElements", FROM(p, t), WITH(INT("axis", dim)));
  t = two(e, "Mul", two(e, "Squeeze", t, axis), number(e, smooth - 1));
  p = reduced(e, "ReduceMean", p, UINT64_C(1) << dim, false);
  if (smooth != 0) t = two(e, "Sub", t, two(e, "Mul", p, number(e, smooth)));
  return rounded(e, n, where(e, ignored, number(e, 0), t));
}

/* x minus its mean along the axis */
static const char *centred(Export *e, const Node *n)
{
  uint64_t axis = UINT64_C(1) << attr_int(n, "dim");
  const char *x = wide(e, n, 0);
  return two(e, "Sub", x, reduced(e, "ReduceMean", x, axis, true));
}

static const char *variance(Export *e, const Node *n)
{
  uint64_t axis = UINT64_C(1) << attr_int(n, "dim");
  const char *d = centred(e, n);
  const char *sum = reduced(e, "ReduceSum", two(e, "Mul", d, d), axis, false);
  const char *count =
      sized_value(e, n, sized_dim(e, in_node(e, n, 0), (uint32_t)attr_int(n, "dim")));
  if (!count) return NULL;
  count = put_cast(e, one(e, "Squeeze", count), AMPC_I64, AMPC_F32);
  return two(e, "Div", sum, two(e, "Sub", count, number(e, attr_float(n, "correction"))));
}

const char *put_row_var(Export *e, const Node *n)
{
  const char *v = variance(e, n);
  return v ? rounded(e, n, v) : NULL;
}

const char *put_row_std(Export *e, const Node *n)
{
  const char *v = variance(e, n);
  return v ? rounded(e, n, one(e, "Sqrt", v)) : NULL;
}

/* LayerNormalization is along the last axes, and needs a weight. */
const char *put_layer_norm(Export *e, const Node *n)
{
  const Node *w = in_node(e, n, 1);
  const char *x, *v, *eps = number(e, attr_float(n, "eps"));
  if (w && attr_int(n, "dim") == n->rank - 1) {
    const char *bias = in_node(e, n, 2) ? wide(e, n, 2) : NULL;
    x = build_node(e->b, "LayerNormalization", FROM(wide(e, n, 0), wide(e, n, 1), bias),
                   WITH(INT("axis", -1), REAL("epsilon", attr_float(n, "eps"))));
    return rounded(e, n, x);
  }
  x = centred(e, n);
  v = reduced(e, "ReduceMean", two(e, "Mul", x, x), UINT64_C(1) << attr_int(n, "dim"), true);
  x = two(e, "Div", x, one(e, "Sqrt", two(e, "Add", v, eps)));
  if (w) x = two(e, "Mul", x, wide(e, n, 1));
  if (in_node(e, n, 2)) x = two(e, "Add", x, wide(e, n, 2));
  return rounded(e, n, x);
}

const char *put_rms_norm(Export *e, const Node *n)
{
  const char *x = wide(e, n, 0), *eps = number(e, attr_float(n, "eps"));
  const char *q =
      reduced(e, "ReduceMean", two(e, "Mul", x, x), UINT64_C(1) << attr_int(n, "dim"), true);
  x = two(e, "Div", x, one(e, "Sqrt", two(e, "Add", q, eps)));
  if (in_node(e, n, 1)) x = two(e, "Mul", x, wide(e, n, 1));
  return rounded(e, n, x);
}
