/* :resume continues a run, as `amp train --resume` does. */
#include "commands.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the checkpoint of the argument, else of the job's `resume=`; NULL after a message. */
static const char *checkpoint_of(Repl *r, const char *arg)
{
  const char *path = ampc_resume_path(r->live->c->program);
  if (*arg) return arg;
  if (!path) repl_error(r, ":resume: the job has no resume=; give a file: :resume FILE");
  if (!path || access(path, R_OK) == 0) return path;
  repl_error(r,
             "%s, which the job names with resume=, cannot be read: %s; :train begins without it",
             path, strerror(errno));
  return NULL;
}

/* Loads weights, optimizers, counters and the position in the data, then trains the rest of the
 * job. */
bool command_resume(Repl *r, const char *arg)
{
  if (!live_ready(r)) return false;
  const char *path = checkpoint_of(r, arg);
  if (!path || !state_load(r, path)) return false;
  const ampc_program *p = r->live->c->program;
  if (p->blocks[r->position.block].kind != AMPC_TRAIN)
    return repl_error(r,
                      "%s was not saved in a train block of %s: it is loaded, but no step was run",
                      path, p->source);
  return train_steps(r, 0);
}

bool resume_remind(Repl *r)
{
  if (!live_ready(r)) return false;
  const char *path = ampc_resume_path(r->live->c->program);
  if (path && r->steps == 0 && access(path, R_OK) == 0)
    printf("this starts a new run; :resume continues from %s, the resume= of the job\n", path);
  return true;
}
