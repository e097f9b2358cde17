/* Problems as cuDNN's graphs of operations. */
#pragma once
#include "cudnn_api.h"
#include "runtime/device.h"
#include "runtime/plan/toolkit.h"

enum { DNN_MOST_MADE = 140, DNN_ALIGN = 16 /* bytes, of every operand */ };

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
void dnn_set_number(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute, DnnType type,
                    int32_t value);
void dnn_set_descriptor(DnnObjects *o, DnnDescriptor d, DnnAttribute attribute,
                        DnnDescriptor value);
void dnn_finalize(DnnObjects *o, DnnDescriptor d);
void dnn_free(DnnObjects *o);

enum { DNN_MOST_DIMS = AMPC_MAX_SPATIAL + 2 };
typedef struct DnnSizes {
  int64_t n; /* of the arrays */
  int64_t dim[DNN_MOST_DIMS], stride[DNN_MOST_DIMS];
} DnnSizes;

int32_t dnn_type_of(ampc_dtype t);
/* IN_MEMORY: a place that calls give. NUMBERS: one that is aligned to an f32 only. NOWHERE: what
 * one operation hands to the next. A NUMBER is
 * given with a call, too, by the address of an f32 of the host. */
typedef enum DnnPlace { DNN_IN_MEMORY, DNN_NUMBERS, DNN_NOWHERE, DNN_NUMBER } DnnPlace;
DnnDescriptor dnn_tensor(DnnObjects *o, int64_t number, int32_t type, const DnnSizes *s,
                         DnnPlace place);
/* y = mode(x, b), or x where t and b elsewhere; worked out as `type` and rounded to y's. b and t
 * may be NULL. GEN_INDEX: where an element of x stands along `axis`. */
typedef struct DnnPointwise {
  int32_t mode, type;
  int64_t axis;
  DnnDescriptor x, b, t, y;
} DnnPointwise;
DnnDescriptor dnn_pointwise(DnnObjects *o, const DnnPointwise *p);
/* The whole of n operations; NULL: o->status says why. */
DnnDescriptor dnn_graph_of(DnnObjects *o, DnnHandle handle, int64_t n,
                           const DnnDescriptor *operations);

/* Goes up whenever cudnn_graph.c makes another graph of the same problem, or cudnn_plan.c takes
 * other engines (Note [engines]): plans that are kept are those of before. */
enum { DNN_PLAN_VERSION = 4 };

/* Note [forms] in cudnn_graph.c. */
typedef enum DnnForm { DNN_DIRECT, DNN_JOINED, DNN_FORMS } DnnForm;

enum { DNN_PROBLEM_ROOM = 640 };

/* What cuDNN is to compute. */
typedef struct DnnProblem {
  char words[DNN_PROBLEM_ROOM]; /* all that a plan depends on: for messages, and to find it again */
  bool forms[DNN_FORMS];        /* which graphs say it */
  bool exact;                   /* f32 that no engine may round to tf32 */
  const void *what;             /* the ampc_conv or ampc_attention, which must outlive this */
  /* Tells why no engine may compute it, as ampc_attention_against does. The pointer may be NULL. */
  const char *(*against)(const void *what, ampc_cudnn with, char why[AMPC_WHY_ROOM]);
  /* NULL: o->status says why. `handle` may be NULL where plans are made for a machine that is not
   * there. */
  DnnDescriptor (*graph)(DnnObjects *o, DnnHandle handle, const void *what, DnnForm form);
} DnnProblem;

/* What goes with a call of a plan: where the tensors lie, by their number. */
enum { DNN_MOST_OPERANDS = 16 };
typedef struct DnnOperands {
  int64_t number[DNN_MOST_OPERANDS];
  void *place[DNN_MOST_OPERANDS]; /* aligned as their DnnPlace says */
  uint32_t n;
} DnnOperands;
void dnn_add_operand(DnnOperands *o, int64_t number, const void *place);

/* ---- a convolution: cudnn_graph.c ---- */

DnnProblem dnn_conv_problem(const ampc_conv *c);
DnnOperands dnn_conv_operands(const ampc_conv *c, DnnForm form, const ConvOperands *at);
