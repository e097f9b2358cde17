/* Computes by cuDNN or by own kernels, decided once for each kind of problem: cudnn_choice.c. */
#pragma once
#include "cudnn.h"

typedef struct DnnChoice {
  char problem[DNN_PROBLEM_ROOM];
  DnnPlan plan; /* plan.plan NULL: own kernels compute the problem */
  bool ran;
} DnnChoice;

/* Bytes of scratch: Note [scratch]. The first `beside` bytes, a multiple of AMPC_CUDA_ALIGN, hold
 * operands that the caller makes. The plan's workspace of at most `limit` bytes follows. */
typedef struct DnnRoom {
  int64_t limit, beside, own; /* own: all scratch that own kernels need */
  const char *what;           /* "convolutions run", for messages */
} DnnRoom;

/* How to make a call: `operands` returns its operands; the scratch begins at `room`. */
typedef struct DnnCall {
  DnnOperands (*operands)(void *context, DnnForm form, void *room);
  void *context;
} DnnCall;

/* Call all functions below under setup_lock. dnn_choose returns the choice for a problem, and makes
 * a plan for the first problem of its kind. */
ampc_status dnn_choose(CudaDevice *d, const DnnProblem *t, const DnnRoom *room, DnnChoice **out);
/* Runs the chosen plan. If p->plan.plan is NULL after the call, nothing was computed. */
ampc_status dnn_run(CudaDevice *d, const DnnProblem *t, const DnnRoom *room, const DnnCall *call,
                    DnnChoice *p);
const DnnApi *dnn_api_of(const CudaDevice *d); /* valid once a plan has been chosen */
ampc_status dnn_scratch(CudaDevice *d, int64_t bytes, void **out);
bool dnn_is_aligned(const void *p);
