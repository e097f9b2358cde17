/* The steps of a run: see run.h. evaluate.c has its evaluations.
 *
 * Note [where a run stands]
 * A checkpoint stores the number of attempted steps and the position of the next batch, together
 * with weights, optimizer state and scaler. Random numbers depend only on these counters and the
 * seed. Evaluation changes none of this. So a run that was stopped at any step and resumed ends
 * with the same bytes as an uninterrupted run. */
#include "run.h"
#include <stddef.h>
#include <stdlib.h>
#include "common/number.h"

static RunPhase resume, enter, next_step, finish, end;

/* ---- the steps of a block ---- */

ampc_status run_data(Run *r, uint32_t block)
{
  if (r->batches[block] || !r->calls.open) return AMPC_OK;
  return r->calls.open(r->calls.context, block, &r->batches[block]);
}

int64_t run_batches(const Run *r, uint32_t block)
{
  const ampc_train_options *o = r->options;
  int64_t n = r->data->per_epoch(r->batches[block]);
  bool train = r->program->blocks[block].kind == AMPC_TRAIN;
  int64_t most = train && o->overfit_batches ? o->overfit_batches : o->limit_batches;
  return most && most < n ? most : n;
}

bool run_length(const ampc_block *b, int64_t per_epoch, int64_t *out)
{
  bool good = ampc_steps_of(b->epochs, per_epoch, out);
  if (b->max_steps) *out = b->max_steps;
  return good || b->max_steps;
}

ampc_data_position run_position(const Course *c, int64_t step)
{
  int64_t batch = step % c->per_epoch * c->block->accumulate;
  return (ampc_data_position){step / c->per_epoch, batch, c->index};
}

/* Finds the steps of a whole block. */
static ampc_status measure(Run *r, uint32_t block, Course *out)
{
  const ampc_block *b = &r->program->blocks[block];
  ampc_status status = run_data(r, block);
  if (status) return status;
  Course c = {.index = block, .block = b, .batches = run_batches(r, block)};
  c.per_epoch = ampc_groups(c.batches, b->accumulate);
  if (!run_length(b, c.per_epoch, &c.end))
    return ampc_fail(
        AMPC_BAD_USAGE,
        "block `%s`: epochs=%lld of %lld steps each are more than the limit of %lld steps", b->name,
        (long long)b->epochs, (long long)c.per_epoch, (long long)AMPC_MOST_STEPS);
  c.whole = c.end;
  *out = c;
  return AMPC_OK;
}

/* Finds the block's next step. At the prompt, the number of batches in an epoch may have changed
 * since the position was set; the number of steps done stays the same. */
static ampc_status find_first(const Run *r, Course *c)
{
  const ampc_data_position *at = &r->position;
  const char *file = r->options->resume;
  int64_t accumulate = c->block->accumulate, step = at->batch / accumulate;
  int64_t each = r->per_epoch ? ampc_groups(r->per_epoch, accumulate) : c->per_epoch;
  if (file && at->batch % accumulate && at->batch < c->batches)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s was saved after batch %lld of an epoch, within a step of "
                     "accumulate=%lld; resume with the `accumulate` that it was saved with",
                     file, (long long)at->batch, (long long)accumulate);
  bool limited = r->options->limit_batches || r->options->overfit_batches;
  if (file && !limited && at->batch > c->batches)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s was saved after batch %lld of an epoch, which now has %lld: resume with the "
        "batch size and the data that it was saved with",
        file, (long long)at->batch, (long long)c->batches);
  if (!ampc_steps_of(at->epoch, each, &c->first))
    return ampc_fail(AMPC_BAD_FILE, "%s is in epoch %lld of %lld steps each: no run is that long",
                     file ? file : "the session", (long long)at->epoch, (long long)each);
  c->first += step < each ? step : each;
  return AMPC_OK;
}

/* ---- the steps of the run ---- */

static bool is_last_block(const Run *r, uint32_t block)
{
  for (uint32_t i = block + 1; i < r->program->n_blocks; i++)
    if (r->program->blocks[i].kind == AMPC_TRAIN) return false;
  return true;
}

/* Applies --steps, which shortens the run or lengthens its last train block. */
static void limit(Run *r)
{
  bool given = r->options->steps || r->options->steps_given;
  int64_t left = r->options->steps - r->steps;
  r->total = r->steps;
  for (uint32_t i = 0; i < r->program->n_blocks; i++) {
    Course *c = &r->courses[i];
    if (!c->block) continue;
    int64_t n = c->end - c->first;
    if (given && (left < n || is_last_block(r, i))) n = left > 0 ? left : 0;
    c->end = c->first + n;
    if (given && i >= r->next_block) c->whole = c->end;
    left -= n;
    r->total += n;
  }
}

ampc_status run_find(Run *r)
{
  const ampc_program *p = r->program;
  uint32_t at = (uint32_t)r->position.block;
  ampc_status status = AMPC_OK;
  while (at < p->n_blocks && p->blocks[at].kind != AMPC_TRAIN) at++;
  if (at == p->n_blocks) return ampc_fail(AMPC_BAD_USAGE, "%s has no train block", p->source);
  if (at != r->position.block) {
    r->position = (ampc_data_position){.block = at};
    r->per_epoch = 0;
  }
  for (uint32_t i = 0; i < p->n_blocks && !status; i++) {
    Course *c = &r->courses[i];
    if (p->blocks[i].kind != AMPC_TRAIN) continue;
    status = measure(r, i, c);
    if (!status && i == at) status = find_first(r, c);
    if (i < at || c->end < c->first) c->end = c->first;
  }
  if (status) return status;
  r->next_block = at;
  limit(r);
  r->position = run_position(&r->courses[at], r->courses[at].first);
  r->per_epoch = r->courses[at].batches;
  return AMPC_OK;
}

/* Sets the length of schedules that have no `steps`. It depends on --steps and on the data. */
static ampc_status set_lengths(Run *r)
{
  int64_t *steps = calloc(r->program->n_blocks + 1, sizeof *steps);
  if (!steps) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  for (uint32_t i = 0; i < r->program->n_blocks; i++) steps[i] = r->courses[i].whole;
  ampc_status status = ampc_set_lengths(r->rt, steps);
  free(steps);
  return status;
}

ampc_status run_start(Run *r)
{
  r->phase = resume;
  ampc_status status = run_find(r);
  return status ? status : set_lengths(r);
}

/* ---- one step ---- */

static ampc_status write_epoch(const Run *r)
{
  long long epoch = r->step / r->course.per_epoch;
  ampc_ref at = {AMPC_STATE, (int64_t)offsetof(ampc_state, epoch)};
  return ampc_write(r->rt, at, &epoch, sizeof epoch);
}

/* Moves the loader to the step's first batch. With --overfit-batches, every epoch is the first. */
static ampc_status seek(const Run *r)
{
  ampc_data_position at = run_position(&r->course, r->step);
  if (r->options->overfit_batches) at.epoch = 0;
  return r->data->seek(r->batches[r->course.index], at);
}

/* Returns the batches in the next step. The last step of an epoch takes the batches that are
 * left. */
static int64_t bodies(const Run *r)
{
  const Course *c = &r->course;
  int64_t left = c->batches - run_position(c, r->step).batch;
  return left < c->block->accumulate ? left : c->block->accumulate;
}

/* Schedules and progress lines read the epoch in STATE. The loader does not skip the batches that
 * options leave out, so then each epoch begins with a seek. */
ampc_status run_step(Run *r)
{
  const Course *c = &r->course;
  ampc_batches *from = r->batches[c->index];
  bool begins = r->step % c->per_epoch == 0, limited = c->batches < r->data->per_epoch(from);
  ampc_status status = !r->sought || (begins && limited) ? seek(r) : AMPC_OK;
  if (!status && (!r->sought || begins)) status = write_epoch(r);
  if (!status)
    status = ampc_run_group(r->rt, r->data, from, c->index, r->steps + 1, bodies(r), &r->samples);
  if (status) return status;
  r->sought = true;
  r->step++;
  r->steps++;
  r->position = run_position(c, r->step);
  return AMPC_OK;
}

static void stand_at(Run *r, const Course *c, int64_t step)
{
  r->course = *c;
  r->step = step;
  r->sought = false;
  r->position = run_position(c, step);
  r->per_epoch = c->batches;
}

ampc_status run_enter(Run *r, uint32_t block, int64_t step)
{
  Course c;
  ampc_status status = measure(r, block, &c);
  if (!status) stand_at(r, &c, step);
  return status;
}

/* ---- the phases of a run ---- */

/* Runs the evaluations that are due now, then goes on with phase `then`. */
static void evaluate_then(Run *r, bool epoch_ended, RunPhase *then)
{
  r->epoch_ended = epoch_ended && !r->options->overfit_batches; /* such epochs are too short */
  r->eval_block = 0;
  r->stopped = r->ranked = false;
  r->only_awaited = r->judging;
  r->phase = run_evaluate;
  r->then = then;
}

/* Repeats the evaluations that are due at the step of the checkpoint. A checkpoint is written
 * before its evaluations, so the earlier run may not have run them. A session that continues from
 * its own last step runs only those on which training depends. */
static ampc_status resume(Run *r, RunEvent *out)
{
  (void)out;
  r->course = r->courses[r->next_block];
  r->phase = enter;
  if (r->steps && r->course.first)
    evaluate_then(r, r->course.first % r->course.per_epoch == 0, enter);
  r->only_awaited = r->judging || !r->options->resume;
  return AMPC_OK;
}

static bool goes_on(const Run *r, const Course *c, int64_t step)
{
  return c->block && (step < c->end || (r->endless && is_last_block(r, c->index)));
}

/* Returns the next train block that has steps left; n_blocks: none. */
static uint32_t find_next(const Run *r)
{
  uint32_t i = r->next_block;
  while (i < r->program->n_blocks && !goes_on(r, &r->courses[i], r->courses[i].first)) i++;
  return i;
}

/* Begins a train block. If no block has steps left, begins the one where the run stands, so that it
 * can be saved. */
static ampc_status enter(Run *r, RunEvent *out)
{
  uint32_t i = find_next(r);
  if (i == r->program->n_blocks) i = (uint32_t)r->position.block;
  r->next_block = i + 1;
  stand_at(r, &r->courses[i], r->courses[i].first);
  early_stop_begin(r);
  r->phase = next_step;
  *out = RUN_block;
  return ampc_clear_metrics(r->rt, i);
}

bool run_is_last(const Run *r)
{
  return r->finish || (!goes_on(r, &r->course, r->step) && find_next(r) == r->program->n_blocks);
}

static ampc_status next_step(Run *r, RunEvent *out)
{
  if (!r->finish && !r->stale && goes_on(r, &r->course, r->step)) {
    ampc_status status = run_step(r);
    evaluate_then(r, r->step % r->course.per_epoch == 0, next_step);
    *out = RUN_step;
    return status;
  }
  r->last = r->finish || find_next(r) == r->program->n_blocks;
  r->phase = r->last ? finish : enter;
  *out = RUN_left;
  return AMPC_OK;
}

/* Runs all evaluations that have not run at the last step. */
static ampc_status finish(Run *r, RunEvent *out)
{
  (void)out;
  r->last = true;
  evaluate_then(r, true, end);
  return AMPC_OK;
}

static ampc_status end(Run *r, RunEvent *out)
{
  (void)r;
  *out = RUN_ended;
  return AMPC_OK;
}

ampc_status run_next(Run *r, RunEvent *out)
{
  ampc_status status = AMPC_OK;
  for (*out = RUN_nothing; !status && *out == RUN_nothing;) status = r->phase(r, out);
  return status;
}

bool run_shows_skipped(const ampc_program *p, const ampc_state *state)
{
  return p->scaler.on || (state->skipped > 0 && !state->bad_loss);
}

/* ---- room ---- */

ampc_status run_open(Run *r)
{
  const ampc_program *p = r->program;
  r->phase = finish;
  r->batches = calloc(p->n_blocks + 1, sizeof *r->batches);
  r->courses = calloc(p->n_blocks + 1, sizeof *r->courses);
  r->evaluated = calloc(p->n_blocks + 1, sizeof *r->evaluated);
  r->values = calloc(p->n_metrics + 1, sizeof *r->values);
  r->known = calloc(p->n_metrics + 1, sizeof *r->known);
  r->sums = calloc(ampc_metric_slots(p->metrics, p->n_metrics) + 1, sizeof *r->sums);
  for (uint32_t i = 0; r->evaluated && i < p->n_blocks; i++) r->evaluated[i] = -1;
  return r->batches && r->courses && r->evaluated && r->values && r->known && r->sums
             ? AMPC_OK
             : ampc_fail(AMPC_RUN_FAILED, "out of memory");
}

void run_close(Run *r)
{
  void *const rooms[] = {r->batches, r->courses, r->evaluated, r->values, r->known, r->sums};
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]);
}
