/* Early stop: a train block ends when the first metric of the first eval block has not improved for
 * a given number of evaluations in a row. Checkpoints store this state, so a resumed run ends at
 * the same step as an uninterrupted run. If a resumed run repeats an evaluation, it counts once. */
#include <math.h>
#include <stdio.h>
#include "judge.h"
#include "run.h"

int64_t early_stop_of(const Run *r, uint32_t block)
{
  const ampc_block *b = &r->program->blocks[block];
  if (b->kind != AMPC_TRAIN || r->options->eval_only) return 0;
  return r->options->early_stop ? r->options->early_stop : b->early_stop;
}

ampc_status early_stop_check(const Run *r)
{
  for (uint32_t i = 0; i < r->program->n_blocks; i++)
    if (early_stop_of(r, i) && !keep_judge(r->program))
      return ampc_fail(AMPC_BAD_USAGE, "early stop: %s has no eval block with a metric",
                       r->program->source);
  return AMPC_OK;
}

bool early_stop_waits_for(const Run *r, uint32_t block)
{
  const Patience *at = &r->rt->patience;
  return early_stop_of(r, r->course.index) &&
         &r->program->blocks[block] == keep_judge(r->program) && !(at->any && at->step == r->steps);
}

/* Decides whether the block ends, and says it once. */
static void decide(Run *r)
{
  const Patience *at = &r->rt->patience;
  const ampc_block *b = keep_judge(r->program);
  int64_t most = early_stop_of(r, r->course.index);
  char line[256];
  bool before = r->stale;
  r->stale = most && at->stale >= most;
  if (!r->stale || before) return;
  snprintf(line, sizeof line,
           "stopped early after step %lld: no %s %s better than %.6g in %lld evaluation%s",
           (long long)at->step, b->name, r->program->metrics[b->first_metric].name, at->best,
           (long long)at->stale, at->stale == 1 ? "" : "s");
  r->calls.tell(r->calls.context, false, line);
}

void early_stop_begin(Run *r)
{
  if (r->step == 0 || !early_stop_of(r, r->course.index))
    r->rt->patience = (Patience){.any = false};
  decide(r);
}

/* A value that is not finite is never an improvement. */
void early_stop_note(Run *r, uint32_t block)
{
  uint32_t metric = r->program->blocks[block].first_metric;
  double value = r->values[metric];
  Patience *at = &r->rt->patience;
  if (early_stop_waits_for(r, block)) {
    bool lower = keep_lower_is_better(&r->program->metrics[metric]);
    bool better = isfinite(value) && (!at->any || (lower ? value < at->best : value > at->best));
    if (better)
      *at = (Patience){.any = true, .best = value};
    else
      at->stale++;
    at->step = r->steps;
  }
  decide(r);
}
