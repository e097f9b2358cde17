/* Early stop: a train block ends when the first metric of the first eval block has not become
 * better for so many evaluations in a row. What it goes by is in checkpoints, so a resumed run ends
 * where the other one would have. An evaluation that a resumed run makes again is counted once. */
#include <math.h>
#include "train.h"

int64_t early_stop_of(const Session *s, uint32_t block)
{
  const ampc_block *b = &s->program->blocks[block];
  if (b->kind != AMPC_TRAIN || s->options->eval_only) return 0;
  return s->options->early_stop ? s->options->early_stop : b->early_stop;
}

ampc_status early_stop_check(const Session *s)
{
  for (uint32_t i = 0; i < s->program->n_blocks; i++)
    if (early_stop_of(s, i) && !keep_judge(s->program))
      return ampc_fail(AMPC_BAD_USAGE, "early stop: %s has no eval block with a metric",
                       s->program->source);
  return AMPC_OK;
}

void early_stop_begin(Session *s, bool anew)
{
  Patience *p = &s->rt->patience;
  int64_t most = early_stop_of(s, (uint32_t)s->position.block);
  if (anew || !most) *p = (Patience){.any = false};
  s->stale = most && p->stale >= most;
}

/* What is not a number is no better than what is. */
void early_stop_note(Session *s, uint32_t block)
{
  const ampc_program *p = s->program;
  const ampc_block *b = &p->blocks[block];
  Patience *at = &s->rt->patience;
  int64_t most = early_stop_of(s, (uint32_t)s->position.block);
  if (!most || b != keep_judge(p) || (at->any && at->step == s->steps)) return;
  double value = s->values[b->first_metric];
  bool lower = keep_lower_is_better(&p->metrics[b->first_metric]);
  bool better = isfinite(value) && (!at->any || (lower ? value < at->best : value > at->best));
  if (better) {
    *at = (Patience){.any = true, .best = value};
  } else {
    at->stale++;
  }
  at->step = s->steps;
  s->stale = at->stale >= most;
  if (s->stale)
    progress_note(&s->progress,
                  "stopped early after step %lld: no %s %s better than %.6g in %lld evaluation%s",
                  (long long)s->steps, b->name, p->metrics[b->first_metric].name, at->best,
                  (long long)at->stale, at->stale == 1 ? "" : "s");
}
