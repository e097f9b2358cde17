/* Selects the checkpoint from which a run resumes: --resume, else `resume=` in the job. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "train.h"

const char *ampc_resume_path(const ampc_program *program)
{
  if (!program) return NULL;
  for (uint32_t i = 0; i < program->n_blocks; i++)
    if (program->blocks[i].resume) return program->blocks[i].resume;
  return NULL;
}

/* Whether the job or --save writes this file, so that it is missing in the first run. */
static bool is_saved_to(const Session *s, const char *path)
{
  const char *given = s->run.options->save;
  bool saved = given && strcmp(given, path) == 0;
  for (uint32_t i = 0; i < s->run.program->n_blocks && !saved; i++) {
    const char *own = s->run.program->blocks[i].save;
    saved = own && strcmp(own, path) == 0;
  }
  return saved;
}

ampc_status resume_settle(Session *s, ampc_train_options *own)
{
  const char *path = ampc_resume_path(s->run.program);
  if (own->resume || own->fresh || !path) return AMPC_OK;
  if (access(path, F_OK) == 0) {
    own->resume = path;
    s->resume_of_job = true;
    return AMPC_OK;
  }
  if (own->eval_only || !is_saved_to(s, path))
    return ampc_fail(AMPC_BAD_FILE,
                     "%s, which the job names with resume=, cannot be read: %s; --resume FILE "
                     "takes another",
                     path, strerror(errno));
  progress_note(
      &s->progress,
      "%s, which the job names with resume=, does not exist yet: the run starts from the beginning",
      path);
  return AMPC_OK;
}

void resume_tell(Session *s)
{
  const char *path = s->run.options->resume;
  if (*s->run.rt->other_part && session_leads(s))
    progress_warn(&s->progress,
                  "warning: %s was trained on samples of %s, which differ from those of the train "
                  "block now: eval blocks may read samples that it was trained on",
                  path, s->run.rt->other_part);
  if (s->resume_of_job)
    progress_note(&s->progress, "continues from %s, step %lld", path, (long long)s->run.steps);
}
