/* A convolution as cuDNN's graph of operations, in one of two forms.
 *
 * Note [forms]
 * DIRECT is the convolution alone, with beta = 1 if it adds to a gradient. All its tensors have one
 * type. JOINED has a second operation, which adds the bias or the old gradient. The first passes
 * its sums to the second in f32, but not in memory. So an f32 gradient from 16-bit images is
 * summed in f32 and never rounded to 16 bits; DIRECT has no engine for that. The gradient is read
 * and written in place, each element by the thread that owns it.
 *
 * cuDNN's dims are always [n, c, spatial..]; strides express that images and weights are channels
 * last. It supports two or three spatial dimensions. One dimension becomes two, of which the first
 * is 1. */
#include "cudnn_graph.h"
#include <stdio.h>
#include "runtime/plan/conv_sizes.h"
#include "runtime/plan/types.h"

/* Numbers of the tensors. OLD is the gradient before the addition; SUM is not in memory. */
enum { X = 1, W, Y, BIAS, SUM, OLD };

/* ---- descriptors ---- */

static bool failed(DnnObjects *o, DnnStatus status)
{
  if (o->status == CUDNN_STATUS_SUCCESS) o->status = status;
  return o->status != CUDNN_STATUS_SUCCESS;
}

DnnDescriptor dnn_make(DnnObjects *o, DnnKind kind, const char *what)
{
  DnnDescriptor d = NULL;
  if (o->status) return NULL;
  o->what = what;
  if (failed(o, o->api->cudnnBackendCreateDescriptor(kind, &d))) return NULL;
  return o->made[o->n++] = d;
}

void dnn_set(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute, DnnType type, int64_t n,
             const void *values)
{
  if (!o->status) failed(o, o->api->cudnnBackendSetAttribute(d, attribute, type, n, values));
}

void dnn_finalize(DnnObjects *o, DnnDescriptor d)
{
  if (!o->status) failed(o, o->api->cudnnBackendFinalize(d));
}

void dnn_free(DnnObjects *o)
{
  while (o->n > 0) o->api->cudnnBackendDestroyDescriptor(o->made[--o->n]);
}

void dnn_set_number(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute, DnnType type,
                    int32_t value)
{
  dnn_set(o, d, attribute, type, 1, &value);
}

void dnn_set_descriptor(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute, DnnDescriptor value)
{
  dnn_set(o, d, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

/* ---- tensors ---- */

int32_t dnn_type_of(ampc_dtype t)
{
#define LIBRARY_TYPE(KIND, name, SPACE, copy, cpu, lt, dnn, ...) [AMPC_##KIND] = dnn,
  static const int32_t types[AMPC_DTYPE_COUNT] = {AMPC_FLOATS(LIBRARY_TYPE)};
  return types[t];
}

/* Returns the dims [a, b, size..], with b contiguous. */
static DnnSizes last_innermost(int64_t a, int64_t b, uint32_t spatial, const int64_t *size)
{
  DnnSizes s = {.dim = {a, b}, .stride = {0, 1}};
  uint32_t at = 2;
  if (spatial == 1) s.dim[at++] = 1;
  for (uint32_t i = 0; i < spatial; i++) s.dim[at++] = size[i];
  s.n = at;
  int64_t step = b;
  for (uint32_t i = at; i-- > 2;) s.stride[i] = step, step *= s.dim[i];
  s.stride[0] = step;
  return s;
}

DnnDescriptor dnn_tensor(DnnObjects *o, int64_t number, int32_t type, const DnnSizes *s,
                         DnnPlace place)
{
  DnnDescriptor d = dnn_make(o, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  bool loose = place == DNN_NUMBER || place == DNN_NUMBERS;
  int64_t alignment = loose ? (int64_t)sizeof(float) : DNN_ALIGN;
  bool is_virtual = place == DNN_NOWHERE, by_value = place == DNN_NUMBER;
  dnn_set_number(o, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  dnn_set(o, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, s->n, s->dim);
  dnn_set(o, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, s->n, s->stride);
  dnn_set(o, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  dnn_set(o, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number);
  dnn_set(o, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  if (by_value) dnn_set(o, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  dnn_finalize(o, d);
  return d;
}

/* ---- operations ---- */

static void set_spatial(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute, const ampc_conv *c,
                        const int64_t *values, int64_t other)
{
  int64_t all[AMPC_MAX_SPATIAL] = {other};
  uint32_t first = c->spatial == 1;
  for (uint32_t i = 0; i < c->spatial; i++) all[first + i] = values[i];
  dnn_set(o, d, attribute, CUDNN_TYPE_INT64, first + c->spatial, all);
}

static DnnDescriptor window(DnnObjects *o, const ampc_conv *c)
{
  DnnDescriptor d = dnn_make(o, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  int64_t spatial = c->spatial == 1 ? 2 : c->spatial;
  dnn_set_number(o, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  dnn_set_number(o, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                 CUDNN_CROSS_CORRELATION);
  dnn_set(o, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
  set_spatial(o, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, c, c->dilation, 1);
  set_spatial(o, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c, c->stride, 1);
  set_spatial(o, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c, c->pad, 0);
  set_spatial(o, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, c, c->pad, 0);
  dnn_finalize(o, d);
  return d;
}

/* The kinds and attributes of the three operations. */
typedef struct Names {
  DnnKind kind;
  DnnAttribute window, x, w, y, alpha, beta;
} Names;
static const Names names[] = {
    [AMPC_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [AMPC_CONV_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [AMPC_CONV_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

/* x, w and y of the problem. `result` is the one of them that this kind of convolution computes. */
typedef struct Tensors {
  DnnDescriptor x, w, y, result;
  DnnSizes result_sizes;
} Tensors;

static Tensors operands(DnnObjects *o, const ampc_conv *c)
{
  DnnSizes x = last_innermost(c->n, c->c, c->spatial, c->in);
  DnnSizes w = last_innermost(c->k, c->c / c->groups, c->spatial, c->kernel);
  DnnSizes y = last_innermost(c->n, c->k, c->spatial, c->out);
  Tensors t = {.x = dnn_tensor(o, X, dnn_type_of(c->x_type), &x, DNN_IN_MEMORY),
               .w = dnn_tensor(o, W, dnn_type_of(c->w_type), &w, DNN_IN_MEMORY),
               .y = dnn_tensor(o, Y, dnn_type_of(c->y_type), &y, DNN_IN_MEMORY)};
  bool forward = c->kind == AMPC_CONV_FORWARD, data = c->kind == AMPC_CONV_DATA;
  t.result = forward ? t.y : data ? t.x : t.w;
  t.result_sizes = forward ? y : data ? x : w;
  return t;
}

/* Makes the operation of the convolution. It writes to `result`, which is t->result or, in form
 * JOINED, the sum in f32. */
static DnnDescriptor convolve(DnnObjects *o, const ampc_conv *c, const Tensors *t,
                              DnnDescriptor result, bool accumulate)
{
  const Names *name = &names[c->kind];
  const float alpha = 1, beta = accumulate;
  DnnDescriptor how = window(o, c), d = dnn_make(o, name->kind, "convolution");
  dnn_set_descriptor(o, d, name->window, how);
  dnn_set_descriptor(o, d, name->x, t->x == t->result ? result : t->x);
  dnn_set_descriptor(o, d, name->w, t->w == t->result ? result : t->w);
  dnn_set_descriptor(o, d, name->y, t->y == t->result ? result : t->y);
  dnn_set(o, d, name->alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
  dnn_set(o, d, name->beta, CUDNN_TYPE_FLOAT, 1, &beta);
  dnn_finalize(o, d);
  return d;
}

DnnDescriptor dnn_pointwise(DnnObjects *o, const DnnPointwise *p)
{
  DnnDescriptor how = dnn_make(o, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
  dnn_set_number(o, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, p->mode);
  dnn_set_number(o, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, p->type);
  if (p->mode == CUDNN_POINTWISE_GEN_INDEX)
    dnn_set(o, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &p->axis);
  dnn_finalize(o, how);
  DnnDescriptor d = dnn_make(o, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise");
  dnn_set_descriptor(o, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  dnn_set_descriptor(o, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p->x);
  if (p->b) dnn_set_descriptor(o, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p->b);
  if (p->t) dnn_set_descriptor(o, d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p->t);
  dnn_set_descriptor(o, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, p->y);
  dnn_finalize(o, d);
  return d;
}

/* Computes the result from the sum in f32: adds the bias or the old gradient, or only rounds. */
static DnnDescriptor join(DnnObjects *o, const ampc_conv *c, DnnDescriptor sum, const Tensors *t)
{
  static const int64_t ones[AMPC_MAX_SPATIAL] = {1, 1, 1};
  DnnSizes bias = last_innermost(1, c->k, c->spatial, ones);
  DnnDescriptor add = NULL;
  if (c->has_bias) add = dnn_tensor(o, BIAS, dnn_type_of(c->bias_type), &bias, DNN_IN_MEMORY);
  if (c->accumulate)
    add = dnn_tensor(o, OLD, dnn_type_of(c->w_type), &t->result_sizes, DNN_IN_MEMORY);
  DnnPointwise p = {.mode = add ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_IDENTITY,
                    .type = CUDNN_DATA_FLOAT,
                    .x = sum,
                    .b = add,
                    .y = t->result};
  return dnn_pointwise(o, &p);
}

static bool is_possible(const ampc_conv *c, DnnForm form)
{
  bool same = dnn_type_of(c->x_type) == dnn_type_of(c->w_type) &&
              dnn_type_of(c->w_type) == dnn_type_of(c->y_type);
  return form == DNN_DIRECT ? same && !c->has_bias : c->has_bias || c->accumulate || !same;
}

DnnDescriptor dnn_graph_of(DnnObjects *o, DnnHandle handle, int64_t n,
                           const DnnDescriptor *operations)
{
  DnnDescriptor g = dnn_make(o, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph");
  if (handle) dnn_set(o, g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  dnn_set(o, g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, operations);
  dnn_finalize(o, g);
  return o->status ? NULL : g;
}

static DnnDescriptor conv_graph(DnnObjects *o, DnnHandle handle, const void *what, DnnForm form)
{
  const ampc_conv *c = what;
  DnnDescriptor operations[2];
  int64_t n = 0;
  Tensors t = operands(o, c);
  DnnDescriptor to = t.result;
  if (form == DNN_JOINED) to = dnn_tensor(o, SUM, CUDNN_DATA_FLOAT, &t.result_sizes, DNN_NOWHERE);
  operations[n++] = convolve(o, c, &t, to, form == DNN_DIRECT && c->accumulate);
  if (form == DNN_JOINED) operations[n++] = join(o, c, to, &t);
  return dnn_graph_of(o, handle, n, operations);
}

/* ---- the problem ---- */

static size_t put_sizes(char *out, size_t at, const char *name, const ampc_conv *c,
                        const int64_t *sizes)
{
  at += (size_t)snprintf(out + at, DNN_PROBLEM_ROOM - at, " %s ", name);
  for (uint32_t i = 0; i < c->spatial; i++)
    at += (size_t)snprintf(out + at, DNN_PROBLEM_ROOM - at, "%s%lld", i ? "x" : "",
                           (long long)sizes[i]);
  return at;
}

static void put_words(const ampc_conv *c, char out[DNN_PROBLEM_ROOM])
{
  static const char *const kinds[] = {"convolution", "data gradient", "weight gradient"};
  size_t at =
      (size_t)snprintf(out, DNN_PROBLEM_ROOM, "%s of [%lld", kinds[c->kind], (long long)c->n);
  for (uint32_t i = 0; i < c->spatial; i++)
    at += (size_t)snprintf(out + at, DNN_PROBLEM_ROOM - at, ", %lld", (long long)c->in[i]);
  at += (size_t)snprintf(out + at, DNN_PROBLEM_ROOM - at, ", %lld] to %lld channels",
                         (long long)c->c, (long long)c->k);
  if (c->groups > 1)
    at += (size_t)snprintf(out + at, DNN_PROBLEM_ROOM - at, " groups %lld", (long long)c->groups);
  at = put_sizes(out, at, "kernel", c, c->kernel);
  at = put_sizes(out, at, "stride", c, c->stride);
  at = put_sizes(out, at, "pad", c, c->pad);
  at = put_sizes(out, at, "dilation", c, c->dilation);
  snprintf(out + at, DNN_PROBLEM_ROOM - at, ", x %s w %s y %s%s%s%s%s", ampc_dtype_name(c->x_type),
           ampc_dtype_name(c->w_type), ampc_dtype_name(c->y_type), c->has_bias ? " bias " : "",
           c->has_bias ? ampc_dtype_name(c->bias_type) : "", c->tf32 ? " tf32" : "",
           c->accumulate ? " added" : "");
}

DnnProblem dnn_conv_problem(const ampc_conv *c)
{
  DnnProblem p = {.what = c, .graph = conv_graph};
  put_words(c, p.words);
  for (DnnForm form = DNN_DIRECT; form < DNN_FORMS; form++) p.forms[form] = is_possible(c, form);
  p.exact = c->x_type == AMPC_F32 && c->y_type == AMPC_F32 && !c->tf32;
  return p;
}

void dnn_add_operand(DnnOperands *o, int64_t number, const void *place)
{
  o->number[o->n] = number;
  o->place[o->n++] = (void *)(uintptr_t)place;
}

DnnOperands dnn_conv_operands(const ampc_conv *c, DnnForm form, const ConvOperands *at)
{
  DnnOperands o = {.number = {X, W, Y}, .place = {at->x, at->w, at->y}, .n = 3};
  if (c->has_bias) dnn_add_operand(&o, BIAS, at->bias);
  if (c->accumulate && form == DNN_JOINED) dnn_add_operand(&o, OLD, at->w);
  return o;
}
