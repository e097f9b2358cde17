/* What a device computed in a job, and its comparison with another device. */
#pragma once
#include "graph.h"

enum {
  JOB_STEPS = 3,
  JOB_BODIES = 2 /* optimizers accumulate over two bodies, so a body alone leaves its gradients,
                    halved, in GRAD */
};
#define JOB_DROP 0.01 /* share of the loss by which a plain step should lower it */

typedef struct JobResult {
  char precision[8];
  double own_loss;        /* of step 1 of the job as it is */
  double loss[JOB_STEPS]; /* of plain steps: Note [plain steps] in jobs.c */
  uint32_t n_params;
  const char **path; /* of each parameter */
  int64_t *elements; /* of each parameter */
  float **gradient;  /* of step 1, by parameter; NULL: it has no optimizer */
  double *moved;     /* by parameter: the length of the first change by its optimizer */
  double *blur;      /* by parameter: the length of what the rounding of its weights may change */
  int64_t waits;     /* waits for the GPU in blind steps */
} JobResult;

double job_norm(const float *x, int64_t n);
double job_distance(const float *x, const float *y, int64_t n); /* norm of x - y */
/* Reports the comparison of `got`, by a GPU, with `want`, by the cpu. `wide`: the cpu in f32. */
void job_compare(Arena *a, TestRun *run, const char *job, const JobResult *got,
                 const JobResult *want, const JobResult *wide);
