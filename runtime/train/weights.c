/* --save-weights: the weights at the end of a run, for other programs. */
#include <string.h>
#include "common/file.h"
#include "train.h"

/* Refuses a file to which the run saves its checkpoint. */
static ampc_status check_apart(const Session *s, const char *path)
{
  for (uint32_t i = 0; i < s->run.program->n_blocks; i++) {
    const char *save = s->run.options->save ? s->run.options->save : s->run.program->blocks[i].save;
    if (save && (strcmp(save, path) == 0 || file_is_same(save, path)))
      return ampc_fail(AMPC_BAD_USAGE,
                       "--save-weights %s: the run saves its checkpoint to %s; give the weights "
                       "another name",
                       path, save);
  }
  return AMPC_OK;
}

ampc_status weights_check(const Session *s)
{
  const char *path = s->run.options->save_weights;
  if (!path) return AMPC_OK;
  ampc_status status = check_apart(s, path);
  return status || !session_leads(s) ? status : file_check_writable(path, &file_weights);
}

ampc_status weights_save(Session *s)
{
  const char *path = s->run.options->save_weights;
  if (!path) return AMPC_OK;
  session_busy(s);
  ampc_status status = session_agree(s, ampc_weights_save(s->run.rt, path));
  if (!status) progress_note(&s->progress, "saved the weights to %s", path);
  return status;
}
