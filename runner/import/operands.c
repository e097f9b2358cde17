/* Operands that are broadcast, among them numbers. */
#include <math.h>
#include "read_ops.h"

#define F16_LARGEST 65504

const char *whole_ref(Reader *r, const Value *v)
{
  if (v->kind == VALUE_number && v->n > 0)
    return text(r, "full([%s], %s)", list_text(r, v->item, v->n), ref(r, v));
  if (v->kind != VALUE_number && (v->kind != VALUE_items || v->shape->rank > 0)) return ref(r, v);
  const char *type = v->type ? type_word(v->type) : NULL;
  if (!type) type = v->kind == VALUE_items ? "i64" : "f32";
  return text(r, "full([], %s, dtype=%s)", ref(r, v), type);
}

static bool covers(const Value *x, const Value *number)
{
  int64_t rank = rank_of(x);
  if ((x->kind != VALUE_tensor && x->kind != VALUE_weight) || rank < number->n) return false;
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
