/* Constants, sizes, and ops that move elements. Small integer tensors are computed here, so that
 * what PyTorch writes as Shape, Gather and Concat becomes the numbers of a `reshape`. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "read_ops.h"

/* ---- constants ---- */

void read_constant_node(Reader *r)
{
  const OnnxAttribute *a = r->node->n_attribute ? r->node->attribute[0] : NULL;
  Item *at;
  uint32_t n;
  Value *v = result(r, 0);
  if (!a || !v) return;
  if (a->t) {
    ampc_status status = tensor_load(r, a->t);
    if (status)
      refuse(r, ampc_last_error());
    else
      read_constant(r, v, a->t);
  } else if (a->has_f) {
    give_number(r, (double)a->f, NULL, 0);
  } else if (a->has_i) {
    at = arena_new(r->arena, Item);
    at->n = a->i;
    give_items(r, at, 1, true);
  } else if (a->n_floats) {
    OnnxTensor *t = arena_new(r->arena, OnnxTensor);
    onnx__tensor_proto__init(t);
    t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    t->n_dims = 1;
    t->dims = arena_new(r->arena, int64_t);
    t->dims[0] = (int64_t)a->n_floats;
    t->raw_data = (ProtobufCBinaryData){a->n_floats * sizeof(float), (uint8_t *)a->floats};
    read_constant(r, v, t);
  } else if (attr_list(r, "value_ints", &at, &n)) {
    give_items(r, at, n, false);
  } else {
    refuse(r, "with a value that is no tensor or number");
  }
}

/* PyTorch writes detach() as an Identity, and so the name of a tensor that equals another one. */
void read_identity(Reader *r)
{
  Value *x = in(r, 0), *y = result(r, 0);
  bool named = y && x->kind == VALUE_weight && !x->turned && stored_once(x->tensor) &&
               in_state_dict(names_get(&r->listed, y->name));
  if (named) {
    y->kind = VALUE_weight;
    y->type = x->type;
    y->tensor = x->tensor;
    y->tensor_kind = x->tensor_kind;
    y->shape = x->shape;
    return;
  }
  const char *classes = onnx_metadata(r->arena, r->node, "pkg.torch.onnx.class_hierarchy");
  bool stops = classes && strstr(classes, "'aten.detach.");
  if (stops && x->kind == VALUE_tensor) return give(r, text(r, "%s.detach()", ref(r, x)));
  give_value(r, x);
}

/* Constants keep their kind: numbers are floats, items are integers. Returns false for others. */
static bool cast_constant(Reader *r, const Value *x, int32_t type)
{
  bool is_bool = type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, real = onnx_is_float(type);
  bool one = x->kind == VALUE_number && fabs(x->number) < 1e15;
  for (uint32_t i = 0; i < x->n && one; i++) one = !x->item[i].text && x->item[i].n == 1;
  if (x->kind == VALUE_number && real) return give_number(r, x->number, x->item, x->n), true;
  if (x->kind == VALUE_number && !one) return false;
  const int64_t *dim = x->shape->dim[0];
  Item *to = arena_array(r->arena, Item, x->n + 1), ones[READ_RANK] = {{0}};
  for (uint32_t i = 0; i < READ_RANK; i++) ones[i].n = 1;
  if (x->kind == VALUE_number) {
    to->n = is_bool ? x->number != 0 : (int64_t)x->number;
  } else if (real) {
    if (!is_known(x) || x->n != 1) return false;
    return give_number(r, (double)x->item[0].n, ones, x->shape->rank), true;
  }
  for (uint32_t i = 0; i < x->n && x->kind == VALUE_items; i++) {
    to[i] = x->item[i];
    if (is_bool && to[i].text) return refuse(r, "from a computed size to bool"), true;
    if (is_bool) to[i].n = to[i].n != 0;
  }
  return give_shaped_items(r, to, dim, x->shape->rank, type), true;
}

static void cast_to(Reader *r, Value *x, int32_t type)
{
  const char *word = type_word(type);
  Value *y = result(r, 0);
  if (read_drawn(r)) return;
  if (!word) return refuse(r, "to a type that jobs do not have");
  if (y) y->type = type;
  bool constant = x->kind == VALUE_number || x->kind == VALUE_items;
  if (constant && cast_constant(r, x, type)) return;
  if (x->type == type) return give_value(r, x);
  give(r, text(r, "%s.to(%s)", whole_ref(r, x), word));
}

void read_cast(Reader *r)
{
  cast_to(r, in(r, 0), (int32_t)attr_number(r, "to", 0));
}

void read_cast_like(Reader *r)
{
  Value *x = in(r, 0), *like = in(r, 1);
  if (like && like->type) return cast_to(r, x, like->type);
  give_value(r, x); /* numbers have the type of what they meet */
}

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

/* ---- sizes ---- */

void read_shape(Reader *r)
{
  Value *x = in(r, 0);
  int64_t rank = rank_of(x), start = attr_number(r, "start", 0),
          end = attr_number(r, "end", INT64_MAX);
  if (rank < 0) return refuse(r, "of a sequence");
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  if (end > rank) end = rank;
  Item *at = arena_array(r->arena, Item, (size_t)rank + 1);
  uint32_t n = 0;
  for (int64_t i = start < 0 ? 0 : start; i < end; i++) at[n++] = item_of_size(r, x, i);
  give_items(r, at, n, false);
}

void read_size(Reader *r)
{
  Item *to = arena_new(r->arena, Item);
  to->n = 1;
  for (int64_t i = 0, size; i < rank_of(in(r, 0)); i++) {
    if (!size_of(in(r, 0), i, &size))
      return refuse(r, "of a tensor whose shape depends on the arguments");
    if (__builtin_mul_overflow(to->n, size, &to->n))
      return refuse(r, "of more elements than 64 bits count");
  }
  give_items(r, to, 1, true);
}

/* An index along an axis; constants lose numbers below 0. */
static const char *index_ref(Reader *r, const Value *v, int64_t size)
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

void read_gather(Reader *r)
{
  Value *x = in(r, 0), *at = in(r, 1);
  int64_t axis = attr_number(r, "axis", 0);
  if (!at) return refuse(r, "without indices");
  if (is_weight(x) && axis == 0 && x->tensor->n_dims == 2 && names_layer(x)) {
    const char *table =
        text(r, "Embedding(%" PRId64 ", %" PRId64 ")", x->tensor->dims[0], x->tensor->dims[1]);
    table = layer(r, "embedding", table, &x, (const char *const[]){"weight"}, 1);
    return give(r, text(r, "%s(%s)", table, index_ref(r, at, x->tensor->dims[0])));
  }
  axis = axis_of(x, axis);
  if (axis < 0) return refuse(r, "along an axis that is out of range");
  const char *before = "";
  for (int64_t i = 0; i < axis; i++) before = text(r, "%s:, ", before);
  give(r, text(r, "%s[%s%s]", whole_ref(r, x), before, ref(r, at)));
}

/* Gives the numbers of a short range, such as axes, as items. */
static bool range_items(Reader *r, const Value *from, const Value *to, const Value *step)
{
  int64_t at, by, n = 0;
  if (!is_known(from) || !is_known(to) || !is_known(step)) return false;
  at = from->item[0].n, by = step->item[0].n;
  Item *all = arena_array(r->arena, Item, READ_RANK);
  while (by > 0 ? at < to->item[0].n : at > to->item[0].n) {
    if (n == READ_RANK || by == 0) return false;
    all[n++].n = at;
    if (__builtin_add_overflow(at, by, &at)) return false;
  }
  give_items(r, all, (uint32_t)n, false);
  return true;
}

void read_range(Reader *r)
{
  bool items = range_items(r, in(r, 0), in(r, 1), in(r, 2));
  Value *y = result(r, 0);
  const char *code = items && (!y || y->n == 0) ? NULL : call_prelude(r, "onnx_Range", NULL, 0);
  if (code && items)
    y->printed = code;
  else if (code)
    give(r, code);
}

/* ---- shapes ---- */

bool read_list(Reader *r, size_t i, const char *name, Item **at, uint32_t *n)
{
  const Value *v = in(r, i);
  if (!v) return attr_list(r, name, at, n);
  *at = v->item;
  *n = v->n;
  if (v->kind == VALUE_items) return true;
  return refuse(r, text(r, "with computed %s", name)), false;
}

bool read_axes(Reader *r, size_t i, Item **at, uint32_t *n)
{
  Item *given;
  bool good = read_list(r, i, "axes", &given, n);
  *at = arena_array(r->arena, Item, READ_RANK + *n);
  for (uint32_t k = 0; k < *n; k++) {
    (*at)[k] = given[k];
    if (given[k].text) return refuse(r, "with computed axes"), false;
  }
  return good;
}

/* Marks axes of a tensor of `rank` axes. False after refusing: one is beyond it, or given twice. */
static bool mark_axes(Reader *r, const Item *at, uint32_t n, int64_t rank, bool *marked)
{
  for (uint32_t i = 0; i < n; i++) {
    int64_t axis = at[i].n < 0 ? at[i].n + rank : at[i].n;
    if (axis < 0 || axis >= rank || rank > READ_RANK || marked[axis])
      return refuse(r, "with axes that occur twice, are out of range or make more than 6"), false;
    marked[axis] = true;
  }
  return true;
}

/* Gives a value with the elements of x in the same order. A reshape of it becomes one of x. */
static void give_view(Reader *r, Value *x, const char *expression)
{
  give(r, expression);
  if (result(r, 0) && x->kind == VALUE_tensor) result(r, 0)->viewed = x->viewed ? x->viewed : x;
}

/* A size in terms of x, which the module at work has, if x has an axis of this size. */
static Item local_item(Reader *r, const Value *x, Item number)
{
  for (uint32_t i = 0; number.text && i < rank_of(x); i++)
    if (is_size(x, i, number))
      return (Item){number.n, number.other, text(r, "%s.size(%u)", whole_ref(r, x), i)};
  return number;
}

static bool has_shape(const Value *x, const Item *to, uint32_t n)
{
  bool same = x->kind == VALUE_tensor && rank_of(x) == n;
  for (uint32_t i = 0; same && i < n; i++) same = is_size(x, i, to[i]);
  return same;
}

/* Prints a reshape as x.flatten(k) or x.unflatten(k, ..) if it keeps the first k axes. */
static const char *kept_axes(Reader *r, const Value *x, const Item *to, uint32_t n)
{
  int64_t rank = rank_of(x);
  uint32_t kept = 0;
  while (kept + 1 < n && kept + 1 < rank && is_size(x, kept, to[kept])) kept++;
  for (uint32_t i = kept; i < n; i++)
    if (to[i].text) return NULL;
  if (kept && n == kept + 1 && rank > n) return text(r, "%s.flatten(%u)", whole_ref(r, x), kept);
  if (kept && rank == kept + 1 && n > rank)
    return text(r, "%s.unflatten(%u, [%s])", whole_ref(r, x), kept,
                list_text(r, to + kept, n - kept));
  return NULL;
}

/* PyTorch's exporter writes the slopes of channels as slope.reshape(1, -1, 1, 1). The PRelu knows
 * what it means. */
static bool is_slope(Reader *r, const Value *x, const Value *shape)
{
  const OnnxNode *next = r->index + 1 < r->nodes->n_node ? r->nodes->node[r->index + 1] : NULL;
  bool read = next && next->op_type && strcmp(next->op_type, "PRelu") == 0 && next->n_input == 2;
  bool fits = is_weight(x) && x->tensor->n_dims == 1 && is_known(shape) && shape->n > 2 &&
              shape->item[0].n == 1;
  for (uint32_t i = 2; fits && i < shape->n; i++) fits = shape->item[i].n == 1;
  const Value *of = read ? value_named(r, next->input[0]) : NULL, *y = result(r, 0);
  return fits && of && rank_of(of) == shape->n && x->readers == 1 && y && y->readers == 1 &&
         value_named(r, next->input[1]) == y;
}

/* Prints a reshape. If exactly one size depends on the arguments, it is printed as -1. */
static const char *reshape_text(Reader *r, const Value *x, Item *to, uint32_t n)
{
  uint32_t open = 0, at = 0;
  for (uint32_t i = 0; i < n; i++) {
    bool batch = i == 0 && r->batch && !to[i].text && to[i].n == r->batch;
    if (batch && x->kind == VALUE_tensor && is_size(x, 0, to[i])) /* the file fixes its size */
      to[i].text = text(r, "%s.size(0)", ref(r, x));
    if (!to[i].text && to[i].n != -1) continue;
    open++;
    at = i;
  }
  for (uint32_t i = 0; i < n; i++) to[i] = local_item(r, x, to[i]);
  if (open == 1) to[at] = (Item){.n = -1};
  return text(r, "%s.reshape(%s)", whole_ref(r, x), list_text(r, to, n));
}

void read_reshape(Reader *r)
{
  Value *x = in(r, 0), *shape = in(r, 1);
  Item to[READ_RANK];
  bool keeps = attr_number(r, "allowzero", 0) == 0;
  uint32_t n = shape ? shape->n : 0;
  if (!shape || shape->kind != VALUE_items || n > READ_RANK || rank_of(x) < 0)
    return refuse(r, "to a computed shape, or one of more than 6 axes");
  if (is_slope(r, x, shape)) return x->slopes = true, give_value(r, x);
  for (uint32_t i = 0; i < n; i++) {
    bool kept = keeps && !shape->item[i].text && shape->item[i].n == 0 && i < rank_of(x);
    to[i] = kept ? item_of_size(r, x, i) : shape->item[i];
  }
  while (x->viewed) x = x->viewed;
  if (has_shape(x, to, n)) return give_value(r, x);
  const char *short_form = kept_axes(r, x, to, n);
  give_view(r, x, short_form ? short_form : reshape_text(r, x, to, n));
}

void read_expand(Reader *r)
{
  Value *x = in(r, 0), *shape = in(r, 1);
  int64_t rank = rank_of(x);
  Item to[READ_RANK];
  if (!shape || shape->kind != VALUE_items || shape->n > READ_RANK || rank < 0)
    return refuse(r, "to a computed shape, or one of more than 6 axes");
  uint32_t n = rank > shape->n ? (uint32_t)rank : shape->n;
  for (uint32_t i = 0; i < n; i++) {
    int64_t own = (int64_t)i + rank - n;
    bool asked = i + shape->n >= n;
    to[i] = asked ? shape->item[i + shape->n - n] : (Item){.n = 1};
    if (own >= 0 && !to[i].text && to[i].n == 1) to[i] = item_of_size(r, x, own);
  }
  if (has_shape(x, to, n)) return give_value(r, x);
  for (uint32_t i = 0; i < n; i++) to[i] = local_item(r, x, to[i]);
  give(r, text(r, "%s.expand(%s)", whole_ref(r, x), list_text(r, to, n)));
}

static bool read_perm(Reader *r, uint32_t rank, Item **to, uint32_t *n)
{
  bool marked[READ_RANK] = {0};
  if (!attr_list(r, "perm", to, n))
    for (*n = 0; *n < rank; ++*n) (*to)[*n].n = rank - 1 - *n;
  if (*n != rank) return refuse(r, "with a perm of another number of axes"), false;
  return mark_axes(r, *to, *n, rank, marked);
}

/* Whether the node is a Transpose that one with the axes `to` undoes. */
static bool undoes(const OnnxNode *t, const Item *to, uint32_t n)
{
  const OnnxAttribute *a = t->n_attribute ? t->attribute[0] : NULL;
  bool all = a && a->n_ints == n && strcmp(t->op_type, "Transpose") == 0;
  for (uint32_t i = 0; all && i < n; i++) all = a->ints[to[i].n] == (int64_t)i;
  return all;
}

void read_transpose(Reader *r)
{
  Value *x = in(r, 0), *y = result(r, 0);
  Item *to, turned[READ_RANK];
  uint32_t n, moved = 0, first = 0, second = 0;
  if (rank_of(x) < 0 || !read_perm(r, (uint32_t)rank_of(x), &to, &n)) return;
  for (uint32_t i = 0; i < n; i++) {
    turned[i] = item_of_size(r, x, to[i].n);
    if (to[i].n == i) continue;
    if (moved++ == 0) first = i;
    second = i;
  }
  if (moved == 0) return give_value(r, x);
  if (is_weight(x) && n == 2 && y) {
    fill_value(r, y, VALUE_weight, 0, turned, n);
    y->tensor = x->tensor;
    y->turned = x;
    return;
  }
  const OnnxNode *made = x->kind == VALUE_tensor ? x->maker : NULL;
  Value *from = made && undoes(made, to, n) ? value_named(r, made->input[0]) : NULL;
  if (from) return give_value(r, from);
  if (moved == 2) return give(r, text(r, "%s.transpose(%u, %u)", whole_ref(r, x), first, second));
  give(r, text(r, "%s.permute(%s)", whole_ref(r, x), list_text(r, to, n)));
}
