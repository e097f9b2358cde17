/* What the functions for ops use: values, texts, results, attributes. */
#include "read.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "read_ops.h"
#include "common/shown.h"

/* ---- values by name ---- */

static Value *make_value(Reader *r, const char *name)
{
  Value *v = arena_new(r->arena, Value);
  v->name = name;
  v->id = r->values.n;
  vec_push(r->arena, &r->values, v);
  return v;
}

/* Returns the value, which is VALUE_unread until its maker is read. */
Value *named(Reader *r, const char *name)
{
  void **slot = names_at(&r->names, name);
  if (!*slot) {
    Value *v = make_value(r, name);
    v->kind = VALUE_unread;
    *slot = v;
  }
  return *slot;
}

Value *value_named(Reader *r, const char *name)
{
  return name && *name ? names_get(&r->names, name) : NULL;
}

Value *in(Reader *r, size_t i)
{
  if (i < 64) r->asked_inputs |= (uint64_t)1 << i;
  return i < r->node->n_input ? value_named(r, r->node->input[i]) : NULL;
}

/* ---- texts ---- */

const char *text(const Reader *r, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  const char *s = arena_vprintf(r->arena, fmt, ap);
  va_end(ap);
  return s;
}

const char *float_text(const Reader *r, double v)
{
  char digits[32];
  if (isnan(v)) return "(inf - inf)";
  if (isinf(v)) return v < 0 ? "-inf" : "inf";
  for (int n = 1; n <= 17; n++) {
    snprintf(digits, sizeof digits, "%.*g", n, v);
    if ((float)strtod(digits, NULL) == (float)v) break;
  }
  return text(r, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

const char *item_text(const Reader *r, Item i)
{
  if (i.text) return i.text;
  return i.n == INT64_MIN ? "(-9223372036854775807 - 1)" : text(r, "%" PRId64, i.n);
}

void list_add(Text *list, const char *entry)
{
  if (list->at && *list->at) text_puts(list, ", ");
  text_puts(list, entry);
}

const char *list_text(const Reader *r, const Item *at, uint32_t n)
{
  Text all = text_new(r->arena);
  for (uint32_t i = 0; i < n; i++) list_add(&all, item_text(r, at[i]));
  return n ? all.at : "";
}

/* The sizes of a value: "2, 3" */
static const char *sizes_text(Reader *r, const Value *v)
{
  Item at[READ_RANK];
  for (uint32_t i = 0; i < v->shape->rank; i++) at[i] = item_of_size(r, v, i);
  return list_text(r, at, v->shape->rank);
}

static const char *items_text(Reader *r, const Value *v)
{
  const char *type = v->type && !onnx_is_float(v->type) ? type_word(v->type) : NULL;
  if (v->n == 0) refuse(r, "with a constant without elements");
  if (v->printed) return v->printed;
  if (!type) type = "i64";
  bool scalar = v->shape->rank == 0;
  if (scalar && *type == 'b') return v->item[0].n ? "true" : "false";
  if (scalar) return item_text(r, v->item[0]);
  const char *list = text(r, "tensor([%s], dtype=%s)", list_text(r, v->item, v->n), type);
  return v->shape->rank == 1 ? list : text(r, "%s.reshape(%s)", list, sizes_text(r, v));
}

/* ---- members that are tensors ---- */

/* A small constant as code; NULL: a larger one. */
static const char *constant_text(Reader *r, const Value *v)
{
  const OnnxTensor *t = v->tensor;
  int64_t n = tensor_elements(t);
  bool small = n > 0 && n <= MOST_LITERAL && t->n_dims > 0 && onnx_is_float(t->data_type);
  if (v->tensor_kind != TENSOR_constant || !small) return NULL;
  Text all = text_new(r->arena);
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(tensor_real(t, i))) return NULL;
    list_add(&all, float_text(r, tensor_real(t, i)));
  }
  const char *type = type_word(t->data_type), *shape = "";
  if (strcmp(type, "f32") != 0) text_printf(&all, "], dtype=%s", type);
  for (size_t i = 0; i < t->n_dims && t->n_dims > 1; i++)
    shape = text(r, "%s%s%" PRId64, shape, i ? ", " : "", t->dims[i]);
  return text(r, "tensor([%s%s%s%s%s", all.at, strcmp(type, "f32") != 0 ? ")" : "])",
              *shape ? ".reshape(" : "", shape, *shape ? ")" : "");
}

const char *ref(Reader *r, const Value *v)
{
  const char *literal;
  switch (v->kind) {
  case VALUE_number:
    return float_text(r, v->number);
  case VALUE_items:
    return items_text(r, v);
  case VALUE_weight:
    literal = constant_text(r, v);
    return literal ? literal : weight_ref(r, r->values.at[v->id]);
  case VALUE_tensor:
    return text(r, "$%u", v->id);
  case VALUE_uniform:
  case VALUE_chosen:
  case VALUE_kept:
    refuse(r, "of random numbers outside a dropout");
    return "0";
  case VALUE_parts:
  case VALUE_unread:
    break;
  }
  refuse(r, "of a sequence");
  return "0";
}

/* ---- results ---- */

void refuse(Reader *r, const char *why)
{
  const char *op = r->node->op_type, *name = r->node->name ? r->node->name : "";
  bool first = !r->dropped;
  r->dropped = true;
  if (!first) return;
  for (uint32_t i = 0; i < r->refused.n; i++) {
    Refused *f = &r->refused.at[i];
    if (strcmp(f->op, op) != 0 || strcmp(f->why, why) != 0) continue;
    f->count++;
    return;
  }
  vec_push(r->arena, &r->refused, (Refused){op, why, name, 1});
}

/* Appends the step of the node at work, in the innermost module around it that contains the step's
 * members. */
static void add_step(Reader *r, const char *expression, const uint32_t *out, uint32_t n)
{
  Step s = {.text = expression, .out = out, .n_out = n, .scopes = scopes_of(r)};
  while (s.scopes.n > 1 && !path_within(r->place, s.scopes.at[s.scopes.n - 1].path)) s.scopes.n--;
  vec_push(r->arena, &r->steps, s);
  for (uint32_t i = 0; i < n; i++) r->values.at[out[i]]->step = r->steps.n;
  if (!r->dropped) ask_step(r, &s);
}

Value *result(Reader *r, size_t i)
{
  const char *name = i < r->node->n_output ? r->node->output[i] : "";
  return name && *name ? named(r, name) : NULL;
}

void give_results(Reader *r, const char *expression, uint32_t n)
{
  uint32_t *out = arena_array(r->arena, uint32_t, n);
  for (uint32_t i = 0; i < n; i++) {
    Value *v = result(r, i);
    if (!v) v = make_value(r, "");
    v->kind = VALUE_tensor;
    out[i] = v->id;
  }
  add_step(r, expression, out, n);
}

void give(Reader *r, const char *expression)
{
  give_results(r, expression, 1);
}

Value *between(Reader *r, const char *expression)
{
  Value *v = make_value(r, "");
  uint32_t *out = arena_new(r->arena, uint32_t);
  *out = v->id;
  add_step(r, expression, out, 1);
  return v;
}

void give_sequence(Reader *r, const char *expression, uint32_t n)
{
  Value *v = result(r, 0);
  uint32_t *out = arena_array(r->arena, uint32_t, n);
  for (uint32_t i = 0; i < n; i++) out[i] = make_value(r, "")->id;
  add_step(r, expression, out, n);
  if (!v) return;
  v->kind = VALUE_parts;
  v->part = out;
  v->n = n;
}

Shape *fixed_shape(Reader *r, const int64_t *dim, uint32_t rank)
{
  Shape *s = arena_new(r->arena, Shape);
  *s = (Shape){.rank = rank};
  for (int i = 0; i < CHOICES && rank; i++) memcpy(s->dim[i], dim, rank * sizeof *dim);
  return s;
}

void give_shaped_items(Reader *r, Item *at, const int64_t *dim, uint32_t rank, int32_t type)
{
  Value *v = result(r, 0);
  int64_t n = 1;
  if (!v) return;
  for (uint32_t i = 0; i < rank; i++) n *= dim[i];
  v->kind = VALUE_items;
  v->item = at;
  v->n = (uint32_t)n;
  v->type = type;
  v->shape = fixed_shape(r, dim, rank);
}

void give_items(Reader *r, Item *at, uint32_t n, bool scalar)
{
  give_shaped_items(r, at, (const int64_t[]){n}, !scalar, ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
}

/* The number in all elements of a tensor of this shape. */
void fill_value(Reader *r, Value *v, ValueKind kind, double number, const Item *shape, uint32_t n)
{
  Shape *s = fixed_shape(r, NULL, 0);
  v->kind = kind;
  v->number = number;
  v->n = s->rank = n;
  v->shape = s;
  v->item = arena_array(r->arena, Item, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    v->item[i] = shape[i];
    s->dim[0][i] = shape[i].n;
    s->dim[1][i] = shape[i].text ? shape[i].other : shape[i].n;
    if (s->dim[0][i] < 0 || s->dim[0][i] > MOST_SIZE)
      refuse(r, "of a constant with a negative size or one above 2^31");
  }
}

void give_number(Reader *r, double number, const Item *shape, uint32_t n)
{
  Value *v = result(r, 0);
  if (v && !onnx_is_float(v->type)) v->type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
  if (v) fill_value(r, v, VALUE_number, number, shape, n);
}

void give_value(Reader *r, const Value *from)
{
  give_value_as(r, 0, from);
}

void give_value_as(Reader *r, size_t i, const Value *from)
{
  Value *v = result(r, i);
  if (!v) return;
  Value *to = r->values.at[from->id];
  to->readers += v->readers;
  *names_at(&r->names, v->name) = to;
}

/* ---- attributes ---- */

const OnnxAttribute *attribute(Reader *r, const char *name)
{
  for (size_t i = 0; i < r->node->n_attribute; i++) {
    const OnnxAttribute *a = r->node->attribute[i];
    if (!a->name || strcmp(a->name, name) != 0) continue;
    if (i < 64) r->asked_attributes |= (uint64_t)1 << i;
    return a;
  }
  return NULL;
}

int64_t attr_number(Reader *r, const char *name, int64_t missing)
{
  const OnnxAttribute *a = attribute(r, name);
  return a && a->has_i ? a->i : missing;
}

double attr_real(Reader *r, const char *name, double missing)
{
  const OnnxAttribute *a = attribute(r, name);
  return a && a->has_f ? (double)a->f : missing;
}

bool attr_list(Reader *r, const char *name, Item **out, uint32_t *n)
{
  const OnnxAttribute *a = attribute(r, name);
  *n = 0;
  *out = arena_array(r->arena, Item, MOST_ITEMS);
  if (!a || a->n_ints > MOST_ITEMS) return false;
  for (; *n < a->n_ints; (*n)++) (*out)[*n].n = a->ints[*n];
  return true;
}

/* ---- shapes ---- */

bool is_known(const Value *v)
{
  if (!v || v->kind != VALUE_items) return false;
  for (uint32_t i = 0; i < v->n; i++)
    if (v->item[i].text) return false;
  return true;
}

bool one_number(const Value *v, double *out)
{
  if (v->kind == VALUE_number)
    *out = v->number;
  else if (is_known(v) && v->n == 1)
    *out = (double)v->item[0].n;
  else if (v->kind == VALUE_weight && v->tensor_kind != TENSOR_trains &&
           tensor_elements(v->tensor) == 1)
    *out = tensor_real(v->tensor, 0);
  else
    return false;
  return true;
}

int64_t item_at(Reader *r, const Value *v, size_t i)
{
  if (v && v->kind == VALUE_items && i < v->n && !v->item[i].text) return v->item[i].n;
  refuse(r, "with a computed argument");
  return 0;
}

int64_t rank_of(const Value *v)
{
  return v->shape ? (int64_t)v->shape->rank : -1;
}

bool size_of(const Value *v, int64_t axis, int64_t *out)
{
  int64_t rank = rank_of(v);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  *out = v->shape->dim[0][axis];
  return v->shape->dim[1][axis] == *out;
}

Item item_of_size(Reader *r, const Value *v, int64_t axis)
{
  int64_t n;
  if (size_of(v, axis, &n)) return (Item){.n = n};
  if (axis < 0) axis += rank_of(v);
  bool filled = v->kind != VALUE_tensor;
  if (axis < 0 || axis >= rank_of(v))
    return refuse(r, "along an axis that is out of range"), (Item){0};
  return filled ? v->item[axis]
                : (Item){v->shape->dim[0][axis], v->shape->dim[1][axis],
                         text(r, "%s.size(%" PRId64 ")", ref(r, v), axis)};
}

bool is_size(const Value *x, uint32_t axis, Item number)
{
  return axis < rank_of(x) && x->shape->dim[0][axis] == number.n &&
         x->shape->dim[1][axis] == (number.text ? number.other : number.n);
}

int64_t axis_of(const Value *x, int64_t axis)
{
  int64_t rank = rank_of(x);
  return axis >= -rank && axis <= rank ? axis + (axis < 0 ? rank : 0) : -1;
}
