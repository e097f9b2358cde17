/* cuDNN without CUDA: descriptors. A table lists the attributes of each kind: their types, their
 * counts, and which ones are required. An attribute that is set twice, too late, wrongly or not at
 * all is refused. Freeing a descriptor that another one refers to ends the program.
 *   MOCK_DNN_VERSION=n    the result of cudnnGetVersion, 91901
 *   MOCK_DNN_START=n      cudnnCreate returns n */
#include "dnn.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIMS = DNN_DIMS, MOST_OPERANDS = 20, MOST_TEXT = 1 << 20 };

static int handles; /* its address is the handle */
static char last_error[256];

typedef struct Row {
  DnnKind kind;
  DnnAttribute what;
  DnnType type;
  int64_t least, most;
  bool needed;
  DnnKind names; /* the kind of descriptor that the values refer to; 0: any */
} Row;
#define TENSOR     CUDNN_BACKEND_TENSOR_DESCRIPTOR
#define WINDOW     CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR
#define FORWARD    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
#define DATA       CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
#define FILTER     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
#define POINTWISE  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR
#define MATMUL     CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR
#define REDUCTION  CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR
#define RESHAPE    CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR
#define GRAPH      CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR
#define HEURISTIC  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR
#define PLAN       CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
#define PACK       CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR
#define DESCRIPTOR CUDNN_TYPE_BACKEND_DESCRIPTOR

/* clang-format off */
static const Row rows[] = {
    {TENSOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true, 0},
    {TENSOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, MOST_DIMS, true, 0},
    {TENSOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, MOST_DIMS, true, 0},
    {TENSOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1, true, 0},
    {TENSOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1, true, 0},
    {TENSOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, false, 0},
    {TENSOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1, false, 0},
    {WINDOW, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true, 0},
    {WINDOW, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, true, 0},
    {WINDOW, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1, true, 0},
    {WINDOW, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 3, true, 0},
    {WINDOW, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 3, true, 0},
    {WINDOW, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 3, true, 0},
    {WINDOW, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, 3, true, 0},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, DESCRIPTOR, 1, 1, true, WINDOW},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, DESCRIPTOR, 1, 1, true, TENSOR},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, DESCRIPTOR, 1, 1, true, TENSOR},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, DESCRIPTOR, 1, 1, true, TENSOR},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true, 0},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, 1, true, 0},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, DESCRIPTOR, 1, 1, true, WINDOW},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, DESCRIPTOR, 1, 1, true, TENSOR},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, DESCRIPTOR, 1, 1, true, TENSOR},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, DESCRIPTOR, 1, 1, true, TENSOR},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true, 0},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1, 1, true, 0},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, DESCRIPTOR, 1, 1, true, WINDOW},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, DESCRIPTOR, 1, 1, true, TENSOR},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, DESCRIPTOR, 1, 1, true, TENSOR},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, DESCRIPTOR, 1, 1, true, TENSOR},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true, 0},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 1, 1, true, 0},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1, true, 0},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1, true, 0},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, 1, false, 0},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_POINTWISE_DESCRIPTOR},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, DESCRIPTOR, 1, 1, true, TENSOR},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, DESCRIPTOR, 1, 1, false, TENSOR},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, DESCRIPTOR, 1, 1, false, TENSOR},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, DESCRIPTOR, 1, 1, true, TENSOR},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true, 0},
    {MATMUL, CUDNN_ATTR_OPERATION_MATMUL_ADESC, DESCRIPTOR, 1, 1, true, TENSOR},
    {MATMUL, CUDNN_ATTR_OPERATION_MATMUL_BDESC, DESCRIPTOR, 1, 1, true, TENSOR},
    {MATMUL, CUDNN_ATTR_OPERATION_MATMUL_CDESC, DESCRIPTOR, 1, 1, true, TENSOR},
    {MATMUL, CUDNN_ATTR_OPERATION_MATMUL_DESC, DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_MATMUL_DESCRIPTOR},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 1, true, 0},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true, 0},
    {REDUCTION, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, DESCRIPTOR, 1, 1, true, TENSOR},
    {REDUCTION, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, DESCRIPTOR, 1, 1, true, TENSOR},
    {REDUCTION, CUDNN_ATTR_OPERATION_REDUCTION_DESC, DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_REDUCTION_DESCRIPTOR},
    {RESHAPE, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, DESCRIPTOR, 1, 1, true, TENSOR},
    {RESHAPE, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, DESCRIPTOR, 1, 1, true, TENSOR},
    {GRAPH, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, false, 0},
    {GRAPH, CUDNN_ATTR_OPERATIONGRAPH_OPS, DESCRIPTOR, 1, DNN_OPERATIONS, true, 0},
    {HEURISTIC, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, DESCRIPTOR, 1, 1, true, GRAPH},
    {HEURISTIC, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1, true, 0},
    {HEURISTIC, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, DESCRIPTOR, 1, 1, false, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR},
    {PLAN, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, false, 0},
    {PLAN, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, DESCRIPTOR, 1, 1, false, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR},
    {PLAN, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, DESCRIPTOR, 1, 1, false, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR},
    {PLAN, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 1, MOST_TEXT, false, 0},
    {PACK, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, MOST_OPERANDS, true, 0},
    {PACK, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, MOST_OPERANDS, true, 0},
    {PACK, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1, true, 0},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 1, MOST_TEXT, true, 0},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

static size_t type_size(DnnType type)
{
  switch (type) {
  case CUDNN_TYPE_CHAR:
  case CUDNN_TYPE_BOOLEAN:
    return 1;
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return 8;
  default:
    return 4;
  }
}

static DnnStatus refuse(DnnStatus status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static DnnStatus refuse(DnnStatus status, const char *format, ...)
{
  va_list rest;
  va_start(rest, format);
  vsnprintf(last_error, sizeof last_error, format, rest);
  va_end(rest);
  return mock_refuse(status, "cudnn: %s", last_error);
}

/* ---- the library ---- */

size_t cudnnGetVersion(void)
{
  return (size_t)mock_setting("MOCK_DNN_VERSION", 91901);
}

const char *cudnnGetErrorString(DnnStatus status)
{
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case DNN_NOT_INITIALIZED:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case CUDNN_STATUS_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case DNN_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  default:
    return "CUDNN_STATUS_BAD_PARAM";
  }
}

void cudnnGetLastErrorString(char *out, size_t size)
{
  snprintf(out, size, "%s", last_error);
  last_error[0] = 0;
}

#define DNN_ENTER()                                                                                \
  __attribute__((cleanup(mock_leave))) int entered_ = mock_enter(NEEDS_NOTHING);                   \
  (void)entered_

DnnStatus cudnnCreate(DnnHandle *out)
{
  __attribute__((cleanup(mock_leave))) int entered_ = mock_enter(NEEDS_CONTEXT);
  long status = mock_setting("MOCK_DNN_START", entered_ ? DNN_NOT_INITIALIZED : 0);
  if (status) return (DnnStatus)status;
  if (handles++) mock_misuse("a second handle of cuDNN");
  mock_add(COUNT_held, 1);
  *out = (DnnHandle)(void *)&handles;
  return CUDNN_STATUS_SUCCESS;
}

DnnStatus cudnnDestroy(DnnHandle handle)
{
  DNN_ENTER();
  if (handle != (DnnHandle)(void *)&handles || !handles) return DNN_BAD_PARAM;
  handles--;
  mock_add(COUNT_held, -1);
  return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

DnnStatus cudnnBackendCreateDescriptor(DnnKind kind, DnnDescriptor *out)
{
  DNN_ENTER();
  bool known =
      kind == CUDNN_BACKEND_ENGINE_DESCRIPTOR || kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
  for (int i = 0; i < ROWS; i++) known = known || rows[i].kind == kind;
  if (!known) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the mock has no descriptor %d", kind);
  Descriptor *d = calloc(1, sizeof *d);
  if (!d) mock_misuse("out of memory");
  d->kind = kind;
  mock_add(COUNT_held, 1);
  *out = d;
  return CUDNN_STATUS_SUCCESS;
}

static const Row *row_of(const Descriptor *d, DnnAttribute what)
{
  for (int i = 0; i < ROWS; i++)
    if (rows[i].kind == d->kind && rows[i].what == what) return &rows[i];
  return NULL;
}

static void count_users(const Descriptor *d, int more)
{
  for (const Attribute *a = d->attributes; a; a = a->next)
    for (int64_t i = 0; row_of(d, a->what)->type == DESCRIPTOR && i < a->n; i++)
      ((Descriptor **)a->values)[i]->users += more;
}

DnnStatus cudnnBackendDestroyDescriptor(DnnDescriptor descriptor)
{
  DNN_ENTER();
  Descriptor *d = descriptor;
  if (!d) return DNN_BAD_PARAM;
  if (d->users) mock_misuse("cudnn: descriptor %d is freed while another names it", d->kind);
  count_users(d, -1);
  if (d->kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && d->data) ((Descriptor *)d->data)->users--;
  for (Attribute *a = d->attributes, *next; a; a = next) {
    next = a->next;
    free(a->values);
    free(a);
  }
  free(d);
  mock_add(COUNT_held, -1);
  return CUDNN_STATUS_SUCCESS;
}

static DnnStatus check_names(const Row *row, int64_t n, const void *values)
{
  for (int64_t i = 0; i < n; i++) {
    const Descriptor *named = ((Descriptor *const *)values)[i];
    if (!named || !named->final)
      return refuse(DNN_NOT_FINALIZED, "attribute %d names a descriptor that is not finalised",
                    row->what);
    if (row->names && named->kind != row->names)
      return refuse(DNN_BAD_PARAM, "attribute %d names a descriptor of kind %d", row->what,
                    named->kind);
  }
  return CUDNN_STATUS_SUCCESS;
}

DnnStatus cudnnBackendSetAttribute(DnnDescriptor descriptor, DnnAttribute what, DnnType type,
                                   int64_t n, const void *values)
{
  DNN_ENTER();
  Descriptor *d = descriptor;
  const Row *row = d ? row_of(d, what) : NULL;
  if (!row)
    return refuse(DNN_BAD_PARAM, "descriptor %d has no attribute %d", d ? d->kind : -1, what);
  if (d->final) return refuse(DNN_BAD_PARAM, "attribute %d is set after the end", what);
  if (type != row->type || n < row->least || n > row->most || !values)
    return refuse(DNN_BAD_PARAM, "attribute %d: type %d, %lld values", what, type, (long long)n);
  if (dnn_values(d, what, &(int64_t){0})) return refuse(DNN_BAD_PARAM, "attribute %d twice", what);
  DnnStatus status = type == DESCRIPTOR ? check_names(row, n, values) : CUDNN_STATUS_SUCCESS;
  if (status) return status;
  Attribute *a = calloc(1, sizeof *a);
  size_t size = (size_t)n * type_size(type);
  if (!a || !(a->values = malloc(size + 1))) mock_misuse("out of memory");
  memcpy(a->values, values, size);
  ((char *)a->values)[size] = 0;
  a->what = what;
  a->n = n;
  a->next = d->attributes;
  d->attributes = a;
  for (int64_t i = 0; type == DESCRIPTOR && i < n; i++) ((Descriptor **)a->values)[i]->users++;
  return CUDNN_STATUS_SUCCESS;
}

DnnStatus cudnnBackendFinalize(DnnDescriptor descriptor)
{
  DNN_ENTER();
  Descriptor *d = descriptor;
  if (!d || d->final) return refuse(DNN_BAD_PARAM, "finalised twice");
  for (int i = 0; i < ROWS; i++)
    if (rows[i].kind == d->kind && rows[i].needed && !dnn_values(d, rows[i].what, &(int64_t){0}))
      return refuse(DNN_BAD_PARAM, "descriptor %d lacks attribute %d", d->kind, rows[i].what);
  DnnStatus status = dnn_complete(d);
  d->final = status == CUDNN_STATUS_SUCCESS;
  return status;
}

DnnStatus cudnnBackendGetAttribute(DnnDescriptor descriptor, DnnAttribute what, DnnType type,
                                   int64_t wanted, int64_t *n, void *values)
{
  DNN_ENTER();
  Descriptor *d = descriptor;
  (void)type;
  bool made_elsewhere = d && d->kind == CUDNN_BACKEND_ENGINE_DESCRIPTOR && d->data;
  if (!d || (!d->final && !made_elsewhere))
    return refuse(DNN_NOT_FINALIZED, "attribute %d of a descriptor that is not finalised", what);
  return dnn_ask(d, what, wanted, n, values);
}

/* ---- for dnn_plan.c ---- */

const void *dnn_values(const Descriptor *d, DnnAttribute what, int64_t *n)
{
  for (const Attribute *a = d->attributes; a; a = a->next)
    if (a->what == what) return *n = a->n, a->values;
  return NULL;
}

Descriptor *dnn_named(const Descriptor *d, DnnAttribute what)
{
  int64_t n;
  Descriptor *const *at = dnn_values(d, what, &n);
  return at ? *at : NULL;
}

int64_t dnn_integer(const Descriptor *d, DnnAttribute what)
{
  int64_t n;
  const void *at = dnn_values(d, what, &n);
  if (!at) return 0;
  size_t size = type_size(row_of(d, what)->type);
  return size == 8 ? *(const int64_t *)at : size == 1 ? *(const uint8_t *)at : *(const int32_t *)at;
}
