/* Plans of cuDNN: a problem and the engine that computes it, ready to run. */
#pragma once
#include "cudnn_graph.h"

/* The GPU for which plans are made. */
typedef struct DnnMachine {
  const DnnApi *api;
  int capability;           /* compute capability of the GPU: 90 for 9.0 */
  DnnHandle handle;         /* NULL: this machine does not have the GPU */
  DnnDescriptor properties; /* finalised; describes an absent GPU */
  const char *lacks; /* NULL, or why cuDNN may have fewer engines for the GPU on this machine */
} DnnMachine;

enum { DNN_MOST_FAILED = 8 };

typedef struct DnnPlan {
  DnnObjects objects;
  DnnDescriptor plan; /* NULL: no plan; `why` has the reason */
  DnnForm form;
  int64_t engine, workspace; /* engine: cuDNN's number; workspace: bytes */
  char why[AMPC_WHY_ROOM];
  int64_t failed[DNN_MOST_FAILED]; /* engines that dnn_plan_next skips */
  uint32_t n_failed;
} DnnPlan;

/* Chooses cuDNN's first engine that satisfies Note [engines] with at most `limit` bytes of
 * workspace. False: see out->why. Call dnn_plan_free in any case. */
bool dnn_plan_make(const DnnMachine *m, const DnnProblem *t, int64_t limit, DnnPlan *out);
/* Call this if the plan's engine fails in a call: chooses the first of the other engines. */
bool dnn_plan_next(const DnnMachine *m, const DnnProblem *t, int64_t limit, DnnPlan *p);
void dnn_plan_free(DnnPlan *p);

/* Save and load a plan. The caller of dnn_plan_save frees *out. The bytes are valid only for the
 * same version of cuDNN and the same model of GPU. */
bool dnn_plan_save(const DnnPlan *p, char **out, size_t *size);
bool dnn_plan_load(const DnnMachine *m, const char *bytes, size_t size, DnnPlan *out);

/* Runs the plan on the handle's stream. The workspace is aligned to DNN_ALIGN. */
DnnStatus dnn_plan_run(const DnnMachine *m, const DnnPlan *p, const DnnOperands *at,
                       void *workspace);
