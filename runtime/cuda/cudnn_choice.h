/* By cuDNN or by own kernels, decided once for each kind of problem: cudnn_choice.c. */
#pragma once
#include "cudnn.h"

typedef struct DnnChoice {
  char problem[DNN_PROBLEM_ROOM];
  DnnPlan plan; /* without plan.plan own kernels do it */
  bool ran;
} DnnChoice;

/* Bytes of scratch, Note [scratch]. A call has `beside` of its own before what the plan asks for,
 * which is a multiple of AMPC_CUDA_ALIGN. */
typedef struct DnnRoom {
  int64_t limit, beside, own; /* what a plan may ask for; what own kernels need */
  const char *what;           /* "convolutions run", for messages */
} DnnRoom;

/* Gives the operands; the scratch begins at `room`. */
typedef struct DnnCall {
  DnnOperands (*operands)(void *context, DnnForm form, void *room);
  void *context;
} DnnCall;

/* All of this under setup_lock. The plan is made if this is the first problem of its kind. */
ampc_status dnn_choose(CudaDevice *d, const DnnProblem *t, const DnnRoom *room, DnnChoice **out);
/* By the plan that was chosen. Without p->plan.plan afterwards nobody has done it. */
ampc_status dnn_run(CudaDevice *d, const DnnProblem *t, const DnnRoom *room, const DnnCall *call,
                    DnnChoice *p);
const DnnApi *dnn_api_of(const CudaDevice *d); /* once a plan has been chosen */
ampc_status dnn_scratch(CudaDevice *d, int64_t bytes, void **out);
bool dnn_is_aligned(const void *p);
