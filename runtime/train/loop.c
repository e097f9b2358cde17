/* Training from a program's own loop: the program gives the batches (source `given`), and the
 * runtime counts them. ampc_rt.h describes the functions. */
#include <math.h>
#include <stdio.h>
#include "batch.h"
#include "run.h"
#include "runtime/outside.h"
#include "common/needs.h"
#include "common/number.h"

/* ---- opening ---- */

static bool is_given(const ampc_program *p, const ampc_block *b)
{
  return b->kind == AMPC_TRAIN && p->sources[b->first_source].kind == AMPC_SOURCE_GIVEN;
}

/* Returns the steps of a train block with given samples; 0: unknown. */
static int64_t steps_of(const ampc_program *p, const ampc_block *b)
{
  int64_t samples = p->sources[b->first_source].samples, steps;
  int64_t batches = samples / b->batch + (!b->drop_last && samples % b->batch);
  return run_length(b, ampc_groups(batches, b->accumulate), &steps) ? steps : 0;
}

ampc_status loop_set_lengths(ampc_runtime *rt)
{
  enum { BLOCKS = 64 }; /* as many bits as steps_of has */
  const ampc_program *p = rt->program;
  int64_t steps[BLOCKS] = {0};
  uint64_t unknown = 0;
  for (uint32_t i = 0; i < p->n_blocks && i < BLOCKS; i++) {
    if (!is_given(p, &p->blocks[i])) continue;
    steps[i] = steps_of(p, &p->blocks[i]);
    unknown |= (uint64_t)(steps[i] == 0) << i;
  }
  for (uint32_t i = 0; i < p->n_settings; i++)
    if (p->settings[i].steps_of & unknown)
      return ampc_fail(AMPC_BAD_USAGE,
                       "%s: %s is the number of all steps, which is not known: write `steps=` in "
                       "the schedule or in the train block",
                       p->source, p->settings[i].name);
  return ampc_set_lengths(rt, steps);
}

ampc_status ampc_loop_open(const ampc_program *program, const char *device, uint64_t seed,
                           const char *data_dir, ampc_runtime **out)
{
  NEEDS(program && out);
  ampc_status status = ampc_create(program, device, out);
  if (!status) status = ampc_init_params(*out, seed);
  if (!status) status = ampc_load_params(*out, data_dir, NULL, NULL);
  if (!status) status = loop_set_lengths(*out);
  if (status && *out) {
    ampc_free(*out);
    *out = NULL;
  }
  return status;
}

/* ---- a batch ---- */

/* Checks values that must be in a range, such as labels. */
static ampc_status check_values(const ampc_program *p, const ampc_source *s, const void *in,
                                int64_t samples)
{
  int64_t dim[AMPC_MAX_RANK] = {samples};
  for (uint32_t k = 0; k < s->rank; k++) dim[k + 1] = s->dim[k];
  return outside_argument(p, s, in, s->rank + 1, dim);
}

static ampc_status check_samples(const ampc_block *b, int64_t samples, int64_t step)
{
  char more[80] = "";
  if (samples > 0 && ampc_variant_at(b, samples, step) < b->n_variants) return AMPC_OK;
  for (uint32_t i = 0; i < b->n_variants && !*more; i++)
    if (b->variant[i].batch != b->batch)
      snprintf(more, sizeof more, ", and for the %lld at the end of an epoch",
               (long long)b->variant[i].batch);
  return ampc_fail(AMPC_BAD_USAGE, "block `%s` got %lld samples; it is compiled for %lld%s",
                   b->name, (long long)samples, (long long)b->batch, more);
}

static ampc_status check_batch(const ampc_runtime *rt, uint32_t block, const Given *g)
{
  const ampc_program *p = rt->program;
  const ampc_block *b = &p->blocks[block];
  int64_t body = rt->bodies[block];
  if (b->kind == AMPC_TRAIN && p->scaler.replay && b->accumulate > 1)
    return ampc_fail(AMPC_BAD_USAGE,
                     "block `%s`: a step with replay runs its batches again, so it cannot "
                     "accumulate batches that are given one by one",
                     b->name);
  ampc_status status = check_samples(b, g->samples, body / b->accumulate + 1);
  for (uint32_t i = 0; i < b->n_sources && !status; i++) {
    const ampc_source *s = &p->sources[b->first_source + i];
    if (s->kind != AMPC_SOURCE_GIVEN)
      return ampc_fail(AMPC_BAD_USAGE, "block `%s` reads its own data: its sources are not `given`",
                       b->name);
    if (!g->in[i])
      return ampc_fail(AMPC_BAD_USAGE, "argument %s is NULL, expected %lld samples", s->path,
                       (long long)g->samples);
    if (!g->on_device) status = check_values(p, s, g->in[i], g->samples);
  }
  return status;
}

static bool is_loop_block(const ampc_runtime *rt, uint32_t block)
{
  return block < rt->program->n_blocks && rt->program->blocks[block].kind != AMPC_INFER;
}

static ampc_status run(ampc_runtime *rt, uint32_t block, const Given *g)
{
  ampc_status status = check_batch(rt, block, g);
  if (!status) status = batch_run_given(rt, block, g, rt->bodies[block]);
  if (status) return status;
  rt->bodies[block]++;
  if (rt->program->blocks[block].kind == AMPC_TRAIN) rt->trained = block;
  return AMPC_OK;
}

ampc_status ampc_loop_run(ampc_runtime *rt, uint32_t block, int64_t samples, const void *const *in)
{
  NEEDS(rt && in && is_loop_block(rt, block));
  return run(rt, block, &(Given){in, samples, false, NULL});
}

ampc_status ampc_loop_run_on(ampc_runtime *rt, uint32_t block, int64_t samples,
                             const void *const *in, void *stream)
{
  NEEDS(rt && in && is_loop_block(rt, block));
  return run(rt, block, &(Given){in, samples, true, stream});
}

/* Without a scaler no update follows a number that is not finite. A run of amp ends there. */
static ampc_status check_finite(ampc_runtime *rt)
{
  ampc_state state;
  ampc_status status = ampc_get_state(rt, &state);
  if (status || state.bad_loss <= 0) return status;
  return ampc_fail(
      AMPC_RUN_FAILED,
      "the loss or a gradient of step %lld is not finite, so the weights do not change "
      "any longer: load a checkpoint, or begin again with a lower learning rate",
      (long long)state.bad_loss);
}

ampc_status ampc_loop_metrics(ampc_runtime *rt, uint32_t block, double *out)
{
  NEEDS(rt && out && is_loop_block(rt, block));
  const ampc_block *b = &rt->program->blocks[block];
  ampc_status status = ampc_wait(rt);
  if (!status) status = outside_take(rt);
  if (!status && b->kind == AMPC_TRAIN) status = check_finite(rt);
  for (uint32_t i = 0; i < b->n_metrics && !status; i++) {
    ampc_metric m;
    status = ampc_get_metric(rt, b->first_metric + i, &m);
    if (!status) out[i] = m.count > 0 ? m.sum / (double)m.count : (double)NAN;
  }
  if (!status) status = ampc_clear_metrics(rt, block);
  if (!status && b->kind == AMPC_EVAL) rt->bodies[block] = 0;
  return status;
}

/* ---- checkpoints ---- */

ampc_status ampc_loop_save(ampc_runtime *rt, const char *path)
{
  NEEDS(rt && path);
  const ampc_block *b = &rt->program->blocks[rt->trained];
  int64_t body = rt->bodies[rt->trained] % b->accumulate;
  if (body)
    return ampc_fail(AMPC_BAD_USAGE,
                     "a checkpoint has no gradients: save after the last of the %lld batches of a "
                     "step, not after batch %lld",
                     (long long)b->accumulate, (long long)body);
  ampc_data_position at = {.batch = rt->bodies[rt->trained], .block = rt->trained};
  return ampc_checkpoint_save(rt, path, at);
}

ampc_status ampc_loop_load(ampc_runtime *rt, const char *path)
{
  NEEDS(rt && path);
  ampc_data_position at;
  ampc_status status = ampc_checkpoint_load(rt, path, &at);
  if (status) return status;
  rt->trained = (uint32_t)at.block;
  rt->bodies[rt->trained] = at.batch;
  return AMPC_OK;
}
