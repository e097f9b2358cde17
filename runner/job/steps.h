/* Shared by verbs that train some steps of a job and save nothing: amp probe, amp profile. */
#pragma once
#include "ampc_rt.h"
#include "compiler/base/compile.h"

/* Sets what follows from the job's path and the device: input, target, the folder of the data.
 * Returns an exit status, after a message if it is not 0. */
int job_prepare(Arena *arena, const char *job, Options *compile, ampc_train_options *train);
/* Sets o->steps so that ampc_train runs `steps` steps, after those of a checkpoint if there is
 * one. */
ampc_status job_more_steps(ampc_runtime *rt, ampc_train_options *o, int64_t steps);
