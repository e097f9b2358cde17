/* Prepares a run of some steps; see steps.h. */
#include "steps.h"
#include <stdio.h>
#include <unistd.h>
#include "options.h"

int job_prepare(Arena *arena, const char *job, Options *compile, ampc_train_options *train)
{
  char *target = arena_array(arena, char, AMPC_TARGET_ROOM);
  ampc_status status = ampc_device_target(train->device, target);
  if (status) fprintf(stderr, "amp: error: %s\n", ampc_last_error());
  compile->input = job;
  compile->target = target;
  train->data_dir = compile->data_dir ? compile->data_dir : folder_of(arena, job);
  return (int)status;
}

ampc_status job_more_steps(ampc_runtime *rt, ampc_train_options *o, int64_t steps)
{
  const char *path = o->resume ? o->resume : ampc_resume_path(ampc_program_of(rt));
  ampc_state state = {.step = 0};
  ampc_data_position at;
  ampc_status status = AMPC_OK;
  if (path && (o->resume || access(path, R_OK) == 0)) status = ampc_checkpoint_load(rt, path, &at);
  if (!status) status = ampc_get_state(rt, &state);
  o->steps = state.step + steps;
  return status;
}
