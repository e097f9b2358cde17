/* Handles `x.dtype` of a tensor. Pass precision decides float types, later than this pass, so code
 * cannot branch on one. Where a type is expected, as in `.to(x.dtype)` and `dtype=x.dtype`, it
 * makes a `cast_like` node, which pass precision turns into a cast. */
#include "elaborate.h"

Datum type_of_tensor(Lower *l, Datum x, Span span)
{
  DType d = tensor_dtype(l, x);
  if (!dtype_is_float(d)) return d_dtype(d);
  Value v = as_tensor(l, x, span);
  return v.id ? (Datum){.kind = D_type_of, .as.tensor = v} : d_of(D_error);
}

bool want_type(Lower *l, Datum d, Span span, const char *what, AskedType *out)
{
  out->like = (Value){0};
  if (d.kind != D_type_of) return want_dtype(l, d, span, what, &out->dtype);
  out->like = d.as.tensor;
  out->dtype = ir_node(l->g, d.as.tensor)->dtype;
  return true;
}

Datum cast_as(Lower *l, Value x, AskedType type, Span span)
{
  if (!type.like.id) return cast_to(l, x, type.dtype, span);
  return append(l, span, OP_cast_like, (Value[]){x, type.like}, 2, NULL);
}
