/* Runs steps of blocks on batches: copies each member's share to INPUT, and starts the step. The
 * batches come from the data of the job, or from the calling program. */
#include "ampc_metrics.h"
#include "batch.h"
#include <stdlib.h>
#include "statistics.h"
#include "runtime/members.h"
#include "common/clock.h"
#include "common/needs.h"

/* Returns the bytes of a sample. */
static int64_t sample_bytes(const ampc_program *p, const ampc_source *s)
{
  int64_t bytes = ampc_element_size(p, s->dtype);
  for (uint32_t k = 0; k < s->rank; k++) bytes *= s->dim[k];
  return bytes;
}

/* Copies the samples of a source to INPUT. If the batch of an infer block has fewer samples, its
 * first sample fills the rest: any other value could cause errors that are not in the data. */
static ampc_status bring_samples(ampc_runtime *rt, const ampc_source *s, const char *from,
                                 int64_t samples, int64_t batch)
{
  int64_t bytes = sample_bytes(rt->program, s);
  ampc_status status = runtime_bring(rt, s->offset, from, samples * bytes);
  for (int64_t i = samples; i < batch && !status; i++)
    status = runtime_bring(rt, s->offset + i * bytes, from, bytes);
  return status;
}

typedef struct Step { /* a step of a block on the next batches */
  ampc_runtime *rt;
  const ampc_data_interface *data; /* NULL: `given` is the batch */
  ampc_batches *from;
  uint32_t block;
  int64_t step, bodies;
  const Given *given;
} Step;

/* Copies a member's share of the given samples to INPUT. */
static ampc_status bring_given(const Step *s, uint32_t member, int64_t samples)
{
  ampc_runtime *rt = s->rt;
  const ampc_block *b = &rt->program->blocks[s->block];
  int64_t first = members_first(rt, member, samples);
  int64_t n = members_first(rt, member + 1, samples) - first;
  ampc_status status = AMPC_OK;
  members_turn(rt, member);
  for (uint32_t i = 0; i < b->n_sources && !status; i++) {
    const ampc_source *source = &rt->program->sources[b->first_source + i];
    int64_t bytes = sample_bytes(rt->program, source);
    const char *from = (const char *)s->given->in[i] + first * bytes;
    status = s->given->on_device
                 ? runtime_bring_on(rt, source->offset, from, n * bytes, s->given->stream)
                 : runtime_bring(rt, source->offset, from, n * bytes);
  }
  return status ? status : members_place(rt, member, samples);
}

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
  const void *base = NULL;
  double begin = profile_begin(rt), waiting = seconds_now();
  ampc_status status = s->given ? AMPC_OK : statistics_fill(rt, s->data, s->from, s->block);
  if (status) return status;
  if (s->given) *out_samples = s->given->samples;
  if (!s->given) status = s->data->next(s->from, &base, out_samples, out_at);
  if (b->kind == AMPC_TRAIN) rt->waited += seconds_now() - waiting;
  profile_since(rt, TIME_load, s->block, begin);
  if (status) return status;
  begin = profile_begin(rt);
  status = runtime_turn_input(rt);
  for (uint32_t i = 0; i < rt->members.n && !status; i++) {
    status = s->given ? bring_given(s, i, *out_samples) : bring_share(s, base, i, *out_samples);
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
  return run_batch(&(Step){rt, data, from, block, step, 1, NULL}, out_samples, &at);
}

/* Runs all bodies of a step. *out_first: the position of the first batch. */
static ampc_status run_bodies(const Step *s, int64_t *out_samples, ampc_data_position *out_first)
{
  ampc_status status = AMPC_OK;
  ampc_data_position at = {0};
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
    if (!s->given) status = s->data->seek(s->from, at);
    if (!status && n) status = ampc_write(rt, place, before, bytes);
  }
  free(before);
  return status;
}

ampc_status ampc_run_group(ampc_runtime *rt, const ampc_data_interface *data, ampc_batches *from,
                           uint32_t block, int64_t step, int64_t bodies, int64_t *out_samples)
{
  NEEDS(rt && data && from && out_samples && bodies > 0 && block < rt->program->n_blocks);
  const Step s = {rt, data, from, block, step, bodies, NULL};
  ampc_data_position first;
  return rt->program->scaler.replay ? run_until_passed(&s, out_samples)
                                    : run_bodies(&s, out_samples, &first);
}

/* Runs the body number `body` of its step, or the whole step if it has one body. */
ampc_status batch_run_given(ampc_runtime *rt, uint32_t block, const Given *given, int64_t body)
{
  const ampc_block *b = &rt->program->blocks[block];
  bool train = b->kind == AMPC_TRAIN;
  Step s = {.rt = rt, .block = block, .step = body, .bodies = 1, .given = given};
  int64_t samples;
  ampc_data_position at;
  if (!train) return run_batch(&s, &samples, &at);
  s.step = body / b->accumulate + 1;
  if (rt->program->scaler.replay) return run_until_passed(&s, &samples);
  bool first = body % b->accumulate == 0, closes = (body + 1) % b->accumulate == 0;
  ampc_status status = ampc_set_group(rt, first, closes);
  return status ? status : run_batch(&s, &samples, &at);
}
