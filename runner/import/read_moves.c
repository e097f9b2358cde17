/* Ops that repeat, pad, select, place or order elements. */
#include <inttypes.h>
#include <string.h>
#include "read_ops.h"

/* ---- shapes ---- */

/* A list of n equal integers, whose number is known when the job compiles. */
static void give_equal_items(Reader *r, int64_t number, const Value *shape, int32_t type)
{
  int64_t n = shape->n ? shape->item[0].n : 1;
  Item *to = arena_array(r->arena, Item, (size_t)n + 1);
  for (int64_t i = 0; i < n; i++) to[i].n = number;
  give_shaped_items(r, to, &n, shape->n, type);
}

/* `value` is a tensor of one element; without it, f32 0. */
void read_constant_of_shape(Reader *r)
{
  const Value *shape = in(r, 0), *y = result(r, 0);
  const OnnxAttribute *a = attribute(r, "value");
  if (shape->kind != VALUE_items || shape->n > READ_RANK)
    return refuse(r, "with a computed shape, or one of more than 6 axes");
  if (a && a->t && tensor_load(r, a->t)) return refuse(r, ampc_last_error());
  if (a && (!a->t || tensor_elements(a->t) != 1))
    return refuse(r, "with a value that is not one number");
  int32_t type = a ? a->t->data_type : ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
  if (y) r->values.at[y->id]->type = type;
  if (onnx_is_float(type))
    return give_number(r, a ? tensor_real(a->t, 0) : 0, shape->item, shape->n);
  bool list = shape->n < 2 && is_known(shape);
  for (uint32_t i = 0; i < shape->n; i++)
    list = list && shape->item[i].n >= 0 && shape->item[i].n <= MOST_ITEMS;
  if (list) return give_equal_items(r, tensor_int(a->t, 0), shape, type);
  give(r, text(r, "full([%s], %" PRId64 ", dtype=%s)", list_text(r, shape->item, shape->n),
               tensor_int(a->t, 0), type_word(type)));
}

/* ---- selection ---- */

const char *index_ref(Reader *r, const Value *v, int64_t size)
{
  bool negative = false;
  if (is_known(v)) {
    Value own = *v;
    own.item = arena_array(r->arena, Item, v->n + 1);
    for (uint32_t i = 0; i < v->n; i++)
      own.item[i].n = v->item[i].n + (v->item[i].n < 0 ? size : 0);
    return ref(r, &own);
  }
  for (int64_t i = 0; v->kind == VALUE_weight && !negative && i < tensor_elements(v->tensor); i++)
    negative = tensor_int(v->tensor, i) < 0;
  const char *at = ref(r, v);
  return negative ? text(r, "where(%s < 0, %s + %" PRId64 ", %s)", at, at, size, at) : at;
}
