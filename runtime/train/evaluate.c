/* The evaluations of a run: eval blocks on all their data once, or on `steps` batches; the averages
 * of their metrics; and what training decides from them. */
#include <math.h>
#include "common/clock.h"
#include "judge.h"
#include "run.h"
#include "runtime/outside.h"

void run_set_values(Run *r, uint32_t block)
{
  const ampc_program *p = r->program;
  const ampc_block *b = &p->blocks[block];
  const ampc_metric *at = r->sums + ampc_metric_slots(p->metrics, b->first_metric);
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    r->known[i] = at->count > 0;
    r->values[i] = r->known[i] ? metric_value(&p->metrics[i], at) : NAN;
    at += ampc_metric_slots(&p->metrics[i], 1);
  }
}

/* Reads a block's metrics into r->sums and r->values, then clears them. */
static ampc_status take_metrics(Run *r, uint32_t block)
{
  const ampc_program *p = r->program;
  const ampc_block *b = &p->blocks[block];
  ampc_status status = AMPC_OK;
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics && !status; i++)
    status = metric_read(r->rt, i, r->sums + ampc_metric_slots(p->metrics, i));
  if (status) return status;
  run_set_values(r, block);
  return ampc_clear_metrics(r->rt, block);
}

static ampc_status poll(Run *r, RunPoll when)
{
  return r->calls.poll ? r->calls.poll(r->calls.context, when, &r->stopped) : AMPC_OK;
}

/* Runs an eval block from its first batch on. */
static ampc_status evaluate(Run *r, uint32_t block)
{
  int64_t most = r->program->blocks[block].max_steps, samples;
  double begin = seconds_now();
  ampc_status status = run_data(r, block);
  ampc_batches *from = r->batches[block];
  if (!status) status = r->data->seek(from, (ampc_data_position){.block = block});
  if (!status) status = ampc_clear_metrics(r->rt, block);
  if (!status) status = poll(r, POLL_begins);
  int64_t n = status ? 0 : run_batches(r, block);
  if (most && most < n) n = most;
  for (int64_t i = 0; i < n && !status && !r->stopped; i++) {
    status = ampc_run_batch(r->rt, r->data, from, block, i, &samples);
    if (!status) status = poll(r, POLL_batch);
  }
  if (!status) status = poll(r, POLL_ends);
  if (!status) status = outside_take(r->rt);
  if (!status) status = take_metrics(r, block);
  r->evaluated[block] = r->steps;
  r->evaluating += seconds_now() - begin;
  return status;
}

/* Whether an evaluation of this block can change early stop or a plateau. */
static bool is_awaited(const Run *r, uint32_t block)
{
  return early_stop_waits_for(r, block) || plateau_waits_for(r->rt, block, r->steps);
}

static bool is_due(const Run *r, uint32_t block)
{
  const ampc_block *b = &r->program->blocks[block];
  bool due = b->every ? r->steps % b->every == 0 : r->epoch_ended;
  if (b->kind != AMPC_EVAL || r->options->train_only || r->evaluated[block] == r->steps)
    return false;
  return r->last || (due && (!r->only_awaited || is_awaited(r, block)));
}

/* Lets an evaluation change early stop and plateaus. One that runs only because the run ends
 * decides nothing: a longer run has none there, and a resumed one must end with the same bytes. */
static ampc_status judge(Run *r, RunEvent *out)
{
  uint32_t block = r->eval_block++;
  (void)out;
  r->phase = run_evaluate;
  r->ranked = r->ranked || &r->program->blocks[block] == keep_judge(r->program);
  if (r->last) return AMPC_OK;
  r->changed = r->changed || is_awaited(r, block);
  early_stop_note(r, block);
  return plateau_note(r->rt, block, r->steps, r->values, r->calls.tell, r->calls.context);
}

ampc_status run_evaluate(Run *r, RunEvent *out)
{
  uint32_t n = r->program->n_blocks;
  while (r->eval_block < n && !is_due(r, r->eval_block)) r->eval_block++;
  ampc_status status = r->eval_block < n && !r->stopped ? evaluate(r, r->eval_block) : AMPC_OK;
  bool settled = r->eval_block == n || r->stopped;
  r->phase = settled ? r->then : judge;
  *out = settled ? RUN_settled : RUN_evaluated;
  return status;
}
