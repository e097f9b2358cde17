/* Reads an ONNX graph into values, steps and members. */
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
static Value *named(Reader *r, const char *name)
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
  return i.text ? i.text : text(r, "%" PRId64, i.n);
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

const char *pair_text(const Reader *r, const Item *at, uint32_t n)
{
  bool same = n > 0;
  for (uint32_t i = 0; i < n; i++) same = same && !at[i].text && at[i].n == at[0].n;
  return same ? item_text(r, at[0]) : text(r, "[%s]", list_text(r, at, n));
}

static const char *items_text(Reader *r, const Value *v)
{
  const char *type = v->type && !onnx_is_float(v->type) ? type_word(v->type) : NULL;
  if (v->n == 0) refuse(r, "with a constant without elements");
  if (v->printed) return v->printed;
  if (!type) type = "i64";
  if (v->scalar && *type == 'b') return v->item[0].n ? "true" : "false";
  if (v->scalar) return item_text(r, v->item[0]);
  return text(r, "tensor([%s], dtype=%s)", list_text(r, v->item, v->n), type);
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

void give_items(Reader *r, Item *at, uint32_t n, bool scalar)
{
  Value *v = result(r, 0);
  if (!v) return;
  v->kind = VALUE_items;
  v->item = at;
  v->n = n;
  v->scalar = scalar;
}

void give_number(Reader *r, double number, Item *shape, uint32_t n)
{
  Value *v = result(r, 0);
  if (!v) return;
  v->kind = VALUE_number;
  v->number = number;
  v->item = shape;
  v->n = n;
  v->scalar = n == 0;
  for (uint32_t i = 0; i < n; i++)
    if (!shape[i].text && (shape[i].n < 0 || shape[i].n > MOST_SIZE))
      refuse(r, "of a constant with a negative size or one above 2^31");
}

void give_value(Reader *r, const Value *from)
{
  Value *v = result(r, 0);
  if (!v) return;
  Value *to = r->values.at[from->id];
  if (!to->shape) to->shape = v->shape;
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

const char *attr_word(Reader *r, const char *name, const char *missing)
{
  const OnnxAttribute *a = attribute(r, name);
  if (!a || !a->has_s) return missing;
  return arena_strndup(r->arena, (const char *)a->s.data, a->s.len);
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

bool rank_of(const Value *v, int64_t *out)
{
  if (v->kind == VALUE_weight)
    *out = (int64_t)v->tensor->n_dims;
  else if (v->kind == VALUE_items)
    *out = v->scalar ? 0 : 1;
  else if (v->kind == VALUE_parts || v->kind == VALUE_unread)
    return false;
  else if (v->kind != VALUE_tensor)
    *out = v->n;
  else if (v->shape)
    *out = (int64_t)v->shape->n_dim;
  else
    return false;
  return true;
}

bool size_of(const Value *v, int64_t axis, int64_t *out)
{
  int64_t rank;
  if (!rank_of(v, &rank)) return false;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  if (v->kind == VALUE_weight)
    *out = v->tensor->dims[v->turned ? rank - 1 - axis : axis];
  else if (v->kind == VALUE_items)
    *out = v->n;
  else if (v->kind != VALUE_tensor)
    *out = v->item[axis].n;
  if (v->kind == VALUE_weight || v->kind == VALUE_items) return true;
  if (v->kind != VALUE_tensor) return !v->item[axis].text;
  *out = v->shape->dim[axis]->dim_value;
  bool stated =
      v->shape->dim[axis]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
  return stated && *out >= 0 && *out <= MOST_SIZE;
}

Item item_of_size(Reader *r, const Value *v, int64_t axis)
{
  int64_t n;
  if (size_of(v, axis, &n)) return (Item){.n = n};
  return (Item){.text = text(r, "%s.size(%" PRId64 ")", ref(r, v), axis), .dim = dim_name(v, axis)};
}

const char *dim_name(const Value *v, int64_t axis)
{
  int64_t rank;
  if (v->kind != VALUE_tensor || !v->shape || !rank_of(v, &rank)) return NULL;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return NULL;
  const char *name = v->shape->dim[axis]->dim_param;
  bool named =
      v->shape->dim[axis]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
  return named && name && *name ? name : NULL;
}

/* ---- the graph ---- */

/* Whether the constant is a small integer tensor, whose numbers are read now. */
static bool are_items(const OnnxTensor *t)
{
  bool whole = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ||
               t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT32 ||
               t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
  return whole && t->n_dims <= 1 && tensor_elements(t) <= MOST_ITEMS;
}

bool is_filled(const OnnxTensor *t)
{
  int64_t n = tensor_elements(t), i = 1;
  while (i < n && tensor_real(t, i) == tensor_real(t, 0)) i++;
  return n > 0 && i >= n;
}

void read_constant(Reader *r, Value *v, const OnnxTensor *t)
{
  v->tensor = t;
  v->tensor_kind = kind_of_tensor(r, v);
  v->type = t->data_type;
  v->kind = VALUE_weight;
  v->scalar = t->n_dims == 0;
  if (are_items(t)) {
    v->kind = VALUE_items;
    v->n = (uint32_t)tensor_elements(t);
    v->item = arena_array(r->arena, Item, v->n + 1);
    for (uint32_t i = 0; i < v->n; i++) v->item[i].n = tensor_int(t, i);
    return;
  }
  if (!onnx_is_float(t->data_type) || v->tensor_kind != TENSOR_constant) return;
  if (!r->node || !is_filled(t)) vec_push(r->arena, &r->constants, v->name);
  if (is_filled(t)) {
    v->kind = VALUE_number;
    v->number = tensor_real(t, 0);
    v->n = (uint32_t)t->n_dims;
    v->item = arena_array(r->arena, Item, v->n + 1);
    for (uint32_t i = 0; i < v->n; i++) v->item[i].n = t->dims[i];
  }
}

static ampc_status damaged(const Reader *r, const char *what, const char *name)
{
  char shown[200];
  return ampc_fail(AMPC_BAD_FILE, "%s is damaged: %s %s", r->path, what,
                   ampc_show(shown, sizeof shown, name ? name : "", ""));
}

static void read_value_info(Reader *r, const OnnxValueInfo *info)
{
  if (!info->name || !info->type || !info->type->tensor_type) return;
  Value *v = named(r, info->name);
  v->type = info->type->tensor_type->elem_type;
  v->shape = info->type->tensor_type->shape;
  if (v->shape && v->shape->n_dim > READ_RANK) v->shape = NULL;
}

static ampc_status read_declared(Reader *r)
{
  const OnnxGraph *g = r->graph;
  for (size_t i = 0; i < g->n_value_info; i++) read_value_info(r, g->value_info[i]);
  for (size_t i = 0; i < g->n_output; i++) read_value_info(r, g->output[i]);
  for (size_t i = 0; i < g->n_initializer; i++) {
    OnnxTensor *t = g->initializer[i];
    if (!t->name || !*t->name) return damaged(r, "a tensor has", "no name");
    Value *v = named(r, t->name);
    if (v->kind != VALUE_unread) return damaged(r, "two tensors are called", t->name);
    ampc_status status = tensor_load(r, t);
    if (status) return status;
    read_constant(r, v, t);
  }
  for (size_t i = 0; i < g->n_input; i++) {
    read_value_info(r, g->input[i]);
    Value *v = g->input[i]->name ? named(r, g->input[i]->name) : NULL;
    if (!v || v->kind != VALUE_unread) continue; /* old files list tensors here, too */
    v->kind = VALUE_tensor;
    v->argument = true;
    if (!v->shape || !type_word(v->type))
      return damaged(r, "no shape, or no type that jobs have, is stated for argument", v->name);
    vec_push(r->arena, &r->arguments, v);
  }
  int64_t n;
  if (r->arguments.n && size_of(r->arguments.at[0], 0, &n)) r->batch = n;
  return AMPC_OK;
}

/* Whether all inputs are read. *missing: an input without a maker, or NULL. */
static bool inputs_read(Reader *r, const char **missing)
{
  bool all = true;
  *missing = NULL;
  for (size_t i = 0; i < r->node->n_input; i++) {
    const char *name = r->node->input[i];
    const Value *v = value_named(r, name);
    if (name && *name && (!v || (v->kind == VALUE_unread && !v->maker))) *missing = name;
    all = all && (!v || v->kind != VALUE_unread);
  }
  return all;
}

static ampc_status read_node(Reader *r)
{
  const char *missing;
  bool ready = inputs_read(r, &missing);
  if (missing) return damaged(r, "no earlier node has the result", missing);
  for (size_t i = 0; i < r->node->n_output; i++) {
    const char *name = r->node->output[i];
    if (!name || !*name) continue;
    Value *v = named(r, name);
    if (v->maker || v->kind != VALUE_unread) return damaged(r, "two nodes have the result", name);
    v->maker = r->node;
  }
  if (!ready) return AMPC_OK; /* the node that it needs has been refused */
  r->dropped = false;
  r->scopes = (Scopes){0};
  r->asked_inputs = r->asked_attributes = 0;
  r->place = scope_path(r);
  uint32_t steps = r->steps.n;
  read_op(r);
  if (r->dropped) r->steps.n = steps;
  return AMPC_OK;
}

static void count_readers(Reader *r)
{
  const OnnxGraph *g = r->graph;
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_input; k++)
      if (g->node[i]->input[k] && *g->node[i]->input[k]) named(r, g->node[i]->input[k])->readers++;
  for (size_t i = 0; i < g->n_output; i++)
    if (g->output[i]->name) named(r, g->output[i]->name)->readers++;
}

/* A step that computes a result that is a constant. */
static Value *constant_result(Reader *r, const Value *v)
{
  Value *y = between(r, whole_ref(r, v));
  y->name = v->name;
  y->type = v->type;
  y->shape = v->shape;
  return y;
}

static ampc_status read_graph(Reader *r)
{
  count_readers(r);
  ampc_status status = read_declared(r);
  for (size_t i = 0; i < r->graph->n_node && !status; i++) {
    r->node = r->graph->node[i];
    r->index = i;
    if (!r->node->op_type) return damaged(r, "a node has", "no operator");
    status = read_node(r);
  }
  for (size_t i = 0; i < r->graph->n_output && !status; i++) {
    const char *name = r->graph->output[i]->name;
    Value *v = value_named(r, name);
    if (!v || (v->kind == VALUE_unread && !v->maker))
      return damaged(r, "no node has the result", name);
    bool constant = v->kind != VALUE_tensor && v->kind != VALUE_unread;
    if (constant && !r->node) return damaged(r, "no node at all; a constant is the result", name);
    if (constant) v = constant_result(r, v);
    vec_push(r->arena, &r->results, v);
  }
  return status;
}

ampc_status read_model(Reader *r, Arena *arena, const OnnxModel *model, const char *path,
                       const char *folder, const char *trained)
{
  *r = (Reader){.arena = arena,
                .model = model,
                .graph = model->graph,
                .path = path,
                .folder = folder,
                .opset = 1};
  r->names.arena = r->paths.arena = r->counts.arena = r->listed.arena = r->cells.arena = arena;
  r->places.arena = r->trained.arena = arena;
  ampc_status status = name_trained(r, trained);
  if (status) return status;
  list_tensors(r);
  find_places(r);
  for (size_t i = 0; i < model->n_opset_import; i++) {
    const Onnx__OperatorSetIdProto *set = model->opset_import[i];
    if (!set->domain || !*set->domain || strcmp(set->domain, "ai.onnx") == 0)
      r->opset = set->version;
  }
  return read_graph(r);
}
