/* Leaves, casts, and ops that move elements. */
#include <string.h>
#include "compiler/graph/ops.h"
#include "put_ops.h"

/* ---- leaves ---- */

const char *put_source(Export *e, const Node *n)
{
  return e->name[n - e->g->nodes.at]; /* an argument: put_block() has named it */
}

/* A number that depends on sizes, in this type */
static const char *sized_number(Export *e, const Node *n, Sized v, DType type)
{
  const char *x = sized_value(e, n, v);
  if (!x) return NULL;
  return put_cast(e, build_node(e->b, "Squeeze", FROM(x), NO_ATTRS), AMPC_I64, type);
}

const char *put_integer(Export *e, const Node *n)
{
  Sized v = sized_attr(e, n, "value");
  if (!sized_varies(e, v)) return build_number(e->b, n->dtype, (double)v.at[0]);
  return sized_number(e, n, v, n->dtype);
}

/* A number that depends on sizes must be whole, or 1 / a whole number, as in a mean. */
const char *put_number(Export *e, const Node *n)
{
  double v = attr_float(n, "value");
  Sized whole = sized(0), inverse = sized(0);
  bool varies = false, is_whole = true, is_inverse = true;
  for (uint32_t i = 0; i < e->n_variants; i++) {
    double w = attr_float(sized_twin(e, n, i), "value");
    varies = varies || memcmp(&w, &v, sizeof v) != 0; /* NaN is equal to itself */
    is_whole = is_whole && fabs(w) < 0x1p53 && w == floor(w);
    is_inverse = is_inverse && fabs(w) > 0x1p-53 && w == 1 / round(1 / w);
    if (is_whole) whole.at[i] = (int64_t)w;
    if (is_inverse) inverse.at[i] = (int64_t)round(1 / w);
  }
  if (!varies) return build_number(e->b, n->dtype, v);
  if (is_whole) return sized_number(e, n, whole, n->dtype);
  if (!is_inverse)
    return cannot(e, n,
                  "its value depends on a size, but is neither a whole number nor 1 / a whole "
                  "number");
  const char *x = sized_number(e, n, inverse, AMPC_F32);
  return x ? put_cast(e, build_node(e->b, "Reciprocal", FROM(x), NO_ATTRS), AMPC_F32, n->dtype)
           : NULL;
}

const char *put_output(Export *e, const Node *n)
{
  return in_value(e, n, 0);
}

const char *put_as_is(Export *e, const Node *n)
{
  return in_as(e, n, 0, n->dtype);
}

const char *put_cast_op(Export *e, const Node *n)
{
  const Node *x = in_node(e, n, 0);
  if (x->op == OP_param && ampc_is_float(n->dtype)) return weight_value(e, x, n->dtype);
  return put_as_is(e, n);
}

/* The model needs no node for these ops. */
const char *put_nothing(Export *e, const Node *n)
{
  (void)e;
  (void)n;
  return "";
}

/* ---- shapes ---- */

/* The sizes of n, as an i64[rank]. */
static const char *shape_of(Export *e, const Node *n)
{
  Sized q[MAX_RANK];
  for (uint32_t i = 0; i < n->rank; i++) q[i] = sized_dim(e, n, i);
  return sized_list(e, n, q, n->rank);
}

/* If one size differs between calls, it is -1, which ONNX computes from the number of elements. */
const char *put_reshape(Export *e, const Node *n)
{
  Sized q[MAX_RANK];
  uint32_t varying = 0, at = 0;
  bool empty = false;
  for (uint32_t i = 0; i < n->rank; i++) {
    q[i] = sized_dim(e, n, i);
    empty = empty || q[i].at[0] == 0;
    if (!sized_varies(e, q[i])) continue;
    varying++;
    at = i;
  }
  if (varying == 1 && !empty) q[at] = sized(-1);
  const char *shape = sized_list(e, n, q, n->rank);
  if (!shape) return NULL;
  return build_node(e->b, "Reshape", FROM(in_value(e, n, 0), shape), WITH(INT("allowzero", empty)));
}

const char *put_expand(Export *e, const Node *n)
{
  const char *shape = shape_of(e, n);
  return shape ? build_node(e->b, "Expand", FROM(in_value(e, n, 0), shape), NO_ATTRS) : NULL;
}

const char *put_full(Export *e, const Node *n)
{
  const char *x = in_as(e, n, 0, n->dtype);
  const char *shape = shape_of(e, n);
  return shape ? build_node(e->b, "Expand", FROM(x, shape), NO_ATTRS) : NULL;
}

/* A value in the shape and type of input 0 */
const char *put_like(Export *e, const Node *n)
{
  const char *x = in_as(e, n, 1, n->dtype);
  const char *shape = build_node(e->b, "Shape", FROM(in_value(e, n, 0)), NO_ATTRS);
  return build_node(e->b, "Expand", FROM(x, shape), NO_ATTRS);
}

/* The values of a quantized weight, in f32. */
const char *put_packed(Export *e, const Node *n)
{
  return weight_value(e, n, n->dtype);
}

const char *put_indices(Export *e, const Node *n)
{
  Sized all = sized(1);
  for (uint32_t v = 0; v < e->n_variants; v++)
    for (uint32_t i = 0; i < n->rank; i++) all.at[v] *= sized_dim(e, n, i).at[v];
  const char *size = sized_value(e, n, all), *shape = size ? shape_of(e, n) : NULL;
  if (!shape) return NULL;
  const char *end = build_node(e->b, "Squeeze", FROM(size), NO_ATTRS);
  const char *x = build_node(
      e->b, "Range", FROM(build_number(e->b, AMPC_I64, 0), end, build_number(e->b, AMPC_I64, 1)),
      NO_ATTRS);
  return build_node(e->b, "Reshape", FROM(x, shape), NO_ATTRS);
}

/* ---- axes ---- */

const char *put_transpose(Export *e, const Node *n)
{
  int64_t axes[MAX_RANK];
  for (uint32_t i = 0; i < n->rank; i++) axes[i] = ir_permuted_axis(n, i);
  return build_node(e->b, "Transpose", FROM(in_value(e, n, 0)), WITH(INTS("perm", axes, n->rank)));
}

const char *put_slice(Export *e, const Node *n)
{
  uint32_t axis = (uint32_t)attr_int(n, "dim");
  Sized start = sized_attr(e, n, "start"), stop = sized_attr(e, n, "stop");
  Sized size = sized_dim(e, in_node(e, n, 0), axis);
  bool to_end = true; /* then the model need not compute where that is */
  for (uint32_t v = 0; v < e->n_variants; v++) to_end = to_end && stop.at[v] == size.at[v];
  const char *from = sized_value(e, n, start);
  const char *to = to_end ? build_int(e->b, INT64_MAX) : sized_value(e, n, stop);
  if (!from || !to) return NULL;
  return build_node(e->b, "Slice",
                    FROM(in_value(e, n, 0), from, to, build_int(e->b, axis),
                         build_int(e->b, attr_int(n, "step"))),
                    NO_ATTRS);
}

const char *put_flip_axis(Export *e, const Node *n)
{
  return build_node(e->b, "Slice",
                    FROM(in_value(e, n, 0), build_int(e->b, -1), build_int(e->b, INT64_MIN),
                         build_int(e->b, attr_int(n, "dim")), build_int(e->b, -1)),
                    NO_ATTRS);
}

const char *put_cat(Export *e, const Node *n)
{
  const char **in = arena_array(e->arena, const char *, n->n_in + 1u);
  for (uint32_t i = 0; i < n->n_in; i++) in[i] = in_as(e, n, i, n->dtype);
  return build_node(e->b, "Concat", in, WITH(INT("axis", attr_int(n, "dim"))));
}

const char *put_pad(Export *e, const Node *n)
{
  const char *before = sized_value(e, n, sized_attr(e, n, "before"));
  const char *after = sized_value(e, n, sized_attr(e, n, "after"));
  if (!before || !after) return NULL;
  const char *pads = build_node(e->b, "Concat", FROM(before, after), WITH(INT("axis", 0)));
  return build_node(e->b, "Pad",
                    FROM(in_value(e, n, 0), pads,
                         build_number(e->b, n->dtype, attr_float(n, "value")),
                         build_int(e->b, attr_int(n, "dim"))),
                    NO_ATTRS);
}

/* ---- indices ---- */

/* Input i as i64; also for bytes, which are no indices in ONNX */
static const char *index_of(Export *e, const Node *n, uint32_t i)
{
  return in_as(e, n, i, AMPC_I64);
}

const char *put_index_select(Export *e, const Node *n)
{
  return build_node(e->b, "Gather", FROM(in_value(e, n, 0), index_of(e, n, 1)),
                    WITH(INT("axis", attr_int(n, "axis"))));
}

const char *put_gather(Export *e, const Node *n)
{
  return build_node(e->b, "GatherElements", FROM(in_value(e, n, 0), index_of(e, n, 1)),
                    WITH(INT("axis", attr_int(n, "dim"))));
}

static const char *floats(Export *e, const Node *n, uint32_t i)
{
  return in_as(e, n, i, AMPC_F32);
}

static const char *two(Export *e, const char *op, const char *x, const char *y)
{
  return build_node(e->b, op, FROM(x, y), NO_ATTRS);
}

/* Gathers for all taps at once: x becomes [n, c, taps p], and is multiplied as [n, c, taps, p]. */
const char *put_weighted_gather(Export *e, const Node *n)
{
  const Node *x = in_node(e, n, 0), *place = in_node(e, n, 2);
  Sized taps = sized_dim(e, place, 1), last = sized_dim(e, place, 2), all = taps;
  const Sized samples = sized_dim(e, x, 0), channels = sized_dim(e, x, 1), one = sized(1);
  for (uint32_t v = 0; v < e->n_variants; v++) all.at[v] *= last.at[v];
  const char *flat = sized_list(e, n, (const Sized[]){samples, one, all}, 3);
  const char *each = sized_list(e, n, (const Sized[]){samples, channels, all}, 3);
  const char *parts = sized_list(e, n, (const Sized[]){samples, channels, taps, last}, 4);
  const char *size = sized_value(e, n, sized_dim(e, x, 2));
  if (!flat || !each || !parts || !size) return NULL;
  const char *zero = build_int(e->b, 0), *at = index_of(e, n, 2);
  const char *inside = two(e, "And", two(e, "GreaterOrEqual", at, zero), two(e, "Less", at, size));
  const char *weight = build_node(
      e->b, "Where", FROM(inside, floats(e, n, 1), build_number(e->b, AMPC_F32, 0)), NO_ATTRS);
  at = two(e, "Reshape", build_node(e->b, "Where", FROM(inside, at, zero), NO_ATTRS), flat);
  const char *picked =
      build_node(e->b, "GatherElements", FROM(floats(e, n, 0), two(e, "Expand", at, each)),
                 WITH(INT("axis", 2)));
  weight = two(e, "Unsqueeze", weight, build_int(e->b, 1));
  return build_node(
      e->b, "ReduceSum",
      FROM(two(e, "Mul", two(e, "Reshape", picked, parts), weight), build_int(e->b, 2)),
      WITH(INT("keepdims", 0)));
}

/* The result is f32. */
const char *put_scatter(Export *e, const Node *n)
{
  static const char *const words[] = {"add", "mul", "max", "min"};
  const char *x = in_node(e, n, 2) ? floats(e, n, 2) : NULL;
  if (!in_node(e, n, 2)) { /* scatters into zeros */
    const char *shape = shape_of(e, n);
    if (!shape) return NULL;
    x = build_node(e->b, "Expand", FROM(build_number(e->b, n->dtype, 0), shape), NO_ATTRS);
  }
  return build_node(
      e->b, "ScatterElements", FROM(x, index_of(e, n, 1), floats(e, n, 0)),
      WITH(INT("axis", attr_int(n, "dim")), WORD("reduction", words[attr_int(n, "reduce")])));
}

/* ---- random numbers: the model draws its own, from another generator ---- */

const char *put_random(Export *e, const Node *n)
{
  const char *shape = shape_of(e, n);
  if (!shape) return NULL;
  e->draws = true;
  const char *like =
      build_node(e->b, "Expand", FROM(build_number(e->b, AMPC_F32, 0), shape), NO_ATTRS);
  return build_node(e->b, n->op == OP_normal ? "RandomNormalLike" : "RandomUniformLike", FROM(like),
                    NO_ATTRS);
}
