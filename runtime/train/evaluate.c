/* Runs eval blocks on all their data once, or on `steps` batches, and averages their metrics.
 * Ctrl-C ends an evaluation early. */
#include <math.h>
#include "runtime/outside.h"
#include "train.h"
#include "common/clock.h"

void session_set_values(Session *s, uint32_t block)
{
  const ampc_program *p = s->program;
  const ampc_block *b = &p->blocks[block];
  const ampc_metric *at = s->told + ampc_metric_slots(p->metrics, b->first_metric);
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    s->known[i] = at->count > 0;
    s->values[i] = s->known[i] ? metric_value(&p->metrics[i], at) : NAN;
    at += ampc_metric_slots(&p->metrics[i], 1);
  }
}

/* Reads a block's metrics into s->told and s->values, then clears them. */
static ampc_status session_take_metrics(Session *s, uint32_t block)
{
  const ampc_program *p = s->program;
  const ampc_block *b = &p->blocks[block];
  ampc_status status = AMPC_OK;
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics && !status; i++)
    status = metric_read(s->rt, i, s->told + ampc_metric_slots(p->metrics, i));
  if (status) return status;
  session_set_values(s, block);
  return ampc_clear_metrics(s->rt, block);
}

/* Runs an eval block over all its data. */
static ampc_status evaluate(Session *s, uint32_t block)
{
  double begin = seconds_now();
  ampc_status status = s->data->seek(s->batches[block], (ampc_data_position){0});
  if (!status) status = ampc_clear_metrics(s->rt, block);
  int64_t n = session_batches(s, block), most = s->program->blocks[block].max_steps;
  if (most && most < n) n = most;
  int64_t samples;
  session_busy(s);
  for (int64_t i = 0; i < n && !status && !s->ending; i++) {
    status = ampc_run_batch(s->rt, s->data, s->batches[block], block, i, &samples);
    if (!status) status = session_poll(s);
  }
  if (!status) status = glances_take(s, true); /* report these steps first */
  if (!status) status = outside_take(s->rt);
  if (!status) status = session_take_metrics(s, block);
  s->evaluated[block] = s->steps;
  s->progress.paused += seconds_now() - begin;
  return status;
}

static void tell_lowered(void *to, bool warning, const char *line)
{
  (void)warning;
  progress_note(to, "%s", line);
}

/* Lets an evaluation change early stop and plateaus, except the evaluation at the end of a run: if
 * the run is stopped there and resumed, that evaluation does not exist. */
static ampc_status judge(Session *s, uint32_t block, bool last)
{
  if (last) return AMPC_OK;
  int64_t most = early_stop_of(s, (uint32_t)s->position.block);
  s->judged |=
      patience_waits_for(s->rt, block, most, s->steps) || plateau_waits_for(s->rt, block, s->steps);
  early_stop_note(s, block);
  return plateau_note(s->rt, block, s->steps, s->values, tell_lowered, &s->progress);
}

/* Runs keep_best after all evaluations of this step, so that the kept file includes their effects
 * on settings and early stop. */
ampc_status evaluate_due(Session *s, bool epoch_ended, bool last)
{
  const ampc_program *p = s->program;
  uint32_t first = p->n_blocks; /* the block that ranks checkpoints */
  if (s->options->train_only) return AMPC_OK;
  for (uint32_t i = 0; i < p->n_blocks; i++) {
    const ampc_block *b = &p->blocks[i];
    bool due = b->every ? s->steps % b->every == 0 : epoch_ended;
    if (b->kind != AMPC_EVAL || s->evaluated[i] == s->steps || !(due || last)) continue;
    ampc_status status = evaluate(s, i);
    if (status || s->ending) return status;
    report_evaluated(s, i);
    if (b == keep_judge(p)) first = i;
    status = judge(s, i, last);
    if (status) return status;
  }
  return first < p->n_blocks ? keep_best(s, first) : AMPC_OK;
}
