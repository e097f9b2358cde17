/* Early stop: a train block ends when the first metric of the first eval block has not improved for
 * a given number of evaluations in a row. Checkpoints store this state, so a resumed run ends at
 * the same step as an uninterrupted run. If a resumed run repeats an evaluation, it counts once. */
#include <math.h>
#include <stdio.h>
#include "train.h"

/* ---- for the training loop and `amp repl` ---- */

bool patience_begin(ampc_runtime *rt, int64_t most, bool anew)
{
  Patience *p = &rt->patience;
  if (anew || !most) *p = (Patience){.any = false};
  return most && p->stale >= most;
}

bool patience_waits_for(const ampc_runtime *rt, uint32_t block, int64_t most, int64_t step)
{
  const Patience *at = &rt->patience;
  return most && &rt->program->blocks[block] == keep_judge(rt->program) &&
         !(at->any && at->step == step);
}

/* Counts an evaluation. A value that is not finite is never an improvement. */
bool patience_note(ampc_runtime *rt, uint32_t block, int64_t most, int64_t step, double value)
{
  const ampc_program *p = rt->program;
  const ampc_block *b = &p->blocks[block];
  Patience *at = &rt->patience;
  if (!patience_waits_for(rt, block, most, step)) return most && at->stale >= most;
  bool lower = keep_lower_is_better(&p->metrics[b->first_metric]);
  bool better = isfinite(value) && (!at->any || (lower ? value < at->best : value > at->best));
  if (better) {
    *at = (Patience){.any = true, .best = value};
  } else {
    at->stale++;
  }
  at->step = step;
  return at->stale >= most;
}

void patience_text(const ampc_runtime *rt, char to[PATIENCE_ROOM])
{
  const ampc_block *b = keep_judge(rt->program);
  const Patience *at = &rt->patience;
  snprintf(to, PATIENCE_ROOM,
           "stopped early after step %lld: no %s %s better than %.6g in %lld evaluation%s",
           (long long)at->step, b->name, rt->program->metrics[b->first_metric].name, at->best,
           (long long)at->stale, at->stale == 1 ? "" : "s");
}

/* ---- the training loop ---- */

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
  s->stale = patience_begin(s->rt, early_stop_of(s, (uint32_t)s->position.block), anew);
}

void early_stop_note(Session *s, uint32_t block)
{
  char line[PATIENCE_ROOM];
  int64_t most = early_stop_of(s, (uint32_t)s->position.block);
  bool before = s->stale;
  s->stale = patience_note(s->rt, block, most, s->steps,
                           s->values[s->program->blocks[block].first_metric]);
  if (!s->stale || before) return;
  patience_text(s->rt, line);
  progress_note(&s->progress, "%s", line);
}
