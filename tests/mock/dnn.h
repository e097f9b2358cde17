/* The mock of cuDNN. dnn.c and dnn_plan.c read a graph from its descriptors. dnn_maths.c computes
 * it if it is a convolution; dnn_steps.c computes any other graph, operation by operation. */
#pragma once
#include "ampc_plan.h"
#include "mock.h"
#include "runtime/cuda/cudnn_api.h"

#define CUDA_API(result, name, parameters) EXPORT result name parameters;
#include "runtime/cuda/cudnn.def"

enum { DNN_BAD_PARAM = 2000, DNN_NOT_FINALIZED = 2004, DNN_NOT_INITIALIZED = 1001 };
enum { DNN_EXECUTION_FAILED = 5000, DNN_DIMS = 5 };

/* ---- descriptors: dnn.c ---- */

typedef struct Descriptor Descriptor;
typedef struct Attribute {
  struct Attribute *next;
  DnnAttribute what;
  int64_t n;
  void *values;
} Attribute;
struct Descriptor {
  DnnKind kind;
  bool final;
  int users; /* number of descriptors that refer to this one */
  Attribute *attributes;
  void *data; /* a plan's DnnPlanData; a configuration's or engine's graph */
  int number; /* of an engine among the engines of its graph */
};

/* Returns the values of an attribute; NULL if it is not set. */
const void *dnn_values(const Descriptor *d, DnnAttribute what, int64_t *n);
Descriptor *dnn_named(const Descriptor *d, DnnAttribute what); /* one of the values, a descriptor */
int64_t dnn_integer(const Descriptor *d, DnnAttribute what);   /* the value: an enum or a number */
/* The steps of cudnnBackendFinalize and of queries that depend on the kind: dnn_plan.c. */
DnnStatus dnn_complete(Descriptor *d);
DnnStatus dnn_ask(Descriptor *d, DnnAttribute what, int64_t wanted, int64_t *n, void *values);

/* ---- a convolution ---- */

typedef struct Tensor {
  int64_t n, dim[DNN_DIMS], stride[DNN_DIMS], number, align;
  ampc_dtype type;
  bool is_virtual, by_value;
} Tensor;
Tensor dnn_tensor_of(const Descriptor *d); /* `d` must describe a tensor */
int64_t tensor_bytes(const Tensor *t);

/* `to` receives the sums: x, w or y. If `joined`, the next operation reads them there, adds `add`
 * (if `adds`) and writes `result`. */
typedef struct Convolution {
  DnnKind operation;
  Tensor x, w, y, add, result;
  int64_t spatial, pad[DNN_DIMS], stride[DNN_DIMS], dilation[DNN_DIMS];
  float beta;
  bool joined, adds, tf32;
  int64_t workspace;
} Convolution;

/* A call of a convolution, with addresses on the device. */
typedef struct ConvolutionCall {
  const Convolution *c;
  uint64_t x, w, y, add, result, workspace;
} ConvolutionCall;

CuResult convolution_run(const void *call);

/* ---- any other graph: dnn_steps.c ---- */

enum { DNN_OPERATIONS = 34, DNN_TENSORS = 52 };
typedef struct Operation {
  DnnKind kind;
  int64_t mode, axis; /* mode: of a pointwise operation; axis: of a reduction */
  int x, b, t, y;     /* indices of tensors; -1: no tensor. A product is x by b */
} Operation;
typedef struct Steps {
  int n_operations, n_tensors;
  Operation operation[DNN_OPERATIONS];
  Tensor tensor[DNN_TENSORS];
} Steps;

/* A call: the address of each tensor, or its number if passed by value; unused if virtual. */
typedef struct StepsCall {
  const Steps *steps;
  union {
    uint64_t at;
    float number;
  } place[DNN_TENSORS];
} StepsCall;

DnnStatus steps_read(const Descriptor *graph, Steps *out);
/* Faults that cuDNN's version has with such a graph on this GPU: dnn_faults.c. */
typedef enum DnnHarm { HARM_none, HARM_nan, HARM_unsteady, HARM_breaks_in_graphs } DnnHarm;
DnnHarm dnn_harm(const Steps *steps);
CuResult steps_run(const void *call);

/* ---- a plan ---- */

/* A plan as plain data, so that its bytes can be saved as text. */
typedef struct DnnPlanData {
  bool is_convolution;
  int engine;
  int64_t workspace;
  Convolution convolution;
  Steps steps;
} DnnPlanData;
