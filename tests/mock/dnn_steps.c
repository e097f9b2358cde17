/* Graphs that are no convolution, one operation after the other: products, reductions, pointwise
 * operations, reshapes. Each tensor is an array of floats with its strides, rounded to its type
 * when it is computed. Sums run from the last element to the first. As it seems that cuDNN does, a
 * product that is written to memory drops a factor that is passed by value. The mock does not know
 * the other limits of cuDNN's engines; tests/cudnn queries the real library.
 *   MOCK_DNN_LATE=1       the last factor before a subtraction follows it: a wrong graph */
#include "dnn.h"
#include "runtime/base/convert.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static DnnStatus bad(const char *what)
{
  return mock_refuse(DNN_BAD_PARAM, "cudnn: %s", what);
}

/* Returns the tensor's index, found by its number; -1 if the operation has no such tensor. */
static int tensor_index(Steps *s, const Descriptor *operation, DnnAttribute what)
{
  const Descriptor *d = dnn_named(operation, what);
  if (!d) return -1;
  Tensor t = dnn_tensor_of(d);
  for (int i = 0; i < s->n_tensors; i++)
    if (s->tensor[i].number == t.number) return i;
  if (s->n_tensors == DNN_TENSORS) mock_misuse("cudnn: more tensors than the mock has room for");
  s->tensor[s->n_tensors] = t;
  return s->n_tensors++;
}

static bool read_operation(const Descriptor *d, Steps *s, Operation *out)
{
  const Descriptor *how;
  *out = (Operation){.kind = d->kind, .x = -1, .b = -1, .t = -1, .y = -1};
  switch (d->kind) {
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    how = dnn_named(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    out->mode = dnn_integer(how, CUDNN_ATTR_POINTWISE_MODE);
    out->axis = dnn_integer(how, CUDNN_ATTR_POINTWISE_AXIS);
    out->x = tensor_index(s, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    out->b = tensor_index(s, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    out->t = tensor_index(s, d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    out->y = tensor_index(s, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    return true;
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    out->x = tensor_index(s, d, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    out->b = tensor_index(s, d, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    out->y = tensor_index(s, d, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    return true;
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    how = dnn_named(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    out->mode = dnn_integer(how, CUDNN_ATTR_REDUCTION_OPERATOR);
    out->x = tensor_index(s, d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    out->y = tensor_index(s, d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    return true;
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    out->x = tensor_index(s, d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    out->y = tensor_index(s, d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    return true;
  default:
    return false;
  }
}

static bool is_pointwise(const Operation *o)
{
  return o->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
}

/* True if x has the dims of y, or 1 where its value is repeated. */
static bool spreads(const Tensor *x, const Tensor *y)
{
  bool good = x->n == y->n;
  for (int64_t i = 0; good && i < y->n; i++) good = x->dim[i] == y->dim[i] || x->dim[i] == 1;
  return good;
}

static bool multiply_fits(const Tensor *a, const Tensor *b, const Tensor *c)
{
  int64_t m = c->n - 2, n = c->n - 1;
  bool good = a->n == c->n && b->n == c->n && a->dim[m] == c->dim[m] && a->dim[n] == b->dim[m] &&
              b->dim[n] == c->dim[n];
  for (int64_t i = 0; good && i < m; i++) good = a->dim[i] == c->dim[i] && b->dim[i] == c->dim[i];
  return good;
}

static bool operation_fits(const Steps *s, const Operation *o)
{
  const Tensor *x = &s->tensor[o->x], *y = &s->tensor[o->y];
  const Tensor *b = o->b < 0 ? NULL : &s->tensor[o->b], *t = o->t < 0 ? NULL : &s->tensor[o->t];
  switch (o->kind) {
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    return multiply_fits(x, b, y);
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    return spreads(y, x);
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    return tensor_bytes(x) / ampc_dtype_size(x->type) == tensor_bytes(y) / ampc_dtype_size(y->type);
  default:
    return spreads(x, y) && (!b || spreads(b, y)) && (!t || spreads(t, y));
  }
}

/* Swaps the last adjacent "x times a number" and "minus b". */
static void delay_factor(Steps *s)
{
  for (int i = s->n_operations - 1; i-- > 0;) {
    Operation *o = &s->operation[i], *next = o + 1, first = *o;
    if (o->mode != CUDNN_POINTWISE_MUL || !is_pointwise(o) || !s->tensor[o->b].by_value) continue;
    if (next->mode != CUDNN_POINTWISE_SUB || !is_pointwise(next) || next->x != o->y) continue;
    o->mode = next->mode, o->b = next->b;
    next->mode = first.mode, next->b = first.b;
    return;
  }
}

DnnStatus steps_read(const Descriptor *graph, Steps *out)
{
  int64_t n;
  Descriptor *const *operations = dnn_values(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &n);
  memset(out, 0, sizeof *out); /* clears padding too, because the bytes are saved */
  for (int64_t i = 0; i < n; i++) {
    Operation *o = &out->operation[out->n_operations++];
    if (!read_operation(operations[i], out, o)) return bad("an operation that the mock has not");
    if (!operation_fits(out, o)) return bad("sizes of an operation that do not go together");
  }
  if (mock_setting("MOCK_DNN_LATE", 0)) delay_factor(out);
  return CUDNN_STATUS_SUCCESS;
}

/* ---- numbers ---- */

typedef struct Values { /* the values of a tensor, with its strides */
  float *at;
  int64_t n;
} Values;

static float *element(const Steps *s, const Values *v, int tensor, const int64_t *index)
{
  const Tensor *t = &s->tensor[tensor];
  int64_t at = 0;
  for (int64_t i = 0; i < t->n; i++) at += t->dim[i] == 1 ? 0 : index[i] * t->stride[i];
  return &v[tensor].at[at];
}

/* Advances to the next index of t's elements, last axis first. Returns false after the last one. */
static bool next(const Tensor *t, int64_t *index)
{
  for (int64_t i = t->n; i-- > 0;) {
    if (++index[i] < t->dim[i]) return true;
    index[i] = 0;
  }
  return false;
}

static float rounded(ampc_dtype type, float x)
{
  uint32_t bits = 0;
  if (type == AMPC_F32) return x;
  convert_narrow(type, &x, &bits, 1);
  convert_widen(type, &bits, &x, 1);
  return x;
}

static float pointwise(const Operation *o, float x, float b, float t, const int64_t *index)
{
  switch (o->mode) {
  case CUDNN_POINTWISE_ADD:
    return x + b;
  case CUDNN_POINTWISE_SUB:
    return x - b;
  case CUDNN_POINTWISE_MUL:
    return x * b;
  case CUDNN_POINTWISE_DIV:
    return x / b;
  case CUDNN_POINTWISE_EXP:
    return expf(x);
  case CUDNN_POINTWISE_LOG:
    return logf(x);
  case CUDNN_POINTWISE_GEN_INDEX:
    return (float)index[o->axis];
  case CUDNN_POINTWISE_CMP_GE:
    return x >= b;
  case CUDNN_POINTWISE_CMP_LT:
    return x < b;
  case CUDNN_POINTWISE_LOGICAL_AND:
    return x != 0 && b != 0;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return t != 0 ? x : b;
  default:
    mock_misuse("cudnn: a pointwise operation that the mock has not: %d", (int)o->mode);
  }
}

static void run_pointwise(const Steps *s, const Values *v, const Operation *o)
{
  const Tensor *y = &s->tensor[o->y];
  bool drops = o->mode == CUDNN_POINTWISE_MUL && !y->is_virtual && s->tensor[o->b].by_value;
  int64_t index[DNN_DIMS] = {0};
  do {
    float x = *element(s, v, o->x, index);
    float b = o->b < 0 ? 0 : drops ? 1 : *element(s, v, o->b, index);
    float t = o->t < 0 ? 0 : *element(s, v, o->t, index);
    *element(s, v, o->y, index) = rounded(y->type, pointwise(o, x, b, t, index));
  } while (next(y, index));
}

/* Multiplies. Rounds an f32 operand if the other one has 16 bits: tensor cores need one type. */
static void run_product(const Steps *s, const Values *v, const Operation *o)
{
  const Tensor *a = &s->tensor[o->x], *b = &s->tensor[o->b], *c = &s->tensor[o->y];
  int64_t m = c->n - 2, n = c->n - 1, index[DNN_DIMS] = {0};
  do {
    int64_t left[DNN_DIMS], right[DNN_DIMS];
    memcpy(left, index, sizeof left);
    memcpy(right, index, sizeof right);
    left[n] = right[m] = 0;
    const float *x = element(s, v, o->x, left), *y = element(s, v, o->b, right);
    float sum = 0;
    for (int64_t k = a->dim[n]; k-- > 0;)
      sum += rounded(b->type, x[k * a->stride[n]]) * rounded(a->type, y[k * b->stride[m]]);
    *element(s, v, o->y, index) = rounded(c->type, sum);
  } while (next(c, index));
}

static void run_reduction(const Steps *s, const Values *v, const Operation *o)
{
  const Tensor *x = &s->tensor[o->x];
  bool most = o->mode == CUDNN_REDUCE_TENSOR_MAX;
  int64_t index[DNN_DIMS] = {0};
  for (int64_t i = 0; i < v[o->y].n; i++) v[o->y].at[i] = most ? -INFINITY : 0;
  do {
    float *y = element(s, v, o->y, index), e = *element(s, v, o->x, index);
    *y = most ? fmaxf(*y, e) : *y + e;
  } while (next(x, index));
}

/* Copies the floats in order; only dims and strides differ. */
static void run_reshape(const Steps *s, const Values *v, const Operation *o)
{
  for (int64_t i = 0; i < v[o->y].n; i++)
    v[o->y].at[i] = rounded(s->tensor[o->y].type, v[o->x].at[i]);
}

static void run_operation(const Steps *s, const Values *v, const Operation *o)
{
  switch (o->kind) {
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    run_product(s, v, o);
    break;
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    run_reduction(s, v, o);
    break;
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    run_reshape(s, v, o);
    break;
  default:
    run_pointwise(s, v, o);
  }
}

/* ---- a call ---- */

static void *bytes_of(const StepsCall *call, int tensor)
{
  const Tensor *t = &call->steps->tensor[tensor];
  return mock_device_bytes(call->place[tensor].at, (size_t)tensor_bytes(t), "operand of cuDNN");
}

static bool load(const StepsCall *call, Values *v, int tensor)
{
  const Tensor *t = &call->steps->tensor[tensor];
  v->n = tensor_bytes(t) / ampc_dtype_size(t->type);
  v->at = calloc((size_t)v->n, sizeof *v->at);
  if (!v->at) mock_misuse("out of memory for an operation");
  if (t->by_value) v->at[0] = call->place[tensor].number;
  if (t->by_value || t->is_virtual) return true;
  const void *bytes = bytes_of(call, tensor);
  if (!bytes) return false;
  if (t->type != AMPC_I32) convert_widen(t->type, bytes, v->at, v->n);
  for (int64_t i = 0; t->type == AMPC_I32 && i < v->n; i++)
    v->at[i] = (float)((const int32_t *)bytes)[i];
  return true;
}

/* Returns a result as a faulty version stores it. */
static float harmed(DnnHarm harm, float x)
{
  static unsigned calls;
  if (harm == HARM_nan) return NAN;
  return harm == HARM_unsteady ? x * (1 + 0x1p-6f * (float)(++calls % 7)) : x;
}

/* Stores single elements: the bytes between them belong to other tensors. */
static void store(const StepsCall *call, const Values *v, int tensor, DnnHarm harm)
{
  const Tensor *t = &call->steps->tensor[tensor];
  int64_t index[DNN_DIMS] = {0};
  char *bytes = bytes_of(call, tensor);
  do {
    float *from = element(call->steps, v, tensor, index);
    *from = harmed(harm, *from);
    convert_narrow(t->type, from, bytes + (from - v[tensor].at) * ampc_dtype_size(t->type), 1);
  } while (next(t, index));
}

CuResult steps_run(const void *data)
{
  StepsCall call;
  memcpy(&call, data, sizeof call);
  const Steps *s = call.steps;
  Values v[DNN_TENSORS] = {{0}};
  DnnHarm harm = dnn_harm(s);
  bool good = harm != HARM_breaks_in_graphs || !mock_repeating;
  for (int i = 0; i < s->n_tensors && good; i++) good = load(&call, &v[i], i);
  for (int i = 0; i < s->n_operations && good; i++) {
    int y = s->operation[i].y;
    run_operation(s, v, &s->operation[i]);
    if (!s->tensor[y].is_virtual) store(&call, v, y, harm);
  }
  for (int i = 0; i < s->n_tensors; i++) free(v[i].at);
  mock_add(COUNT_graphs_run, 1);
  return good ? CUDA_SUCCESS : MOCK_ILLEGAL_ADDRESS;
}
