/* The mock of cuDNN: a convolution as its graph interface has it, read from descriptors by dnn.c
 * and dnn_plan.c, computed by dnn_maths.c. */
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
  void *data; /* of a plan: its Convolution; of a configuration and an engine: their graph */
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
  bool is_virtual;
} Tensor;

/* `to` is where the sums go: x, w or y; with `joined` the next operation takes them from there and
 * writes `result`, after it has added `add` where there is one. */
typedef struct Convolution {
  DnnKind operation;
  Tensor x, w, y, add, result;
  int64_t spatial, pad[DNN_DIMS], stride[DNN_DIMS], dilation[DNN_DIMS];
  float beta;
  bool joined, adds, tf32;
  int engine;
  int64_t workspace;
} Convolution;

/* A call of it: places on the device. */
typedef struct ConvolutionCall {
  const Convolution *c;
  uint64_t x, w, y, add, result, workspace;
} ConvolutionCall;

int64_t tensor_bytes(const Tensor *t);
CuResult convolution_run(const void *call);
