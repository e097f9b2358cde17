/* Computes by cuDNN or by own kernels, decided once for each kind of problem: cudnn_choice.c. */
#pragma once
#include "cudnn.h"

typedef struct DnnChoice {
  char problem[DNN_PROBLEM_ROOM];
  DnnPlan plan; /* if plan.plan is NULL, own kernels compute it */
  bool ran;
} DnnChoice;

/* Bytes of scratch, Note [scratch]. A call uses `beside` bytes itself, a multiple of
 * AMPC_CUDA_ALIGN; the plan's workspace follows. */
typedef struct DnnRoom {
  int64_t limit, beside, own; /* `limit`: for the plan's workspace; `own`: for own kernels */
  const char *what;           /* "convolutions run", for messages */
} DnnRoom;

/* Returns the operands; the scratch begins at `room`. */
typedef struct DnnCall {
  DnnOperands (*operands)(void *context, DnnForm form, void *room);
  void *context;
} DnnCall;

/* Call all of these under setup_lock. Makes the plan if this is the first problem of its kind. */
ampc_status dnn_choose(CudaDevice *d, const DnnProblem *t, const DnnRoom *room, DnnChoice **out);
/* Runs the chosen plan. If p->plan.plan is NULL afterwards, nothing was computed. */
ampc_status dnn_run(CudaDevice *d, const DnnProblem *t, const DnnRoom *room, const DnnCall *call,
                    DnnChoice *p);
const DnnApi *dnn_api_of(const CudaDevice *d); /* once a plan has been chosen */
ampc_status dnn_scratch(CudaDevice *d, int64_t bytes, void **out);
bool dnn_is_aligned(const void *p);
