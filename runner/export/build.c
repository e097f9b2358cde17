/* Builds an ONNX graph. */
#include "build.h"
#include <string.h>
#include "compiler/base/names.h"
#include "runtime/base/convert.h"
#include "runtime/plan/types.h"

int32_t onnx_type(DType d)
{
  switch (d) {
  case AMPC_F32:
    return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
  case AMPC_F16:
    return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
  case AMPC_BF16:
    return ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
  case AMPC_I32:
    return ONNX__TENSOR_PROTO__DATA_TYPE__INT32;
  case AMPC_I64:
    return ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
  case AMPC_U8:
    return ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
  case AMPC_BOOL:
    return ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
  default:
    return ONNX__TENSOR_PROTO__DATA_TYPE__UNDEFINED;
  }
}

OnnxBuild *build_begin(Arena *arena, OnnxBuild *outer)
{
  OnnxBuild *b = arena_new(arena, OnnxBuild);
  *b = (OnnxBuild){.arena = arena, .scope = outer ? outer->scope : ""};
  b->count = outer ? outer->count : arena_new(arena, uint32_t);
  return b;
}

const char *build_name(OnnxBuild *b, const char *stem)
{
  return arena_printf(b->arena, "%s%s%s_%u", b->scope, *b->scope ? "/" : "", stem, ++*b->count);
}

static char **names(Arena *a, const char *const *list, size_t *n)
{
  *n = 0;
  while (list && list[*n]) ++*n;
  char **copy = arena_array(a, char *, *n + 1);
  for (size_t i = 0; i < *n; i++) copy[i] = arena_strdup(a, list[i]);
  return copy;
}

static OnnxAttribute *attribute(Arena *a, const OnnxAttr *from)
{
  OnnxAttribute *to = arena_new(a, OnnxAttribute);
  onnx__attribute_proto__init(to);
  to->name = arena_strdup(a, from->name);
  to->has_type = true;
  to->type = from->type;
  switch (from->type) {
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
    to->has_i = true;
    to->i = from->i;
    break;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
    to->has_f = true;
    to->f = (float)from->f;
    break;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
    to->has_s = true;
    to->s = (ProtobufCBinaryData){strlen(from->s), (uint8_t *)arena_strdup(a, from->s)};
    break;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
    to->n_ints = from->n;
    to->ints = arena_array(a, int64_t, from->n + 1);
    memcpy(to->ints, from->ints, from->n * sizeof *to->ints);
    break;
  default:
    /* protobuf-c's fields are not const, but it only reads a message that it writes. */
    to->g = (OnnxGraph *)(uintptr_t)from->g;
  }
  return to;
}

void build_results(OnnxBuild *b, const char *op, const char *const *in, const char *const *out,
                   const OnnxAttr *attrs)
{
  OnnxNode *n = arena_new(b->arena, OnnxNode);
  onnx__node_proto__init(n);
  n->op_type = arena_strdup(b->arena, op);
  n->input = names(b->arena, in, &n->n_input);
  n->output = names(b->arena, out, &n->n_output);
  n->name = n->output[0];
  while (attrs && attrs[n->n_attribute].name) n->n_attribute++;
  n->attribute = arena_array(b->arena, OnnxAttribute *, n->n_attribute + 1);
  for (size_t i = 0; i < n->n_attribute; i++) n->attribute[i] = attribute(b->arena, &attrs[i]);
  vec_push(b->arena, &b->nodes, n);
}

const char *build_node(OnnxBuild *b, const char *op, const char *const *in, const OnnxAttr *attrs)
{
  const char *out = build_name(b, op);
  build_results(b, op, in, (const char *const[]){out, NULL}, attrs);
  return out;
}

/* ---- constants ---- */

void build_tensor(OnnxBuild *b, const char *name, DType type, const int64_t *dim, uint32_t rank,
                  const void *at, size_t bytes)
{
  OnnxTensor *t = arena_new(b->arena, OnnxTensor);
  onnx__tensor_proto__init(t);
  t->name = arena_strdup(b->arena, name);
  t->has_data_type = true;
  t->data_type = onnx_type(type);
  t->n_dims = rank;
  t->dims = arena_array(b->arena, int64_t, rank + 1);
  if (rank) memcpy(t->dims, dim, rank * sizeof *dim);
  t->has_raw_data = true;
  /* As in attribute(), protobuf-c only reads the bytes. */
  t->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)at};
  vec_push(b->arena, &b->tensors, t);
}

const char *build_ints(OnnxBuild *b, const int64_t *at, uint32_t n)
{
  const char *name = build_name(b, "Ints");
  int64_t *copy = arena_array(b->arena, int64_t, n + 1);
  memcpy(copy, at, n * sizeof *copy);
  build_tensor(b, name, AMPC_I64, &(int64_t){n}, 1, copy, n * sizeof *copy);
  return name;
}

const char *build_int(OnnxBuild *b, int64_t v)
{
  return build_ints(b, &v, 1);
}

const char *build_number(OnnxBuild *b, DType type, double v)
{
  const char *name = build_name(b, "Number");
  void *at = arena_alloc(b->arena, sizeof v, sizeof v);
  number_store(type, false, at, 0, v);
  build_tensor(b, name, type, NULL, 0, at, (size_t)ampc_size_of(type, false));
  return name;
}

/* ---- arguments and results ---- */

void build_value(OnnxBuild *b, bool is_input, const char *name, DType type, const int64_t *dim,
                 const char *const *dim_name, uint32_t rank)
{
  Arena *a = b->arena;
  OnnxValueInfo *v = arena_new(a, OnnxValueInfo);
  Onnx__TypeProto *of = arena_new(a, Onnx__TypeProto);
  Onnx__TypeProto__Tensor *tensor = arena_new(a, Onnx__TypeProto__Tensor);
  Onnx__TensorShapeProto *shape = arena_new(a, Onnx__TensorShapeProto);
  onnx__value_info_proto__init(v);
  onnx__type_proto__init(of);
  onnx__type_proto__tensor__init(tensor);
  onnx__tensor_shape_proto__init(shape);
  v->name = arena_strdup(a, name);
  v->type = of;
  of->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  of->tensor_type = tensor;
  tensor->has_elem_type = true;
  tensor->elem_type = onnx_type(type);
  if (rank == NO_RANK)
    rank = 0;
  else
    tensor->shape = shape;
  shape->n_dim = rank;
  shape->dim = arena_array(a, Onnx__TensorShapeProto__Dimension *, rank + 1);
  for (uint32_t i = 0; i < rank; i++) {
    Onnx__TensorShapeProto__Dimension *d = arena_new(a, Onnx__TensorShapeProto__Dimension);
    onnx__tensor_shape_proto__dimension__init(d);
    if (dim_name && dim_name[i]) {
      d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
      d->dim_param = arena_strdup(a, dim_name[i]);
    } else {
      d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
      d->dim_value = dim[i];
    }
    shape->dim[i] = d;
  }
  if (is_input)
    vec_push(a, &b->inputs, v);
  else
    vec_push(a, &b->outputs, v);
}

/* ---- what is needed ---- */

typedef struct Needed {
  NameVec names;
  NameIndex index;
} Needed;

static bool is_needed(Arena *a, Needed *x, const char *name)
{
  return name_find(a, &x->index, x->names.at, x->names.n, sizeof *x->names.at, name) != NO_NAME;
}

static void need(Arena *a, Needed *x, const char *name)
{
  if (*name && !is_needed(a, x, name)) vec_push(a, &x->names, name);
}

static void need_inputs(Arena *a, Needed *x, const OnnxNode *n)
{
  for (size_t i = 0; i < n->n_input; i++) need(a, x, n->input[i]);
  for (size_t i = 0; i < n->n_attribute; i++) {
    const OnnxGraph *body = n->attribute[i]->g;
    for (size_t k = 0; body && k < body->n_node; k++) need_inputs(a, x, body->node[k]);
  }
}

void build_prune(OnnxBuild *b)
{
  Needed x = {0};
  uint32_t kept = b->nodes.n, tensors = 0;
  for (uint32_t i = 0; i < b->outputs.n; i++) need(b->arena, &x, b->outputs.at[i]->name);
  for (uint32_t i = b->nodes.n; i-- > 0;) {
    OnnxNode *n = b->nodes.at[i];
    bool used = false;
    for (size_t k = 0; k < n->n_output; k++) used = used || is_needed(b->arena, &x, n->output[k]);
    if (used) need_inputs(b->arena, &x, n);
    if (used) b->nodes.at[--kept] = n;
  }
  b->nodes.at += kept;
  b->nodes.n -= kept;
  for (uint32_t i = 0; i < b->tensors.n; i++)
    if (is_needed(b->arena, &x, b->tensors.at[i]->name))
      b->tensors.at[tensors++] = b->tensors.at[i];
  b->tensors.n = tensors;
}

OnnxGraph *build_end(OnnxBuild *b, const char *name)
{
  OnnxGraph *g = arena_new(b->arena, OnnxGraph);
  onnx__graph_proto__init(g);
  g->name = arena_strdup(b->arena, name);
  g->node = b->nodes.at;
  g->n_node = b->nodes.n;
  g->initializer = b->tensors.at;
  g->n_initializer = b->tensors.n;
  g->input = b->inputs.at;
  g->n_input = b->inputs.n;
  g->output = b->outputs.at;
  g->n_output = b->outputs.n;
  return g;
}
