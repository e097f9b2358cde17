/* Runs steps with and without times in turn, and batches of evaluations. */
#include <string.h>
#include "compiler/cost/cpu.h"
#include "profile.h"
#include "runner/job/median.h"

/* Returns the number of steps of the warm-up. The second half is timed: timed steps have graphs of
 * their own on a GPU, which must be recorded before the measurement. There is one for each half of
 * INPUT, and one for each statement that runs in every other step. */
static int64_t warm_up(const Turns *t)
{
  return t->rt->device->host_memory ? 2 : 8;
}

int64_t turns_steps(const Turns *t, uint32_t steps)
{
  return warm_up(t) + 2 * (int64_t)steps;
}

/* Whether a step is timed. After the warm-up, the Thue-Morse sequence decides: one of each two
 * steps is timed, and of the steps in which an `every n` statement runs, some are timed and some
 * not. */
static bool is_timed(const Turns *t, int64_t step)
{
  int64_t warm = warm_up(t);
  if (step < warm) return step >= warm / 2;
  return __builtin_popcountll((unsigned long long)(step - warm)) & 1;
}

/* Keeps the time of the step that ends now; forgets the warm-up. */
static void end_turn(Turns *t, double now)
{
  double us = 1e6 * (now - t->begin);
  if (t->step == warm_up(t)) profile_clear(t->profile);
  if (t->step <= warm_up(t)) return;
  if (is_timed(t, t->step - 1)) {
    vec_push(t->arena, &t->timed, us);
  } else {
    vec_push(t->arena, &t->plain, us);
    vec_push(t->arena, &t->spans, ((TimeSpan){t->begin, now, TIME_step, 0}));
  }
}

ampc_status turns_next(Turns *t, ampc_runtime *rt)
{
  ampc_status status = runtime_profile(rt, NULL);
  end_turn(t, seconds_now());
  if (!status && is_timed(t, t->step)) status = runtime_profile(rt, t->profile);
  t->step++;
  t->begin = seconds_now();
  return status;
}

/* ---- evaluation ---- */

/* Runs two batches and forgets their times: first runs prepare libraries and record graphs, one for
 * each half of INPUT. */
static ampc_status warm_up_evaluation(const Turns *t, uint32_t block, ampc_batches *batches)
{
  Profile *forgotten = profile_create();
  if (!forgotten) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  int64_t samples;
  ampc_status status = runtime_profile(t->rt, forgotten);
  for (int64_t i = 0; i < 2 && !status; i++)
    status = ampc_run_batch(t->rt, &ampc_data, batches, block, i, &samples);
  ampc_status ended = runtime_profile(t->rt, NULL);
  profile_free(forgotten);
  return status ? status : ended;
}

static ampc_status evaluate(const Turns *t, uint32_t block, const char *data_dir, uint32_t most)
{
  ampc_batches *batches;
  int64_t samples;
  ampc_status status = ampc_data.open(t->rt->program, block, data_dir, 1, &batches);
  if (status) return status;
  int64_t n = ampc_data.per_epoch(batches);
  status = warm_up_evaluation(t, block, batches);
  if (!status) status = ampc_data.seek(batches, (ampc_data_position){0});
  if (!status) status = runtime_profile(t->rt, t->profile);
  for (int64_t i = 0; i < n && i < most && !status; i++)
    status = ampc_run_batch(t->rt, &ampc_data, batches, block, i, &samples);
  if (!status) status = runtime_profile(t->rt, NULL);
  ampc_data.close(batches);
  return status;
}

ampc_status profile_evaluate(Turns *t, const char *data_dir, uint32_t most)
{
  const ampc_program *p = t->rt->program;
  ampc_status status = runtime_profile(t->rt, NULL);
  for (uint32_t i = 0; i < p->n_blocks && !status; i++)
    if (p->blocks[i].kind == AMPC_EVAL) status = evaluate(t, i, data_dir, most);
  return status;
}

/* ---- results ---- */

void profile_finish(Turns *t, Inspection *in, Measured *out)
{
  Arena *arena = in->c->arena;
  *out = (Measured){.in = in,
                    .profile = t->profile,
                    .device = arena_strdup(arena, ampc_device_name(t->rt)),
                    .steps = t->timed.n,
                    .timed_us = median(t->timed.at, t->timed.n),
                    .plain_us = median(t->plain.at, t->plain.n),
                    .plain = t->spans.at,
                    .n_plain = t->spans.n};
  out->gpu = t->rt->device->host_memory ? cpu_measure(arena) : gpu_of_device(out->device);
  profile_sum(out, t->rt);
}
