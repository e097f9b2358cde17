/* Runs built-ins that take a shape as a variable number of arguments; `.to(type)`. */
#include "elaborate.h"
#include "evaluate.h"

#define ARG(i)  (args->at.at[i].value)
#define SPAN(i) (args->at.at[i].span)

/* Reads sizes from argument `first` on: `x.view(2, 3)` or `x.view([2, 3])`. Skips keywords. */
static bool rest_sizes(Lower *l, const Args *args, uint32_t first, const char *what, int64_t *dim,
                       uint32_t *rank)
{
  DatumVec rest = {0};
  Span span = args->span;
  for (uint32_t i = first; i < args->at.n; i++) {
    if (args->at.at[i].key) continue;
    span = SPAN(i);
    if (ARG(i).kind == D_float && !want_int(l, ARG(i), span, what, &(int64_t){0})) return false;
    vec_push(l->arena, &rest, ARG(i));
  }
  if (rest.n == 1 && rest.at[0].kind == D_list)
    return want_sizes(l, rest.at[0], span, what, dim, rank);
  return want_sizes(l, d_list(rest.at, rest.n), span, what, dim, rank);
}

/* Returns the product of sizes; -1 if it does not fit 64 bits. */
static int64_t product(const int64_t *dim, uint32_t rank)
{
  int64_t n = 1;
  for (uint32_t i = 0; i < rank; i++)
    if (__builtin_mul_overflow(n, dim[i], &n)) return -1;
  return n;
}

/* Replaces a size of -1 by the number of elements divided by the other sizes. */
static bool infer_size(Lower *l, const Node *x, int64_t *dim, uint32_t rank, Span span,
                       const char *name)
{
  int64_t others = 1, *open = NULL;
  bool good = true;
  for (uint32_t i = 0; i < rank; i++) {
    if (dim[i] == -1 && !open)
      open = &dim[i];
    else
      good = good && dim[i] >= 1 && !__builtin_mul_overflow(others, dim[i], &others);
  }
  int64_t n = ir_elements(x);
  if (good && open && n % others == 0) *open = n / others;
  if (good && product(dim, rank) == n) return true;
  fail(l, E304, span, "%s changes the number of elements: %s to %s", name, ir_dims_text(l->c, x),
       d_text(l, d_sizes(l, dim, rank)));
  return diag_note(l->c, x->span, "%s has %lld elements", ir_dims_text(l->c, x), (long long)n);
}

/* Runs view() and reshape(), which are the same here. Pass layout decides whether data moves. */
static Datum run_reshape(Lower *l, Args *args)
{
  const char *name = args->native->name;
  int64_t dim[MAX_RANK];
  uint32_t rank;
  Value x = as_tensor(l, ARG(0), SPAN(0));
  if (!x.id || !rest_sizes(l, args, 1, name, dim, &rank) ||
      !infer_size(l, ir_node(l->g, x), dim, rank, args->span, name))
    return d_of(D_error);
  return reshape_to(l, x, dim, rank, args->span);
}

/* Runs expand(). -1 keeps the size of an axis. New axes are in front. */
static Datum run_expand(Lower *l, Args *args)
{
  int64_t dim[MAX_RANK];
  uint32_t rank;
  Value x = as_tensor(l, ARG(0), SPAN(0));
  if (!x.id || !rest_sizes(l, args, 1, "expand", dim, &rank)) return d_of(D_error);
  const Node *n = ir_node(l->g, x);
  if (rank < n->rank)
    return fail(l, E311, args->span, "expand of %s to %u axes", ir_dims_text(l->c, n), rank);
  for (uint32_t i = 0; i < rank; i++)
    if (dim[i] == -1 && i >= rank - n->rank) dim[i] = n->dim[i - (rank - n->rank)];
  l->at.span = diag_user_span(l->c, args->span);
  Value v = ir_expand(l->c, &l->at, x, dim, rank);
  return v.id == x.id ? unchanged(l, x, args->span) : d_tensor(v);
}

/* Runs `x.repeat(2, 3)`. The library's def takes the counts as a list. */
static Datum run_repeat(Lower *l, Args *args)
{
  int64_t count[MAX_RANK];
  uint32_t rank;
  if (!rest_sizes(l, args, 1, "repeat", count, &rank)) return d_of(D_error);
  Args both = {.span = args->span};
  args_push(l, &both, ARG(0), SPAN(0));
  args_push(l, &both, d_sizes(l, count, rank), args->span);
  return library_call(l, "_repeat", &both);
}

/* Runs permute(), which names every axis once, in a new order. The old order moves nothing. */
static Datum run_permute(Lower *l, Args *args)
{
  int64_t want[MAX_RANK];
  uint32_t rank;
  Value x = as_tensor(l, ARG(0), SPAN(0));
  if (!x.id || !rest_sizes(l, args, 1, "permute", want, &rank)) return d_of(D_error);
  int64_t seen = 0;
  for (uint32_t i = 0; i < rank; i++) {
    if (!normal_axis(l, want[i], ir_node(l->g, x)->rank, d_tensor(x), args->span, &want[i]))
      return d_of(D_error);
    seen |= 1 << want[i];
  }
  if (rank != ir_node(l->g, x)->rank || seen != (1 << rank) - 1)
    return fail(l, E311, args->span, "permute of %s needs every axis once", d_text(l, d_tensor(x)));
  bool moves = false;
  uint32_t axes[MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    axes[i] = (uint32_t)want[i];
    moves = moves || want[i] != i;
  }
  return moves ? append(l, args->span, OP_permute, &x, 1, ir_axis_attrs(l->c, axes, rank))
               : unchanged(l, x, args->span);
}

/* Runs size(): `x.size()` is a list, `x.size(1)` an int. Both are compile-time values. */
static Datum run_size(Lower *l, Args *args)
{
  const int64_t *dim;
  uint32_t rank;
  int64_t axis;
  if (!d_is_tensor(ARG(0)) || !tensor_dims(l, ARG(0), &dim, &rank))
    return fail(l, E209, SPAN(0), "size needs a tensor, got %s", d_kind_text(l, ARG(0)));
  if (args->at.n == 1) return d_sizes(l, dim, rank);
  if (!want_int(l, ARG(1), SPAN(1), "the axis of size", &axis) ||
      !normal_axis(l, axis, rank, ARG(0), SPAN(1), &axis))
    return d_of(D_error);
  return d_int(dim[axis]);
}

static Datum run_to(Lower *l, Args *args)
{
  AskedType type;
  if (!d_is_tensor(ARG(0)))
    return fail(l, E209, SPAN(0), "`to` needs a tensor, got %s", d_kind_text(l, ARG(0)));
  if (!want_type(l, ARG(1), SPAN(1), "`to`", &type)) return d_of(D_error);
  Value x = as_tensor(l, ARG(0), SPAN(0));
  return x.id ? cast_as(l, x, type, args->span) : d_of(D_error);
}

/* ---- new tensors ---- */

/* Reads `dtype=`, the only keyword of zeros(), ones(), rand() and randn(). */
static bool dtype_key(Lower *l, const Args *args, const char *name, AskedType *out)
{
  for (uint32_t i = 0; i < args->at.n; i++) {
    const ArgValue *arg = &args->at.at[i];
    if (!arg->key) continue;
    if (strcmp(arg->key, "dtype") != 0) {
      wrong_key(l, name, arg, (const char *const[]){"dtype"}, 1, "zeros(*sizes, dtype=f32)");
      return false;
    }
    if (!want_type(l, arg->value, arg->span, "`dtype`", out)) return false;
  }
  return true;
}

/* Reads the attributes of a new tensor. The arguments are its sizes. */
static bool new_shape(Lower *l, const Args *args, const char *name, const NamedAttr **out)
{
  int64_t dim[MAX_RANK];
  uint32_t rank;
  if (!rest_sizes(l, args, 0, name, dim, &rank)) return false;
  for (uint32_t i = 0; i < rank; i++)
    if (dim[i] < 1)
      return refuse(l, E311, args->span, "%s of shape %s; sizes are at least 1", name,
                    d_text(l, d_sizes(l, dim, rank)));
  *out = ir_shape_attrs(l->c, dim, rank);
  return true;
}

/* Returns a tensor whose elements all read one number. It takes memory only if necessary. */
static Datum filled(Lower *l, Args *args, Datum value)
{
  const NamedAttr *shape;
  AskedType type = {.dtype = AMPC_F32};
  const char *name = args->native->name;
  if (!dtype_key(l, args, name, &type) || !new_shape(l, args, name, &shape)) return d_of(D_error);
  Value v = as_tensor(l, value, args->span);
  Datum number = v.id ? cast_as(l, v, type, args->span) : d_of(D_error);
  if (d_is(number, D_error)) return number;
  return append(l, args->span, OP_full, &number.as.tensor, 1, shape);
}

/* Runs zeros() and ones(). */
static Datum run_filled(Lower *l, Args *args)
{
  return filled(l, args, d_int(args->native->value));
}

/* Runs _full(shape, value, dtype) of the layer library. */
static Datum run_full(Lower *l, Args *args)
{
  Args shape = {.span = args->span, .native = args->native};
  args_push(l, &shape, ARG(0), SPAN(0));
  vec_push(l->arena, &shape.at, (ArgValue){ARG(2), "dtype", SPAN(2), SPAN(2)});
  return filled(l, &shape, ARG(1));
}

/* Runs rand() and randn(): random numbers, generated in f32. */
static Datum run_drawn(Lower *l, Args *args)
{
  const NamedAttr *shape;
  AskedType type = {.dtype = AMPC_F32};
  const char *name = args->native->name;
  if (!dtype_key(l, args, name, &type) || !new_shape(l, args, name, &shape)) return d_of(D_error);
  if (!dtype_is_float(type.dtype))
    return fail(l, E209, args->span, "%s creates float tensors, not %s", name,
                ir_dtype_name(type.dtype));
  Datum v = append(l, args->span, (OpKind)args->native->value, NULL, 0, shape);
  return d_is(v, D_error) ? v : cast_as(l, v.as.tensor, type, args->span);
}

/* Runs _indices(shape): an i64 tensor in which each element is its own row-major index. */
static Datum run_indices(Lower *l, Args *args)
{
  const NamedAttr *shape;
  if (!new_shape(l, args, "indices", &shape)) return d_of(D_error);
  return append(l, args->span, OP_indices, NULL, 0, shape);
}

const Native shape_natives[] = {
    {"view", 1, ANY_NUMBER, .run = run_reshape},
    {"reshape", 1, ANY_NUMBER, .run = run_reshape},
    {"expand", 1, ANY_NUMBER, .run = run_expand},
    {"repeat", 1, ANY_NUMBER, .run = run_repeat},
    {"permute", 1, ANY_NUMBER, .run = run_permute},
    {"size", 1, 2, .run = run_size},
    {"to", 2, 2, .run = run_to},
    {"zeros", 0, ANY_NUMBER, .keys = true, .run = run_filled, .value = 0},
    {"ones", 0, ANY_NUMBER, .keys = true, .run = run_filled, .value = 1},
    {"rand", 0, ANY_NUMBER, .keys = true, .run = run_drawn, .value = OP_uniform},
    {"randn", 0, ANY_NUMBER, .keys = true, .run = run_drawn, .value = OP_normal},
    {"full", 3, 3, .internal = true, .run = run_full},
    {"indices", 1, 1, .internal = true, .run = run_indices},
    {0},
};
