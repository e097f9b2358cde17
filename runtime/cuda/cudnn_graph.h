/* Problems as cuDNN's graphs of operations. */
#pragma once
#include "cudnn_api.h"
#include "runtime/device.h"
#include "common/toolkit.h"
#include "runtime/plan/attention.h"

enum { DNN_MOST_MADE = 170, DNN_ALIGN = 16 /* bytes, for every operand */ };

/* Descriptors that are freed together. `status` is the first failure; after it, further calls do
 * nothing. */
typedef struct DnnObjects {
  const DnnApi *api;
  DnnDescriptor made[DNN_MOST_MADE];
  uint32_t n;
  DnnStatus status;
  const char *what; /* name of the object that failed */
} DnnObjects;

DnnDescriptor dnn_make(DnnObjects *o, DnnKind kind, const char *what);
void dnn_set(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute, DnnType type, int64_t n,
             const void *values);
void dnn_set_number(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute, DnnType type,
                    int32_t value);
void dnn_set_descriptor(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute,
                        DnnDescriptor value);
void dnn_finalize(DnnObjects *o, DnnDescriptor d);
void dnn_free(DnnObjects *o);

enum { DNN_MOST_DIMS = AMPC_MAX_SPATIAL + 2 };
typedef struct DnnSizes {
  int64_t n; /* used entries of the arrays */
  int64_t dim[DNN_MOST_DIMS], stride[DNN_MOST_DIMS];
} DnnSizes;

int32_t dnn_type_of(ampc_dtype t);
/* Where a tensor is. IN_MEMORY: in device memory; each call sets the address. NUMBERS: in device
 * memory, but aligned only to an f32. NOWHERE: not in memory; one operation passes it to the next.
 * NUMBER: one f32 in host memory; each call sets the address. */
typedef enum DnnPlace { DNN_IN_MEMORY, DNN_NUMBERS, DNN_NOWHERE, DNN_NUMBER } DnnPlace;
DnnDescriptor dnn_tensor(DnnObjects *o, int64_t number, int32_t type, const DnnSizes *s,
                         DnnPlace place);
/* y = mode(x, b), or y = t ? x : b; computed in `type`, rounded to y's type. b and t may be NULL.
 * Mode GEN_INDEX: y is the index of each element of x along `axis`. */
typedef struct DnnPointwise {
  int32_t mode, type;
  int64_t axis;
  DnnDescriptor x, b, t, y;
} DnnPointwise;
DnnDescriptor dnn_pointwise(DnnObjects *o, const DnnPointwise *p);
/* Returns the graph of n operations; NULL: o->status has the reason. */
DnnDescriptor dnn_graph_of(DnnObjects *o, DnnHandle handle, int64_t n,
                           const DnnDescriptor *operations);

/* Increment this if cudnn_graph.c makes a different graph of a problem, or if cudnn_plan.c chooses
 * other engines (Note [engines]): then older plans in the cache are not used. */
enum { DNN_PLAN_VERSION = 5 };

/* Note [forms] in cudnn_graph.c. */
typedef enum DnnForm { DNN_DIRECT, DNN_JOINED, DNN_FORMS } DnnForm;

enum { DNN_PROBLEM_ROOM = 640 };

/* A problem that cuDNN may compute. */
typedef struct DnnProblem {
  char words[DNN_PROBLEM_ROOM]; /* all facts that a plan depends on, as text: the key of the plan,
                                   also shown in messages */
  bool forms[DNN_FORMS];        /* forms of graphs that can compute the problem */
  bool exact;                   /* engines that round f32 operands to tf32 are rejected */
  const void *what;             /* the ampc_conv or ampc_attention, which must outlive this */
  /* Returns why cuDNN must not compute the problem, or NULL, like ampc_attention_against. This
   * function pointer may be NULL. */
  const char *(*against)(const void *what, ampc_cudnn with, char why[AMPC_WHY_ROOM]);
  /* Makes the graph; NULL: see o->status. `handle` is NULL for a plan of an absent GPU. */
  DnnDescriptor (*graph)(DnnObjects *o, DnnHandle handle, const void *what, DnnForm form);
} DnnProblem;

/* The operands of a call of a plan: addresses of tensors, by their number. */
enum { DNN_MOST_OPERANDS = 20 };
typedef struct DnnOperands {
  int64_t number[DNN_MOST_OPERANDS];
  void *place[DNN_MOST_OPERANDS]; /* addresses, aligned as each tensor's DnnPlace says */
  uint32_t n;
} DnnOperands;
void dnn_add_operand(DnnOperands *o, int64_t number, const void *place);

/* ---- a convolution: cudnn_graph.c ---- */

DnnProblem dnn_conv_problem(const ampc_conv *c);
DnnOperands dnn_conv_operands(const ampc_conv *c, DnnForm form, const ConvOperands *at);
