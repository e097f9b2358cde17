/* Plans of cuDNN: which of its engines computes a problem, ready to run. */
#pragma once
#include "cudnn_graph.h"

/* What plans are made for. */
typedef struct DnnMachine {
  const DnnApi *api;
  int capability;           /* of the GPU: 90 for 9.0 */
  DnnHandle handle;         /* of a GPU; NULL: of one that is not here, with these */
  DnnDescriptor properties; /* finalised */
  const char *lacks;        /* why cuDNN may lack engines for this GPU here; NULL: it has all */
} DnnMachine;

enum { DNN_MOST_FAILED = 8 };

typedef struct DnnPlan {
  DnnObjects objects;
  DnnDescriptor plan; /* NULL: there is none, and `why` */
  DnnForm form;
  int64_t engine, workspace; /* cuDNN's number of the engine; bytes */
  char why[AMPC_WHY_ROOM];
  int64_t failed[DNN_MOST_FAILED]; /* engines that dnn_plan_next leaves out */
  uint32_t n_failed;
} DnnPlan;

/* The first of cuDNN's engines that computes it as we want it, Note [engines], in at most `limit`
 * bytes of workspace. False: out->why. dnn_plan_free in any case. */
bool dnn_plan_make(const DnnMachine *m, const DnnProblem *t, int64_t limit, DnnPlan *out);
/* The engine of a plan fails when it is called: the first of the others. */
bool dnn_plan_next(const DnnMachine *m, const DnnProblem *t, int64_t limit, DnnPlan *p);
void dnn_plan_free(DnnPlan *p);

/* A plan as bytes (malloced), for the same version of cuDNN and an equal GPU, and back. */
bool dnn_plan_save(const DnnPlan *p, char **out, size_t *size);
bool dnn_plan_load(const DnnMachine *m, const char *bytes, size_t size, DnnPlan *out);

/* Puts the work on the handle's stream. The workspace is aligned to DNN_ALIGN. */
DnnStatus dnn_plan_run(const DnnMachine *m, const DnnPlan *p, const DnnOperands *at,
                       void *workspace);
