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
    v->type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    give_number(r, (double)a->f, NULL, 0);
  } else if (a->has_i) {
    at = arena_new(r->arena, Item);
    at->n = a->i;
    give_items(r, at, 1, true);
    v->type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
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
    v->type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
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
    return;
  }
  const char *classes = onnx_metadata(r->arena, r->node, "pkg.torch.onnx.class_hierarchy");
  bool stops = classes && strstr(classes, "'aten.detach.");
  if (stops && x->kind == VALUE_tensor) return give(r, text(r, "%s.detach()", ref(r, x)));
  give_value(r, x);
}

/* Constants keep their kind: numbers are floats, items are integers. */
static void cast_constant(Reader *r, const Value *x, int32_t type)
{
  bool is_bool = type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, real = onnx_is_float(type);
  Item *to = arena_array(r->arena, Item, x->n + 1);
  for (uint32_t i = 0; i < x->n; i++) {
    to[i] = x->item[i];
    if (is_bool && to[i].text) return refuse(r, "from a computed size to bool");
    if (is_bool) to[i].n = to[i].n != 0;
  }
  if (x->kind == VALUE_number && real) return give_number(r, x->number, x->item, x->n);
  if (x->kind == VALUE_items && real) {
    Item *one = arena_new(r->arena, Item);
    one->n = 1;
    return give_number(r, (double)x->item[0].n, one, x->scalar ? 0 : 1);
  }
  if (x->kind == VALUE_items) return give_items(r, to, x->n, x->scalar);
  Item *whole = arena_new(r->arena, Item);
  whole->n = is_bool ? x->number != 0 : (int64_t)x->number;
  give_items(r, whole, 1, x->n == 0);
}

static void cast_to(Reader *r, Value *x, int32_t type)
{
  const char *word = type_word(type);
  if (read_drawn(r)) return;
  if (!word) return refuse(r, "to a type that jobs do not have");
  Value *y = result(r, 0);
  if (y) y->type = type;
  bool items = x->kind == VALUE_items && (!onnx_is_float(type) || (is_known(x) && x->n == 1));
  bool one = x->kind == VALUE_number && fabs(x->number) < 1e15;
  for (uint32_t i = 0; i < x->n && one; i++) one = !x->item[i].text && x->item[i].n == 1;
  bool number = x->kind == VALUE_number && (onnx_is_float(type) || (one && x->n < 2));
  if (items || number) return cast_constant(r, x, type);
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

/* ---- sizes ---- */

void read_shape(Reader *r)
{
  Value *x = in(r, 0);
  int64_t rank, start = attr_number(r, "start", 0), end = attr_number(r, "end", INT64_MAX);
  if (!rank_of(x, &rank)) {
    if (start < 0 || end == INT64_MAX) return refuse(r, "of a tensor without a stated shape");
    rank = READ_RANK;
  }
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  if (end > rank) end = rank;
  Item *at = arena_array(r->arena, Item, (size_t)rank + 1);
  uint32_t n = 0;
  for (int64_t i = start < 0 ? 0 : start; i < end; i++) at[n++] = item_of_size(r, x, i);
  give_items(r, at, n, false);
}

int64_t axis_of(const Value *x, int64_t axis)
{
  int64_t rank;
  if (axis >= 0) return axis <= READ_RANK ? axis : -1;
  return rank_of(x, &rank) && axis >= -rank ? axis + rank : -1;
}

void read_gather(Reader *r)
{
  Value *x = in(r, 0), *at = in(r, 1);
  int64_t axis = attr_number(r, "axis", 0);
  if (!at) return refuse(r, "without indices");
  if (x->kind == VALUE_items && is_known(at)) {
    Item *to = arena_array(r->arena, Item, at->n + 1);
    for (uint32_t i = 0; i < at->n; i++) {
      int64_t from = at->item[i].n + (at->item[i].n < 0 ? x->n : 0);
      if (from < 0 || from >= x->n) return refuse(r, "beyond the end of a constant");
      to[i] = x->item[from];
    }
    return give_items(r, to, at->n, at->scalar);
  }
  if (is_weight(x) && axis == 0 && x->tensor->n_dims == 2 && names_layer(x)) {
    const char *table =
        text(r, "Embedding(%" PRId64 ", %" PRId64 ")", x->tensor->dims[0], x->tensor->dims[1]);
    Item *index;
    uint32_t axes;
    if (shape_of(r, at, &index, &axes)) {
      index[axes] = (Item){.n = x->tensor->dims[1]}; /* shape_of() has room for one more */
      give_shape(r, index, axes + 1);
    }
    table = layer(r, "embedding", table, &x, (const char *const[]){"weight"}, 1);
    return give(r, text(r, "%s(%s)", table, index_ref(r, at, x->tensor->dims[0], false)));
  }
  axis = axis_of(x, axis);
  if (axis < 0) return refuse(r, "along an axis that is not known");
  Item *shape, *index, to[2 * READ_RANK];
  uint32_t n, m, k = 0;
  if (shape_of(r, x, &shape, &n) && shape_of(r, at, &index, &m) && n <= READ_RANK &&
      m <= READ_RANK) {
    for (uint32_t i = 0; i < n; i++) {
      for (uint32_t l = 0; i == axis && l < m; l++) to[k++] = index[l];
      if (i != axis) to[k++] = shape[i];
    }
    give_shape(r, to, k);
  }
  const char *before = "";
  for (int64_t i = 0; i < axis; i++) before = text(r, "%s:, ", before);
  give(r, text(r, "%s[%s%s]", whole_ref(r, x), before, ref(r, at)));
}

static const char *bound_text(Reader *r, const Value *v)
{
  double number = 0;
  if (v->kind == VALUE_items) return item_text(r, v->item[0]);
  return one_number(v, &number) ? float_text(r, number) : "";
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
  Value *from = in(r, 0), *to = in(r, 1), *step = in(r, 2);
  double number;
  bool zero = is_known(from) && from->item[0].n == 0, one = is_known(step) && step->item[0].n == 1;
  for (size_t i = 0; i < 3; i++) {
    const Value *v = in(r, i);
    if (!v || !(one_number(v, &number) || (v->kind == VALUE_items && v->n == 1)))
      return refuse(r, "with computed bounds");
  }
  const char *type = from->type && from->type != ONNX__TENSOR_PROTO__DATA_TYPE__INT64
                         ? type_word(from->type)
                         : NULL;
  give_shape(r, &(Item){.text = ""}, 1);
  const char *end = type && strcmp(type, "f32") != 0 ? text(r, ", dtype=%s", type) : "",
             *all = zero && one ? text(r, "arange(%s%s)", bound_text(r, to), end)
                                : text(r, "arange(%s, %s, %s%s)", bound_text(r, from),
                                       bound_text(r, to), bound_text(r, step), end);
  if (!range_items(r, from, to, step)) return give(r, all);
  if (result(r, 0) && result(r, 0)->n) result(r, 0)->printed = all;
}

/* ---- joined tensors ---- */

static void give_joined_shape(Reader *r, int64_t axis)
{
  Item *shape, *other;
  uint32_t n, m;
  if (!shape_of(r, in(r, 0), &shape, &n)) return;
  axis = axis_of(in(r, 0), axis);
  for (size_t i = 1; i < r->node->n_input; i++) {
    if (axis < 0 || !shape_of(r, in(r, i), &other, &m) || m != n || axis >= n) return;
    if (shape[axis].text || other[axis].text)
      shape[axis] = (Item){.text = ""};
    else
      shape[axis].n += other[axis].n;
    for (uint32_t k = 0; k < n; k++) /* a size that this input knows */
      if (k != axis && shape[k].text && !other[k].text) shape[k] = other[k];
  }
  give_shape(r, shape, n);
}

void read_concat(Reader *r)
{
  uint32_t n = 0;
  bool items = true;
  int64_t axis = attr_number(r, "axis", 0);
  if (read_rows(r)) return;
  Text all = text_new(r->arena);
  Item *to = arena_array(r->arena, Item, MOST_ITEMS);
  for (size_t i = 0; i < r->node->n_input; i++) {
    if (!in(r, i)) return refuse(r, "without an input");
    items = items && in(r, i)->kind == VALUE_items && (n += in(r, i)->n) <= MOST_ITEMS;
  }
  n = 0;
  for (size_t i = 0; i < r->node->n_input; i++) {
    Value *x = in(r, i);
    if (items)
      for (uint32_t k = 0; k < x->n && n < MOST_ITEMS; k++) to[n++] = x->item[k];
    else
      list_add(&all, whole_ref(r, x));
  }
  if (!items) give_joined_shape(r, axis);
  if (items)
    give_items(r, to, n, false);
  else
    give(r, text(r, "cat([%s], dim=%" PRId64 ")", all.at, axis));
}

/* ---- shapes ---- */

bool read_axes(Reader *r, size_t i, Item **at, uint32_t *n)
{
  Value *axes = in(r, i);
  if (!axes) return attr_list(r, "axes", at, n);
  *at = arena_array(r->arena, Item, axes->n + 1);
  *n = is_known(axes) ? axes->n : 0;
  for (uint32_t k = 0; k < *n; k++) (*at)[k] = axes->item[k];
  return is_known(axes);
}

/* Marks axes of a tensor of `rank` axes. False: one of them is beyond it, or given twice. */
static bool mark_axes(const Item *at, uint32_t n, int64_t rank, bool *marked)
{
  for (uint32_t i = 0; i < n; i++) {
    int64_t axis = at[i].n < 0 && at[i].n >= -rank ? at[i].n + rank : at[i].n;
    if (axis < 0 || axis >= READ_RANK || (axis >= rank && rank >= 0) || marked[axis]) return false;
    marked[axis] = true;
  }
  return true;
}

/* The same number in another shape. */
static void give_filled(Reader *r, const Value *x, const Item *shape, uint32_t n)
{
  Item *to = arena_array(r->arena, Item, n + 1);
  for (uint32_t i = 0; i < n; i++) to[i] = shape[i];
  give_number(r, x->number, to, n);
}

/* Gives a value with the elements of x in the same order. A reshape of it becomes one of x. */
static void give_view(Reader *r, Value *x, const char *expression)
{
  give(r, expression);
  if (result(r, 0) && x->kind == VALUE_tensor) result(r, 0)->viewed = x->viewed ? x->viewed : x;
}

void read_unsqueeze(Reader *r)
{
  Value *x = in(r, 0);
  Item *at, *shape, to[2 * READ_RANK];
  uint32_t n, axes = 0, k = 0;
  bool marked[READ_RANK] = {0}, known = shape_of(r, x, &shape, &axes) && axes <= READ_RANK;
  if (read_rows(r)) return;
  if (!read_axes(r, 1, &at, &n)) return refuse(r, "with computed axes");
  if ((known && axes + n > READ_RANK) ||
      !mark_axes(at, n, known ? (int64_t)(axes + n) : -1, marked))
    return refuse(r, known ? "with axes that occur twice, are out of range or make more than 6"
                           : "with axes that occur twice, or are out of range or negative, of a "
                             "tensor without a stated shape");
  if (x->kind == VALUE_items && x->scalar && n == 1) return give_items(r, x->item, 1, false);
  const char *y = whole_ref(r, x);
  for (uint32_t i = 0; i < READ_RANK; i++)
    if (marked[i]) y = text(r, "%s.unsqueeze(%u)", y, i);
  for (uint32_t i = 0; known && i < axes + n; i++)
    to[i] = i < READ_RANK && marked[i] ? (Item){.n = 1} : shape[k++];
  if (known) give_shape(r, to, axes + n);
  if (known && x->kind == VALUE_number) return give_filled(r, x, to, axes + n);
  give_view(r, x, y);
}

void read_squeeze(Reader *r)
{
  Value *x = in(r, 0);
  Item *at, *shape, to[READ_RANK];
  uint32_t n, axes = 0, k = 0;
  bool listed = read_axes(r, 1, &at, &n),
       known = shape_of(r, x, &shape, &axes) && axes <= READ_RANK, marked[READ_RANK] = {0};
  if (x->kind == VALUE_items && x->n == 1) return give_items(r, x->item, 1, true);
  if (!listed && in(r, 1)) return refuse(r, "with computed axes");
  if (!listed) return give(r, text(r, "%s.squeeze()", whole_ref(r, x)));
  if (!mark_axes(at, n, known ? (int64_t)axes : -1, marked))
    return refuse(r, known ? "with axes that occur twice or are out of range"
                           : "with axes that occur twice, or are out of range or negative, of a "
                             "tensor without a stated shape");
  const char *y = whole_ref(r, x);
  for (uint32_t i = READ_RANK; i-- > 0;)
    if (marked[i]) y = text(r, "%s.squeeze(%u)", y, i);
  for (uint32_t i = 0; known && i < axes; i++)
    if (!marked[i]) to[k++] = shape[i];
  if (known) give_shape(r, to, k);
  if (known && x->kind == VALUE_number) return give_filled(r, x, to, k);
  give_view(r, x, y);
}

/* A size in terms of x, which the module at work has, if x has an axis of this size. */
static Item local_item(Reader *r, const Value *x, Item number)
{
  int64_t rank;
  if (!number.text || !rank_of(x, &rank)) return number;
  for (uint32_t i = 0; i < rank; i++)
    if (is_size(x, i, number)) return (Item){.text = text(r, "%s.size(%u)", whole_ref(r, x), i)};
  return number;
}

static bool has_shape(const Value *x, const Item *to, uint32_t n)
{
  int64_t rank;
  bool same = x->kind == VALUE_tensor && rank_of(x, &rank) && rank == n;
  for (uint32_t i = 0; same && i < n; i++) same = is_size(x, i, to[i]);
  return same;
}

/* Prints a reshape as x.flatten(k) or x.unflatten(k, ..) if it keeps the first k axes. */
static const char *kept_axes(Reader *r, const Value *x, const Item *to, uint32_t n)
{
  int64_t rank;
  uint32_t kept = 0;
  if (!rank_of(x, &rank)) return NULL;
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
  const OnnxNode *next = r->index + 1 < r->graph->n_node ? r->graph->node[r->index + 1] : NULL;
  bool read = next && next->op_type && strcmp(next->op_type, "PRelu") == 0 && next->n_input == 2;
  bool fits = is_weight(x) && x->tensor->n_dims == 1 && is_known(shape) && shape->n > 2 &&
              shape->item[0].n == 1;
  for (uint32_t i = 2; fits && i < shape->n; i++) fits = shape->item[i].n == 1;
  const Value *of = read ? value_named(r, next->input[0]) : NULL, *y = result(r, 0);
  int64_t rank;
  return fits && of && rank_of(of, &rank) && rank == shape->n && x->readers == 1 && y &&
         y->readers == 1 && value_named(r, next->input[1]) == y;
}

/* If exactly one size depends on the arguments, it is printed as -1. */
void read_reshape(Reader *r)
{
  Value *x = in(r, 0), *shape = in(r, 1);
  bool keeps = attr_number(r, "allowzero", 0) == 0; /* 0 keeps a size */
  if (!shape || shape->kind != VALUE_items) return refuse(r, "to a computed shape");
  if (read_matrix(r)) return;
  if (is_slope(r, x, shape)) return x->slopes = true, give_value(r, x);
  if (x->kind == VALUE_items && shape->n <= 1) return give_items(r, x->item, x->n, shape->n == 0);
  if (shape->n > READ_RANK) return refuse(r, "to more than 6 axes");
  if (x->kind == VALUE_number && is_known(shape)) {
    uint32_t open_axes = 0;
    for (uint32_t i = 0; i < shape->n; i++) open_axes += shape->item[i].n <= 0;
    if (open_axes == 0) return give_number(r, x->number, shape->item, shape->n);
  }
  Item *to = arena_array(r->arena, Item, shape->n + 1);
  uint32_t open = 0, at = 0;
  for (uint32_t i = 0; i < shape->n; i++) {
    to[i] = shape->item[i];
    if (!to[i].text && to[i].n == 0 && keeps) to[i] = item_of_size(r, x, i);
  }
  Item *stated = arena_array(r->arena, Item, shape->n + 1);
  for (uint32_t i = 0; i < shape->n; i++)
    stated[i] = !to[i].text && to[i].n == -1 ? (Item){.text = ""} : to[i];
  give_shape(r, stated, shape->n);
  while (x->viewed) x = x->viewed;
  if (has_shape(x, to, shape->n)) return give_value(r, x);
  const char *short_form = kept_axes(r, x, to, shape->n);
  if (short_form) return give_view(r, x, short_form);
  for (uint32_t i = 0; i < shape->n; i++) {
    bool batch = i == 0 && r->batch && !to[i].text && to[i].n == r->batch;
    if (batch && x->kind == VALUE_tensor && is_size(x, 0, to[i])) /* the file fixes its size */
      to[i].text = text(r, "%s.size(0)", ref(r, x));
    if (!to[i].text && to[i].n != -1) continue;
    open++;
    at = i;
  }
  for (uint32_t i = 0; i < shape->n; i++) to[i] = local_item(r, x, to[i]);
  if (open == 1) to[at] = (Item){.n = -1};
  give_view(r, x, text(r, "%s.reshape(%s)", whole_ref(r, x), list_text(r, to, shape->n)));
}

void read_flatten(Reader *r)
{
  int64_t axis = axis_of(in(r, 0), attr_number(r, "axis", 1)), rank;
  const char *x = whole_ref(r, in(r, 0));
  if (axis < 0) return refuse(r, "from an axis that is not known");
  if (axis == 0) return give(r, text(r, "%s.flatten().unsqueeze(0)", x));
  if (axis == 1 && (!rank_of(in(r, 0), &rank) || rank != 1))
    return give_view(r, in(r, 0), text(r, "%s.flatten(1)", x));
  if (!rank_of(in(r, 0), &rank)) return refuse(r, "of a tensor without a stated shape");
  if (axis == rank) return give(r, text(r, "%s.flatten().unsqueeze(1)", x));
  give(r, text(r, "%s.flatten(%" PRId64 ").flatten(0, %" PRId64 ")", x, axis, axis - 1));
}

/* The shape of x after broadcasting to `shape`. -1 keeps a size that is not known. */
static Item *expanded(Reader *r, const Value *x, const Value *shape, uint32_t *n)
{
  int64_t rank = 0, size;
  bool known = rank_of(x, &rank);
  *n = known && rank > shape->n ? (uint32_t)rank : shape->n;
  Item *to = arena_array(r->arena, Item, *n + 1);
  for (uint32_t i = 0; i < *n; i++) {
    int64_t own = (int64_t)i + rank - *n;
    bool beyond = i + shape->n < *n; /* an axis that only x has */
    to[i] = beyond ? (Item){.n = 1} : shape->item[i + shape->n - *n];
    if (!known || own < 0 || to[i].text || to[i].n != 1) continue;
    if (x->kind == VALUE_number)
      to[i] = x->item[own];
    else
      to[i].n = size_of(x, own, &size) ? size : -1;
  }
  return to;
}

void read_expand(Reader *r)
{
  Value *x = in(r, 0), *shape = in(r, 1);
  uint32_t n;
  if (!shape || shape->kind != VALUE_items || shape->n > READ_RANK)
    return refuse(r, "to a computed shape, or one of more than 6 axes");
  Item *to = expanded(r, x, shape, &n);
  if (x->kind == VALUE_number) return give_number(r, x->number, to, n);
  if (x->kind == VALUE_items && x->n == 1 && shape->n == 1 && is_known(shape) &&
      shape->item[0].n >= 0 && shape->item[0].n <= MOST_ITEMS) {
    Item *all = arena_array(r->arena, Item, MOST_ITEMS);
    for (int64_t i = 0; i < shape->item[0].n; i++) all[i] = x->item[0];
    return give_items(r, all, (uint32_t)shape->item[0].n, false);
  }
  bool whole = true; /* all sizes are known */
  int64_t rank;
  bool same = rank_of(x, &rank) && rank == n; /* nothing to do */
  for (uint32_t i = 0; i < n; i++) {
    same = same && ((!to[i].text && to[i].n == -1) || is_size(x, i, to[i]));
    whole = whole && (to[i].text || to[i].n != -1);
  }
  if (same) return give_value(r, x);
  if (whole) give_shape(r, to, n);
  for (uint32_t i = 0; i < n; i++) to[i] = local_item(r, x, to[i]);
  give(r, text(r, "%s.expand(%s)", whole_ref(r, x), list_text(r, to, n)));
}

/* Whether the node is a Transpose that one with the axes `to` undoes. */
static bool undoes(const OnnxNode *t, const Item *to, uint32_t n)
{
  const OnnxAttribute *a = t->n_attribute ? t->attribute[0] : NULL;
  bool all = a && a->n_ints == n && strcmp(t->op_type, "Transpose") == 0;
  for (uint32_t i = 0; all && i < n; i++)
    all = to[i].n >= 0 && to[i].n < n && a->ints[to[i].n] == (int64_t)i;
  return all;
}

void read_transpose(Reader *r)
{
  Value *x = in(r, 0);
  if (read_matrix(r)) return;
  Item *to;
  uint32_t n;
  if (!attr_list(r, "perm", &to, &n)) {
    int64_t rank;
    if (!rank_of(x, &rank)) return refuse(r, "of a tensor without a stated shape");
    for (n = 0; n < rank; n++) to[n].n = rank - 1 - n;
  }
  if (is_weight(x) && x->tensor->n_dims == 2 && n == 2 && to[0].n == 1 && to[1].n == 0) {
    Value *v = result(r, 0);
    if (!v) return;
    v->kind = VALUE_weight;
    v->tensor = x->tensor;
    v->turned = x;
    return;
  }
  Item *shape, turned[READ_RANK];
  uint32_t moved = 0, first = 0, second = 0, axes;
  bool known = shape_of(r, x, &shape, &axes) && axes == n && n <= READ_RANK;
  for (uint32_t i = 0; known && i < n; i++) {
    if (to[i].n < 0 || to[i].n >= n) return refuse(r, "with a perm that is out of range");
    turned[i] = shape[to[i].n];
  }
  if (known) give_shape(r, turned, n);
  if (known && x->kind == VALUE_number) return give_filled(r, x, turned, n);
  for (uint32_t i = 0; i < n; i++) {
    if (to[i].n == i) continue;
    if (moved++ == 0) first = i;
    second = i;
  }
  if (moved == 0) return give_value(r, x);
  const OnnxNode *made = x->kind == VALUE_tensor ? x->maker : NULL;
  Value *from = made && undoes(made, to, n) ? value_named(r, made->input[0]) : NULL;
  if (from) return give_value(r, from);
  if (moved == 2) return give(r, text(r, "%s.transpose(%u, %u)", whole_ref(r, x), first, second));
  give(r, text(r, "%s.permute(%s)", whole_ref(r, x), list_text(r, to, n)));
}
