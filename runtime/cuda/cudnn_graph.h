/* A convolution as cuDNN's graph of operations. */
#pragma once
#include "ampc_plan.h"
#include "cudnn_api.h"

/* The tensors of a graph by number: what a plan is called with. DNN_OLD is the gradient before it
 * is added to; DNN_SUM lies nowhere. */
enum { DNN_X = 1, DNN_W, DNN_Y, DNN_BIAS, DNN_SUM, DNN_OLD };

enum { DNN_MOST_MADE = 20, DNN_ALIGN = 16 /* bytes, of every operand */ };

/* Descriptors that belong together. The first call that fails is kept, and nothing is done after
 * it. */
typedef struct DnnObjects {
  const DnnApi *api;
  DnnDescriptor made[DNN_MOST_MADE];
  uint32_t n;
  DnnStatus status;
  const char *what; /* that failed */
} DnnObjects;

DnnDescriptor dnn_make(DnnObjects *o, DnnKind kind, const char *what);
void dnn_set(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute, DnnType type, int64_t n,
             const void *values);
void dnn_finalize(DnnObjects *o, DnnDescriptor d);
void dnn_free(DnnObjects *o);

/* Goes up whenever cudnn_graph.c makes another graph of the same problem, or cudnn_plan.c takes
 * other engines (Note [engines]): plans that are kept are those of before. */
enum { DNN_PLAN_VERSION = 2 };

/* Note [forms] in cudnn_graph.c. */
typedef enum DnnForm { DNN_DIRECT, DNN_JOINED, DNN_FORMS } DnnForm;
bool dnn_form_is_possible(const ampc_conv *c, DnnForm form);

/* The graph that computes c; NULL: o->status says why. `handle` may be NULL where plans are made
 * for a machine that is not there. */
DnnDescriptor dnn_graph(DnnObjects *o, DnnHandle handle, const ampc_conv *c, DnnForm form);
