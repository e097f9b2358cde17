/* The mock of cuDNN: a convolution as its graph interface has it, read from descriptors by dnn.c
 * and dnn_plan.c, computed by dnn_maths.c; any other graph operation by operation, dnn_steps.c. */
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
  int users; /* descriptors that name it */
  Attribute *attributes;
  void *data; /* of a plan: its DnnPlanData; of a configuration and an engine: their graph */
  int number; /* of an engine */
};

/* The values of an attribute; NULL: it has not been set. */
const void *dnn_values(const Descriptor *d, DnnAttribute what, int64_t *n);
Descriptor *dnn_named(const Descriptor *d, DnnAttribute what); /* a descriptor among them */
int64_t dnn_integer(const Descriptor *d, DnnAttribute what);   /* an enumeration or a number */
/* What kinds do at the end of cudnnBackendFinalize, and what can be asked of them: dnn_plan.c. */
DnnStatus dnn_complete(Descriptor *d);
DnnStatus dnn_ask(Descriptor *d, DnnAttribute what, int64_t wanted, int64_t *n, void *values);

/* ---- a convolution ---- */

typedef struct Tensor {
  int64_t n, dim[DNN_DIMS], stride[DNN_DIMS], number, align;
  ampc_dtype type;
  bool is_virtual, by_value;
} Tensor;
Tensor dnn_tensor_of(const Descriptor *d); /* of a descriptor of a tensor */
int64_t tensor_bytes(const Tensor *t);

/* `to` is where the sums go: x, w or y; with `joined` the next operation takes them from there and
 * writes `result`, after it has added `add` where there is one. */
typedef struct Convolution {
  DnnKind operation;
  Tensor x, w, y, add, result;
  int64_t spatial, pad[DNN_DIMS], stride[DNN_DIMS], dilation[DNN_DIMS];
  float beta;
  bool joined, adds, tf32;
  int64_t workspace;
} Convolution;

/* A call of it: places on the device. */
typedef struct ConvolutionCall {
  const Convolution *c;
  uint64_t x, w, y, add, result, workspace;
} ConvolutionCall;

CuResult convolution_run(const void *call);

/* ---- any other graph: dnn_steps.c ---- */

enum { DNN_OPERATIONS = 28, DNN_TENSORS = 44 };
typedef struct Operation {
  DnnKind kind;
  int64_t mode, axis; /* of a pointwise operation; of a reduction */
  int x, b, t, y;     /* tensors; -1: none. Of a product x by b */
} Operation;
typedef struct Steps {
  int n_operations, n_tensors;
  Operation operation[DNN_OPERATIONS];
  Tensor tensor[DNN_TENSORS];
} Steps;

/* A call: where each tensor lies that is not virtual, or the number that it is. */
typedef struct StepsCall {
  const Steps *steps;
  union {
    uint64_t at;
    float number;
  } place[DNN_TENSORS];
} StepsCall;

DnnStatus steps_read(const Descriptor *graph, Steps *out);
/* What this version of cuDNN makes of them on this GPU: dnn_faults.c. */
typedef enum DnnHarm { HARM_none, HARM_nan, HARM_unsteady, HARM_breaks_in_graphs } DnnHarm;
DnnHarm dnn_harm(const Steps *steps);
CuResult steps_run(const void *call);

/* ---- a plan ---- */

/* Plain data: its bytes are its text. */
typedef struct DnnPlanData {
  bool is_convolution;
  int engine;
  int64_t workspace;
  Convolution convolution;
  Steps steps;
} DnnPlanData;
