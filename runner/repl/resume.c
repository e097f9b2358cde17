/* Going on with a run at the prompt, as `amp train --resume` does. */
#include "commands.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* That of the argument, else that of `resume=` in the job; NULL after a message. */
static const char *checkpoint_of(Repl *r, const char *arg)
{
  const char *path = ampc_resume_path(r->live->c->program);
  if (*arg) return arg;
  if (!path) repl_error(r, ":resume needs a file, for the job names none with resume=");
  if (!path || access(path, R_OK) == 0) return path;
  repl_error(r,
             "%s, which the job names with resume=, cannot be read: %s; :train begins without it",
             path, strerror(errno));
  return NULL;
}

/* Weights, optimizers, counters and the place in the data, then the rest of the job. */
bool command_resume(Repl *r, const char *arg)
{
  if (!live_ready(r)) return false;
  const char *path = checkpoint_of(r, arg);
  if (!path || !state_load(r, path)) return false;
  const ampc_program *p = r->live->c->program;
  if (p->blocks[r->position.block].kind != AMPC_TRAIN)
    return repl_error(r, "%s does not stand in a train block of %s: only its weights were loaded",
                      path, p->source);
  return train_steps(r, 0);
}

bool resume_remind(Repl *r)
{
  if (!live_ready(r)) return false;
  const char *path = ampc_resume_path(r->live->c->program);
  if (path && r->steps == 0 && access(path, R_OK) == 0)
    printf("this begins anew: :resume goes on from %s, which the job names with resume=\n", path);
  return true;
}
