/* Runs eval blocks on all their data once, or on `steps` batches, and averages their metrics.
 * Ctrl-C ends an evaluation early. */
#include <stdlib.h>
#include "runtime/members.h"
#include "runtime/outside.h"
#include "train.h"
#include "runtime/plan/clock.h"
#include "runtime/plan/needs.h"

/* Copies the samples of a source to INPUT. If the batch of an infer block has fewer samples, its
 * first sample fills the rest: any other value could cause errors that are not in the data. */
static ampc_status bring_samples(ampc_runtime *rt, const ampc_source *s, const char *from,
                                 int64_t samples, int64_t batch)
{
  int64_t bytes = ampc_element_size(rt->program, s->dtype);
  for (uint32_t k = 0; k < s->rank; k++) bytes *= s->dim[k];
  ampc_status status = runtime_bring(rt, s->offset, from, samples * bytes);
  for (int64_t i = samples; i < batch && !status; i++)
    status = runtime_bring(rt, s->offset + i * bytes, from, bytes);
  return status;
}

typedef struct Step { /* a step of a block on the next batches */
  ampc_runtime *rt;
  const ampc_data_interface *data;
  ampc_batches *from;
  uint32_t block;
  int64_t step, bodies;
} Step;

/* Copies a member's share of a batch of `samples` to INPUT. The loader returns all sources in one
 * buffer, share after share; a share begins with the source of the lowest offset in INPUT. */
static ampc_status bring_share(const Step *s, const char *base, uint32_t member, int64_t samples)
{
  ampc_runtime *rt = s->rt;
  const ampc_program *p = rt->program;
  const ampc_block *b = &p->blocks[s->block];
  int64_t lowest = INT64_MAX;
  int64_t n = members_first(rt, member + 1, samples) - members_first(rt, member, samples);
  base += member * ampc_share_bytes(p, s->block, rt->members.all);
  for (uint32_t i = 0; i < b->n_sources; i++)
    if (p->sources[b->first_source + i].offset < lowest)
      lowest = p->sources[b->first_source + i].offset;
  ampc_status status = AMPC_OK;
  members_turn(rt, member);
  for (uint32_t i = 0; i < b->n_sources && !status; i++) {
    const ampc_source *source = &p->sources[b->first_source + i];
    status = bring_samples(rt, source, base + (source->offset - lowest), n,
                           b->kind == AMPC_INFER ? b->batch : 0);
  }
  return status ? status : members_place(rt, member, samples);
}

/* Runs a step on the next batch. *out_at: the epoch and the number of the batch. */
static ampc_status run_batch(const Step *s, int64_t *out_samples, ampc_data_position *out_at)
{
  ampc_runtime *rt = s->rt;
  const ampc_block *b = &rt->program->blocks[s->block];
  const void *base;
  double begin = profile_begin(rt);
  ampc_status status = s->data->next(s->from, &base, out_samples, out_at);
  profile_since(rt, TIME_load, s->block, begin);
  if (status) return status;
  begin = profile_begin(rt);
  status = runtime_turn_input(rt);
  for (uint32_t i = 0; i < rt->members.n && !status; i++) {
    status = bring_share(s, base, i, *out_samples);
    rt->variants[i] = members_variant(rt, b, i, *out_samples, s->step);
  }
  members_turn(rt, 0);
  profile_since(rt, TIME_upload, s->block, begin);
  if (!status && b->kind != AMPC_TRAIN) status = runtime_set_call(rt, s->step);
  return status ? status : runtime_run_step(rt, s->block, rt->variants);
}

ampc_status ampc_run_batch(ampc_runtime *rt, const ampc_data_interface *data, ampc_batches *from,
                           uint32_t block, int64_t step, int64_t *out_samples)
{
  NEEDS(rt && data && from && out_samples && block < rt->program->n_blocks);
  ampc_data_position at;
  return run_batch(&(Step){rt, data, from, block, step, 1}, out_samples, &at);
}

/* Runs all bodies of a step. *out_first: the position of the first batch. */
static ampc_status run_bodies(const Step *s, int64_t *out_samples, ampc_data_position *out_first)
{
  ampc_status status = AMPC_OK;
  ampc_data_position at;
  int64_t samples = 0;
  *out_samples = 0;
  for (int64_t i = 0; i < s->bodies && !status; i++) {
    status = ampc_set_group(s->rt, i == 0, i == s->bodies - 1);
    if (!status) status = run_batch(s, &samples, &at);
    if (i == 0) *out_first = at;
    *out_samples += samples;
  }
  return status;
}

/* Repeats a step: Note [replay] in compiler/passes/gradient.c. Repeats do not count in metrics. */
static ampc_status run_until_passed(const Step *s, int64_t *out_samples)
{
  ampc_runtime *rt = s->rt;
  const ampc_program *p = rt->program;
  const ampc_block *b = &p->blocks[s->block];
  uint32_t first = ampc_metric_slots(p->metrics, b->first_metric);
  uint32_t n = ampc_metric_slots(p->metrics + b->first_metric, b->n_metrics);
  int64_t bytes = (int64_t)(n * sizeof(ampc_metric));
  ampc_ref place = {AMPC_STATE, ampc_state_metric(p->n_optimizers, first)};
  ampc_metric *before = malloc((size_t)bytes + 1);
  if (!before) return ampc_fail(AMPC_RUN_FAILED, "out of memory for the metrics of a step");
  ampc_state state = {.replay = 1};
  ampc_data_position at = {0};
  ampc_status status = ampc_wait(rt);
  if (!status && n) status = ampc_read(rt, place, before, bytes);
  while (!status && state.replay) {
    status = run_bodies(s, out_samples, &at);
    if (!status) status = ampc_get_state(rt, &state);
    if (status || !state.replay) continue;
    status = s->data->seek(s->from, at);
    if (!status && n) status = ampc_write(rt, place, before, bytes);
  }
  free(before);
  return status;
}

ampc_status ampc_run_group(ampc_runtime *rt, const ampc_data_interface *data, ampc_batches *from,
                           uint32_t block, int64_t step, int64_t bodies, int64_t *out_samples)
{
  NEEDS(rt && data && from && out_samples && bodies > 0 && block < rt->program->n_blocks);
  const Step s = {rt, data, from, block, step, bodies};
  ampc_data_position first;
  return rt->program->scaler.replay ? run_until_passed(&s, out_samples)
                                    : run_bodies(&s, out_samples, &first);
}

void session_set_values(Session *s, uint32_t block)
{
  const ampc_program *p = s->program;
  const ampc_block *b = &p->blocks[block];
  const ampc_metric *at = s->told + ampc_metric_slots(p->metrics, b->first_metric);
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    s->known[i] = at->count > 0;
    if (s->known[i]) s->values[i] = metric_value(&p->metrics[i], at);
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
