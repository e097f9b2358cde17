/* Types and shapes of results that the file does not state, and operands that are broadcast. */
#include <math.h>
#include <string.h>
#include "read_ops.h"

/* ---- shapes ---- */

bool shape_of(Reader *r, const Value *v, Item **at, uint32_t *n)
{
  int64_t rank;
  if (!rank_of(v, &rank)) return false;
  *n = (uint32_t)rank;
  *at = arena_array(r->arena, Item, *n + 1);
  bool filled = v->kind != VALUE_tensor && v->kind != VALUE_weight && v->kind != VALUE_items;
  for (uint32_t i = 0; i < *n; i++) (*at)[i] = filled ? v->item[i] : item_of_size(r, v, i);
  return true;
}

bool is_size(const Value *x, uint32_t axis, Item number)
{
  int64_t n, rank;
  if (!rank_of(x, &rank) || axis >= rank) return false;
  if (!number.text) return size_of(x, axis, &n) && n == number.n;
  return number.dim && dim_name(x, axis) && strcmp(dim_name(x, axis), number.dim) == 0;
}

void give_shape(Reader *r, const Item *at, uint32_t n)
{
  give_shape_of(r, 0, at, n);
}

void give_shape_of(Reader *r, size_t number, const Item *at, uint32_t n)
{
  Value *v = result(r, number);
  if (!v || v->shape || n > READ_RANK) return;
  Onnx__TensorShapeProto *shape = arena_new(r->arena, Onnx__TensorShapeProto);
  onnx__tensor_shape_proto__init(shape);
  shape->n_dim = n;
  shape->dim = arena_array(r->arena, Onnx__TensorShapeProto__Dimension *, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    Onnx__TensorShapeProto__Dimension *d = arena_new(r->arena, Onnx__TensorShapeProto__Dimension);
    onnx__tensor_shape_proto__dimension__init(d);
    shape->dim[i] = d;
    if (at[i].text && !at[i].dim) continue; /* a size that has no name */
    d->value_case = at[i].text ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                               : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    if (at[i].text)
      d->dim_param = (char *)(uintptr_t)at[i].dim;
    else
      d->dim_value = at[i].n;
  }
  v->shape = shape;
}

/* The shape of the inputs after broadcasting. */
static bool broadcast_shape(Reader *r, Item *to, uint32_t *n)
{
  *n = 0;
  for (size_t k = 0; k < r->node->n_input; k++) {
    Item *at;
    uint32_t rank;
    if (!in(r, k)) continue;
    if (!shape_of(r, in(r, k), &at, &rank) || rank > READ_RANK) return false;
    if (rank > *n) {
      memmove(to + (rank - *n), to, *n * sizeof *to);
      for (uint32_t i = 0; i < rank - *n; i++) to[i] = (Item){.n = 1};
      *n = rank;
    }
    for (uint32_t i = 0; i < rank; i++) {
      Item *size = &to[*n - rank + i];
      if (!size->text && size->n == 1) *size = at[i];
    }
  }
  return true;
}

/* Images: the sizes of pixels are not computed. channels 0: those of x */
void give_image_shape(Reader *r, const Value *x, int64_t channels)
{
  Item *shape;
  uint32_t n;
  if (!shape_of(r, x, &shape, &n) || n < 3) return;
  if (channels) shape[1] = (Item){.n = channels};
  for (uint32_t i = 2; i < n; i++) shape[i] = (Item){.text = ""};
  give_shape(r, shape, n);
}

/* ---- what ops keep ---- */

/* Ops that read_op() calls a function for, whose result has the shape of input 0. */
static const char *const same_shape[] = {"Cast",
                                         "CastLike",
                                         "Clip",
                                         "CumSum",
                                         "Dropout",
                                         "Gelu",
                                         "HardSigmoid",
                                         "InstanceNormalization",
                                         "LayerNormalization",
                                         "LogSoftmax",
                                         "LpNormalization",
                                         "GroupNormalization",
                                         "RMSNormalization",
                                         "Softmax",
                                         "Sqrt",
                                         "PRelu",
                                         "BatchNormalization",
                                         "Trilu",
                                         "ScatterElements",
                                         "ScatterND"};
static const char *const broadcasts[] = {"Add",  "Sub",   "Mul",   "Div", "Mod",
                                         "Max",  "Min",   "Pow",   "Sum", "Mean",
                                         "Less", "Equal", "Where", "And", "Not"};
static const char *const bools[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual",
                                    "And",   "Or",   "Not",         "Xor",     "IsNaN",
                                    "IsInf"};
static const char *const indices[] = {"Shape", "Size", "ArgMax", "ArgMin"};

#define HAS(list, op) has_name(list, sizeof(list) / sizeof *(list), op)
static bool has_name(const char *const *list, size_t n, const char *op)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i], op) == 0) return true;
  return false;
}

void read_types(Reader *r, bool elementwise)
{
  Value *y = result(r, 0);
  const char *op = r->node->op_type;
  const Value *x = in(r, strcmp(op, "Where") == 0 ? 1 : strcmp(op, "OneHot") == 0 ? 2 : 0);
  Item to[READ_RANK], *at;
  uint32_t n;
  if (!y) return;
  if (!y->type && HAS(bools, op)) y->type = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
  if (!y->type && HAS(indices, op)) y->type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
  if (!y->type && x) y->type = x->type;
  if (y->shape) return;
  if ((elementwise || HAS(broadcasts, op)) && broadcast_shape(r, to, &n))
    give_shape(r, to, n);
  else if (x && HAS(same_shape, op) && shape_of(r, x, &at, &n))
    give_shape(r, at, n);
}

/* ---- numbers as operands ---- */

#define F16_LARGEST 65504

const char *whole_ref(Reader *r, const Value *v)
{
  if (v->kind != VALUE_number || v->n == 0) {
    if (v->kind == VALUE_number || (v->kind == VALUE_items && v->scalar)) {
      const char *type = v->type ? type_word(v->type) : "f32";
      if (v->kind == VALUE_items && !v->type) type = "i64";
      return text(r, "full([], %s, dtype=%s)", ref(r, v), type ? type : "f32");
    }
    return ref(r, v);
  }
  return text(r, "full([%s], %s)", list_text(r, v->item, v->n), ref(r, v));
}

static bool covers(const Value *x, const Value *number)
{
  int64_t rank;
  if ((x->kind != VALUE_tensor && x->kind != VALUE_weight) || !rank_of(x, &rank) ||
      rank < number->n)
    return false;
  for (uint32_t i = 0; i < number->n; i++) {
    Item size = number->item[i];
    if ((size.text || size.n != 1) && !is_size(x, (uint32_t)rank - number->n + i, size))
      return false;
  }
  return true;
}

/* Whether another operand is a finite number that f16 does not have, such as the mask -3.4e38. */
static bool meets_large(Reader *r, size_t i)
{
  for (size_t k = 0; k < r->node->n_input; k++) {
    const Value *v = k != i ? in(r, k) : NULL;
    if (v && v->kind == VALUE_number && isfinite(v->number) && fabs(v->number) > F16_LARGEST)
      return true;
  }
  return false;
}

const char *operand(Reader *r, size_t i)
{
  const Value *v = in(r, i);
  if (!v) return refuse(r, "without an input"), "0";
  bool computed = v->kind == VALUE_tensor && !v->argument && onnx_is_float(v->type);
  if (computed && meets_large(r, i)) return text(r, "%s.to(f32)", ref(r, v));
  bool covered = v->kind != VALUE_number || v->n == 0;
  for (size_t k = 0; k < r->node->n_input; k++)
    covered = covered || (k != i && in(r, k) && covers(in(r, k), v));
  return covered ? ref(r, v) : whole_ref(r, v);
}
