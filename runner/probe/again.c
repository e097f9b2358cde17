#include "again.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/driver.h"
#include "common/number.h"
#include "runtime/runtime.h"

/* ---- the state before the step ---- */

/* Copies a space. Both programs have the same parameters, settings and optimizers, so these spaces
 * have the same layout. */
static ampc_status copy_space(ampc_runtime *from, ampc_runtime *to, ampc_space space)
{
  int64_t bytes = from->program->space_bytes[space];
  if (!bytes || space == AMPC_GRAD) return AMPC_OK;
  if (to->program->space_bytes[space] != bytes)
    return ampc_fail(AMPC_RUN_FAILED, "the program with probes has another memory layout");
  void *room = malloc((size_t)bytes);
  if (!room) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = ampc_read(from, (ampc_ref){space, 0}, room, bytes);
  if (!status) status = ampc_write(to, (ampc_ref){space, 0}, room, bytes);
  free(room);
  return status;
}

/* Another precision has other copies of weights, and perhaps no scaler. */
static ampc_status copy_run(ampc_runtime *from, ampc_runtime *to, bool alike)
{
  ampc_status status = ampc_wait(from);
  for (int s = AMPC_STATE; s < AMPC_INPUT && !status; s++)
    if (alike || s == AMPC_MASTER || s == AMPC_BUFFER) status = copy_space(from, to, (ampc_space)s);
  return status || alike ? status : ampc_refresh_copies(to);
}

/* Writes the state before the step, so that the same random numbers are drawn. */
static ampc_status set_state(Again *a, bool unscaled)
{
  const ampc_program *p = a->c->program;
  ampc_state s = a->state;
  if (unscaled) s.scale = s.inv_scale = 1;
  ampc_status status = ampc_write(a->rt, (ampc_ref){AMPC_STATE, 0}, &s, sizeof s);
  for (uint32_t i = 0; i < p->n_optimizers && !status; i++) {
    ampc_optimizer o = a->optimizers[i];
    if (unscaled && o.scale > 0) o.scale = o.inv_scale = 1;
    status = ampc_write(a->rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &o, sizeof o);
  }
  return status;
}

static ampc_status read_state(Again *a)
{
  const ampc_program *p = a->c->program;
  a->optimizers = arena_array(a->c->arena, ampc_optimizer, p->n_optimizers + 1);
  ampc_status status = ampc_get_state(a->from, &a->state);
  for (uint32_t i = 0; i < p->n_optimizers && !status; i++)
    status = ampc_read(a->from, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &a->optimizers[i],
                       sizeof a->optimizers[i]);
  return status;
}

static void go_back(Again *a)
{
  int64_t back = a->state.step - a->lost->step + 1;
  a->state.step -= back;
  a->state.body -= back * a->c->program->blocks[a->lost->at.block].accumulate;
  a->state.bad_loss = a->state.growth = 0;
  a->state.found_inf = 0;
  a->state.decided = a->state.passed = a->state.again = a->state.dropped = a->state.replay = 0;
  a->state.begun = a->state.body;
  a->state.outside = (ampc_outside){0};
}

static ampc_status open_data(void *again, uint32_t block, ampc_batches **out)
{
  const Again *a = again;
  return ampc_data.open(a->c->program, block, a->data_dir, (uint64_t)a->state.seed, out);
}

ampc_status again_open(Again *a, Compile *c, const char *device, const char *data_dir,
                       ampc_runtime *from, const Lost *lost, bool alike)
{
  static const ampc_train_options none = {.steps = 0};
  *a = (Again){.c = c, .from = from, .lost = lost, .data_dir = data_dir};
  if (!c) return ampc_fail(AMPC_RUN_FAILED, "the job no longer compiles");
  ampc_status status = jit_load(a->c, &a->jit);
  if (!status) status = ampc_create(a->c->program, device, &a->rt);
  if (!status) status = copy_run(from, a->rt, alike);
  if (!status) status = read_state(a);
  if (status) return status;
  go_back(a);
  watch_init(&a->watch, a->c);
  a->run = (Run){.rt = a->rt, .program = c->program, .data = &ampc_data, .options = &none};
  a->run.calls = (RunCalls){.context = a, .open = open_data};
  status = run_open(&a->run);
  return status ? status : run_enter(&a->run, (uint32_t)lost->at.block, 0);
}

void again_close(Again *a)
{
  if (again_data(a)) ampc_data.close(again_data(a));
  run_close(&a->run);
  ampc_free(a->rt);
  jit_unload(a->jit);
  compile_destroy(a->c);
}

/* ---- steps ---- */

ampc_status again_lost(Again *a, bool unscaled, const Seen **out)
{
  uint32_t block = (uint32_t)a->lost->at.block;
  int64_t bodies = a->c->program->blocks[block].accumulate, samples;
  ampc_batches *from = again_data(a);
  ampc_status status = set_state(a, unscaled);
  if (!status) status = ampc_data.seek(from, a->lost->at);
  *out = NULL;
  for (int64_t i = 0; i < bodies && !status && !*out; i++) {
    bool found;
    watch_clear(&a->watch);
    status = ampc_set_group(a->rt, i == 0, i + 1 == bodies);
    if (!status) status = ampc_run_batch(a->rt, &ampc_data, from, block, a->lost->step, &samples);
    if (!status) status = watch_read(&a->watch, a->rt, block, &found);
    *out = watch_first_lost(&a->watch, false);
    if (!*out) *out = watch_first_lost(&a->watch, true);
  }
  return status;
}

/* Returns how many steps the block has had before the lost one. */
static int64_t steps_before(const Again *a)
{
  const ampc_data_position *at = &a->lost->at;
  const Course *c = &a->run.course;
  return at->epoch * c->per_epoch + at->batch / c->block->accumulate;
}

ampc_status again_begin(Again *a)
{
  ampc_state state;
  ampc_data_position at;
  ampc_status status = a->start ? ampc_load_given(a->rt, a->data_dir, NULL, NULL)
                                : ampc_init_params(a->rt, (uint64_t)a->state.seed);
  if (!status && a->start) status = ampc_checkpoint_load(a->rt, a->start, &at);
  if (!status && !a->start) status = ampc_load_params(a->rt, a->data_dir, NULL, NULL);
  if (!status) status = ampc_get_state(a->rt, &state);
  a->first = state.step + 1;
  if (a->first < a->lost->step - steps_before(a)) a->first = a->lost->step - steps_before(a);
  return status;
}

ampc_status again_step(Again *a, int64_t step)
{
  uint32_t block = (uint32_t)a->lost->at.block;
  bool found;
  ampc_status status = run_enter(&a->run, block, steps_before(a) - (a->lost->step - step));
  a->run.steps = step - 1;
  watch_clear(&a->watch);
  if (!status) status = run_step(&a->run);
  return status ? status : watch_read(&a->watch, a->rt, block, &found);
}

ampc_status again_same(const Again *a, bool *out)
{
  int64_t bytes = a->from->program->space_bytes[AMPC_MASTER];
  char *own = malloc(2 * (size_t)bytes + 1);
  if (!own) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = ampc_read(a->rt, (ampc_ref){AMPC_MASTER, 0}, own, bytes);
  if (!status) status = ampc_read(a->from, (ampc_ref){AMPC_MASTER, 0}, own + bytes, bytes);
  *out = !status && memcmp(own, own + bytes, (size_t)bytes) == 0;
  free(own);
  return status;
}

double again_loss(const Again *a)
{
  const ampc_program *p = a->c->program;
  const ampc_block *b = &p->blocks[a->lost->at.block];
  double sum = 0;
  bool any = false;
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    ampc_metric m = {0};
    if (!p->metrics[i].is_loss || ampc_get_metric(a->rt, i, &m)) continue;
    sum += (double)m.last;
    any = true;
  }
  return any ? sum : NAN;
}
