/* The training loop.
 *
 * Note [where a run stands]
 * A checkpoint stores the number of attempted steps and the position of the next batch, together
 * with weights, optimizer state and scaler. Random numbers depend only on these counters and the
 * seed. Evaluation changes none of this. So a run that was stopped at any step and resumed ends
 * with the same bytes as an uninterrupted run. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lost.h"
#include "runtime/base/file_lock.h"
#include "runtime/base/interrupt.h"
#include "common/number.h"
#include "runtime/state/safetensors.h"
#include "train.h"
#include "common/clock.h"
#include "common/needs.h"

/* Steps between two checks of the loss if STATE must be copied from a device. */
enum { LOOK_EVERY = 100 };

/* ---- before the first step ---- */

/* Returns the path to save to; --save overrides the block's own `save`. NULL: nothing is saved. */
static const char *save_path(const Session *s, const ampc_block *b)
{
  if (s->options->train_only) return NULL;
  return s->options->save ? s->options->save : b->save;
}

/* Returns the file to which this run saves block `i`; NULL: it does not save the block. */
static const char *place_of(const Session *s, uint32_t i)
{
  const ampc_block *b = &s->program->blocks[i];
  return b->kind == AMPC_TRAIN && !s->options->eval_only ? save_path(s, b) : NULL;
}

/* Refuses a symbolic link to the file of --resume: saving would follow the link and overwrite that
 * file, perhaps unintentionally. */
static ampc_status check_link(const Session *s, const char *path)
{
  const char *resume = s->options->resume;
  struct stat info;
  if (!resume || strcmp(resume, path) == 0 || lstat(path, &info) != 0 || !S_ISLNK(info.st_mode) ||
      !file_is_same(path, resume))
    return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_FILE,
      "cannot write %s: it is a link to %s, from which the run resumes; save to that name, "
      "or to a new file",
      path, resume);
}

/* Checks before training that the checkpoint can be written, and locks its path against other runs.
 * Blocks of this run may share the path. */
static ampc_status take_place(Session *s, uint32_t block, const char *path)
{
  if (!session_leads(s)) return AMPC_OK;
  ampc_status status = file_check_writable(path, &file_checkpoint);
  if (!status) status = check_link(s, path);
  if (!status) status = file_lock(path, &s->locks[block]);
  return status;
}

static ampc_status check_saving(const Session *s, bool saves)
{
  const ampc_train_options *o = s->options;
  const char *option = o->save_every  ? "--save-every"
                       : o->keep_last ? "--keep-last"
                       : o->keep_best ? "--keep-best"
                                      : NULL;
  if (option && !saves) return ampc_fail(AMPC_BAD_USAGE, "%s needs --save FILE", option);
  if (o->eval_only && o->log_dir) /* its rows would replace rows of later steps of the run */
    return ampc_fail(AMPC_BAD_USAGE, "--log-dir is for training, not for an evaluation");
  if (o->limit_batches && o->overfit_batches)
    return ampc_fail(AMPC_BAD_USAGE, "--limit-batches cannot be combined with --overfit-batches");
  ampc_status status = keep_check(s);
  if (!status) status = weights_check(s);
  return status ? status : early_stop_check(s);
}

/* Rejects wrong options before anything is loaded or written. */
static ampc_status check_options(Session *s)
{
  const ampc_program *p = s->program;
  const ampc_train_options *o = s->options;
  uint32_t kinds[3] = {0};
  bool saves = false;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_blocks && !status; i++) {
    const ampc_block *b = &p->blocks[i];
    const char *path = place_of(s, i);
    kinds[b->kind]++;
    saves = saves || path;
    if (path) status = take_place(s, i, path);
  }
  if (status) return status;
  if (!kinds[o->eval_only ? AMPC_EVAL : AMPC_TRAIN])
    return ampc_fail(AMPC_BAD_USAGE, "%s has no %s block", p->source,
                     o->eval_only ? "eval" : "train");
  return check_saving(s, saves);
}

/* Draws initial values, then loads the files of `load` clauses over them. */
static ampc_status begin_weights(Session *s)
{
  ampc_status status = ampc_init_params(s->rt, s->seed);
  return status ? status
                : ampc_load_params(s->rt, s->options->data_dir, progress_tell, &s->progress);
}

/* Sets initial values, or loads a checkpoint. A checkpoint also sets the seed, so that the sequence
 * of random numbers continues. */
static ampc_status load_weights(Session *s)
{
  const ampc_train_options *o = s->options;
  ampc_state state;
  s->seed = o->seed_given ? o->seed : s->program->seed;
  if (!o->resume) return begin_weights(s);
  ampc_status status = ampc_checkpoint_load(s->rt, o->resume, &s->position);
  if (!status) status = ampc_get_state(s->rt, &state);
  if (status) return status;
  if (o->seed_given && (uint64_t)state.seed != o->seed)
    return ampc_fail(AMPC_BAD_USAGE, "--seed %llu: %s was made with seed %lld; leave --seed out",
                     (unsigned long long)o->seed, o->resume, state.seed);
  if (s->program->blocks[s->position.block].kind != AMPC_TRAIN)
    return ampc_fail(AMPC_BAD_FILE, "%s was not saved in a train block of %s", o->resume,
                     s->program->source);
  s->seed = (uint64_t)state.seed;
  s->steps = state.step;
  resume_tell(s);
  return AMPC_OK;
}

/* Checks the checkpoint paths again: only now all inputs of the run are known. */
static ampc_status guard_places(const Session *s)
{
  ampc_status status = weights_check(s);
  for (uint32_t i = 0; i < s->program->n_blocks && !status; i++) {
    const char *path = place_of(s, i);
    if (path && session_leads(s)) status = file_guard(path, &file_checkpoint);
  }
  return status;
}

/* Opens the data of the blocks that run. With --eval, the data of train blocks may be missing. */
static ampc_status open_data(Session *s)
{
  const ampc_program *p = s->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_blocks && !status; i++) {
    bool wanted = (p->blocks[i].kind == AMPC_EVAL && !s->options->train_only) ||
                  (p->blocks[i].kind == AMPC_TRAIN && !s->options->eval_only);
    s->evaluated[i] = s->logged[i] = -1;
    if (wanted) status = s->data->open(p, i, s->options->data_dir, s->seed, &s->batches[i]);
    if (wanted && !status) sorted_warn(s, i);
    if (wanted && !status) status = session_share(s, i);
  }
  return status ? status : guard_places(s);
}

/* ---- saving, and reasons to stop ---- */

enum { LOST_TEXT = 4096 };

/* Returns the position of the first batch of step `step` of the run, in the current block. */
static ampc_data_position position_before(const Session *s, int64_t step)
{
  uint32_t block = (uint32_t)s->position.block;
  int64_t accumulate = s->program->blocks[block].accumulate;
  int64_t per_epoch = ampc_groups(session_batches(s, block), accumulate);
  int64_t at =
      s->position.epoch * per_epoch + s->position.batch / accumulate - (s->steps + 1 - step);
  if (at < 0) at = 0;
  return (ampc_data_position){at / per_epoch, at % per_epoch * accumulate, block};
}

ampc_status check_state(Session *s, const ampc_state *state)
{
  const ampc_train_options *o = s->options;
  ampc_status status = lost_check(s->program, state, s->saved ? s->saved : o->resume, s->data,
                                  s->batches[s->position.block], o->lost);
  s->alike = status && !state->outside.check;
  if (!status || !o->lost || state->outside.check) return status;
  char text[LOST_TEXT];
  snprintf(text, sizeof text, "%s", ampc_last_error());
  int64_t step = state->bad_loss > 0 ? state->bad_loss : state->step;
  o->lost(o->context, s->rt, step, position_before(s, step), o->resume, s->saved);
  return ampc_fail(status, "%s", text); /* o->lost may have replaced the error text */
}

/* Checks the loss of the last step. Earlier steps are reported first. */
static ampc_status check_loss(Session *s)
{
  ampc_state state;
  ampc_status status = glances_take(s, true);
  if (!status) status = ampc_get_state(s->rt, &state);
  return status ? status : check_state(s, &state);
}

ampc_status session_save(Session *s, const char *path)
{
  if (s->saved && s->saved_step == s->steps && !s->judged) return AMPC_OK;
  double begin = seconds_now();
  session_busy(s);
  ampc_status status = check_loss(s);
  if (status) return status;
  status = session_agree(s, ampc_checkpoint_save(s->rt, path, s->position));
  if (status) return status;
  s->saved = path;
  s->saved_step = s->steps;
  s->judged = false;
  status = session_agree(s, keep_last(s));
  s->progress.paused += seconds_now() - begin;
  return status;
}

static void tell_unsaved(Session *s)
{
  progress_note(&s->progress, "SIGUSR1: nothing was saved (%s)",
                s->options->eval_only ? "no step was done" : "no --save");
}

/* Handles SIGUSR1: saves a checkpoint, then training continues. */
static ampc_status save_asked(Session *s)
{
  s->save_asked = false;
  ampc_status status = s->path ? session_save(s, s->path) : AMPC_OK;
  if (status) return status;
  if (s->path)
    progress_note(&s->progress, "saved %s at step %lld", s->path, (long long)s->steps);
  else
    tell_unsaved(s);
  return AMPC_OK;
}

/* Handles SIGINT, SIGTERM, SIGHUP: saves if there is a path; the run ends with AMPC_INTERRUPTED. */
static ampc_status stop_interrupted(Session *s)
{
  const char *path = s->path;
  ampc_status status = path ? session_save(s, path) : glances_take(s, true);
  if (status) return status;
  if (path) {
    progress_note(&s->progress, "interrupted after step %lld; continue with --resume %s",
                  (long long)s->steps, path);
  } else {
    progress_note(&s->progress, "interrupted after step %lld; nothing was saved (no --save)",
                  (long long)s->steps);
  }
  s->alike = true;
  return ampc_fail(AMPC_INTERRUPTED, "interrupted after step %lld", (long long)s->steps);
}

/* ---- a train block ---- */

typedef struct Course { /* the steps of one train block in this run */
  uint32_t index;
  const ampc_block *block;
  int64_t batches;    /* batches per epoch, as limited by options */
  int64_t per_epoch;  /* steps per epoch */
  int64_t first, end; /* this run trains steps [first, end) of the block */
  int64_t whole;      /* steps of the whole block; schedules use this length */
} Course;

int64_t session_batches(const Session *s, uint32_t block)
{
  const ampc_train_options *o = s->options;
  int64_t n = s->data->per_epoch(s->batches[block]);
  int64_t most = s->program->blocks[block].kind == AMPC_TRAIN && o->overfit_batches
                     ? o->overfit_batches
                     : o->limit_batches;
  return most && most < n ? most : n;
}

static ampc_data_position position_of(const Course *c, int64_t step)
{
  int64_t batch = step % c->per_epoch * c->block->accumulate;
  return (ampc_data_position){step / c->per_epoch, batch, c->index};
}

/* Returns the batches in a step. The last step of an epoch takes the batches that are left. */
static int64_t bodies_of(const Course *c, int64_t step)
{
  int64_t left = c->batches - position_of(c, step).batch;
  return left < c->block->accumulate ? left : c->block->accumulate;
}

static ampc_status write_epoch(Session *s, int64_t epoch)
{
  long long value = epoch;
  ampc_ref at = {AMPC_STATE, (int64_t)offsetof(ampc_state, epoch)};
  return ampc_write(s->rt, at, &value, sizeof value);
}

/* Moves the loader to the step's first batch if it is not there: at the first step, and at the
 * start of an epoch that options limit, because the loader does not skip batches by itself. */
static ampc_status seek(Session *s, const Course *c, int64_t step)
{
  bool limited = c->batches < s->data->per_epoch(s->batches[c->index]);
  bool begins = step % c->per_epoch == 0;
  if (step != c->first && !(limited && begins)) return AMPC_OK;
  ampc_data_position at = position_of(c, step);
  if (s->options->overfit_batches) at.epoch = 0;
  return s->data->seek(s->batches[c->index], at);
}

/* Runs one step, without the work that is due after it. Writes the epoch to STATE when it changes:
 * schedules and progress lines read it there. */
static ampc_status train_step(Session *s, const Course *c, int64_t step)
{
  int64_t samples = 0;
  double begin = seconds_now();
  ampc_status status = seek(s, c, step);
  if (!status && (step == c->first || step % c->per_epoch == 0))
    status = write_epoch(s, step / c->per_epoch);
  if (!status)
    status = ampc_run_group(s->rt, s->data, s->batches[c->index], c->index, s->steps + 1,
                            bodies_of(c, step), &samples);
  s->steps++;
  s->position = position_of(c, step + 1);
  s->progress.steps++;
  s->progress.samples += samples;
  session_stepped(s, seconds_now() - begin);
  return status ? status : session_poll(s);
}

static ampc_status look_on(Session *s, uint32_t block)
{
  const ampc_train_options *o = s->options;
  const char *note = NULL;
  if (!o->after_step) return AMPC_OK;
  ampc_status status = o->after_step(o->context, s->rt, block, s->steps, &note);
  if (note) progress_note(&s->progress, "%s", note);
  return status;
}

/* Does what is due after a step: a checkpoint, evaluations, stopping. An evaluation may fail or be
 * killed, so the checkpoint is written before it. If the evaluation changes state that a checkpoint
 * stores, the checkpoint is written again. */
static ampc_status save_and_evaluate(Session *s, const Course *c, bool epoch_ended)
{
  int64_t every = s->options->save_every ? s->options->save_every : c->block->save_every;
  bool save = s->path && every && s->steps % every == 0;
  ampc_status status = save ? session_save(s, s->path) : AMPC_OK;
  if (!status) status = evaluate_due(s, epoch_ended, false);
  if (!status && save) status = session_save(s, s->path);
  if (!status && save) status = session_poll(s); /* writing may have taken long */
  if (!status && s->save_asked) status = save_asked(s);
  return !status && s->ending ? stop_interrupted(s) : status;
}

static ampc_status after_step(Session *s, const Course *c, int64_t step)
{
  bool look = s->rt->device->host_memory || s->steps % LOOK_EVERY == 0;
  /* with --overfit-batches, epochs are too short to report */
  bool epoch_ended = (step + 1) % c->per_epoch == 0 && !s->options->overfit_batches;
  bool last = step + 1 == c->end || s->out_of_time, must = epoch_ended || last;
  ampc_status status = look_on(s, c->index);
  if (!status) status = report_step(s, c->index, must, look);
  if (!status) status = glances_take(s, must);
  return status ? status : save_and_evaluate(s, c, epoch_ended);
}

static ampc_status train_block(Session *s, const Course *c)
{
  s->path = save_path(s, c->block);
  ampc_status status = ampc_clear_metrics(s->rt, c->index);
  report_begin_block(s, c->index);
  s->position = position_of(c, c->first);
  early_stop_begin(s, c->first == 0);
  keep_begin(s);
  bool ended = s->stale;
  for (int64_t step = c->first; step < c->end && !status && !ended; step++) {
    status = train_step(s, c, step);
    if (!status) status = after_step(s, c, step);
    ended = s->out_of_time || s->stale;
  }
  if (!status) status = check_loss(s);
  return !status && s->path ? session_save(s, s->path) : status;
}

/* ---- the run ---- */

static uint32_t last_train_block(const ampc_program *p)
{
  uint32_t last = 0;
  for (uint32_t i = 0; i < p->n_blocks; i++)
    if (p->blocks[i].kind == AMPC_TRAIN) last = i;
  return last;
}

/* Computes the steps of a block that the job still requires, from the run's position on. */
static ampc_status course_of(const Session *s, uint32_t block, Course *out)
{
  const ampc_block *b = &s->program->blocks[block];
  Course c = {.index = block, .block = b, .batches = session_batches(s, block)};
  c.per_epoch = ampc_groups(c.batches, b->accumulate);
  bool resumed = s->options->resume != NULL, here = block == (uint32_t)s->position.block;
  if (!ampc_steps_of(b->epochs, c.per_epoch, &c.end) && !b->max_steps)
    return ampc_fail(
        AMPC_BAD_USAGE,
        "block `%s`: epochs=%lld of %lld steps each are more than the limit of %lld steps", b->name,
        (long long)b->epochs, (long long)c.per_epoch, (long long)AMPC_MOST_STEPS);
  if (b->max_steps) c.end = b->max_steps;
  c.whole = c.end;
  if (resumed && here) {
    if (s->position.batch % b->accumulate && s->position.batch < c.batches)
      return ampc_fail(AMPC_BAD_FILE,
                       "%s was saved after batch %lld of an epoch, within a step of "
                       "accumulate=%lld; resume with the `accumulate` that it was saved with",
                       s->options->resume, (long long)s->position.batch, (long long)b->accumulate);
    if (!ampc_steps_of(s->position.epoch, c.per_epoch, &c.first))
      return ampc_fail(AMPC_BAD_FILE, "%s is in epoch %lld of %lld steps each: no run is that long",
                       s->options->resume, (long long)s->position.epoch, (long long)c.per_epoch);
    int64_t step = s->position.batch / b->accumulate;
    c.first += step < c.per_epoch ? step : c.per_epoch;
  }
  if ((resumed && block < (uint32_t)s->position.block) || c.end < c.first) c.end = c.first;
  *out = c;
  return AMPC_OK;
}

/* Applies --steps, which shortens the run or lengthens its last train block. */
static void limit_courses(Session *s, Course *courses, uint32_t last)
{
  bool given = s->options->steps || s->options->steps_given;
  int64_t left = s->options->steps - s->steps;
  s->total = s->steps;
  for (uint32_t i = 0; i <= last; i++) {
    Course *c = &courses[i];
    if (!c->block) continue;
    int64_t n = c->end - c->first;
    if (given && (i == last || left < n)) n = left > 0 ? left : 0;
    c->end = c->first + n;
    if (!s->options->resume || i >= (uint32_t)s->position.block) c->whole = c->end;
    left -= n;
    s->total += n;
  }
}

/* Runs the evaluations that are due at the step of the checkpoint. They run after a checkpoint is
 * written, so the earlier run may have ended before them. If not, they now run again. */
static ampc_status evaluate_resumed(Session *s, const Course *c)
{
  if (!s->options->resume || s->steps == 0) return AMPC_OK;
  bool epoch_ended = c->first > 0 && c->first % c->per_epoch == 0 && !s->options->overfit_batches;
  s->path = save_path(s, c->block);
  return evaluate_due(s, epoch_ended, false);
}

/* Sets the length of schedules that have no `steps`. It depends on --steps and on the data. */
static ampc_status set_lengths(Session *s, const Course *courses)
{
  int64_t *steps = calloc(s->program->n_blocks + 1, sizeof *steps);
  if (!steps) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  for (uint32_t i = 0; i < s->program->n_blocks; i++) steps[i] = courses[i].whole;
  ampc_status status = ampc_set_lengths(s->rt, steps);
  free(steps);
  return status;
}

/* Computes the courses of all train blocks, and finds the block in which the run begins. */
static ampc_status set_courses(Session *s, Course *courses, uint32_t last)
{
  const ampc_program *p = s->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i <= last && !status; i++)
    if (p->blocks[i].kind == AMPC_TRAIN) status = course_of(s, i, &courses[i]);
  if (status) return status;
  if (!s->options->resume)
    while (!courses[s->position.block].block) s->position.block++;
  limit_courses(s, courses, last);
  return set_lengths(s, courses);
}

/* Trains the blocks in their order. set_courses limits their steps by --steps and by the position
 * of the checkpoint. If no step is left, only saves. */
static ampc_status train_blocks(Session *s)
{
  uint32_t last = last_train_block(s->program);
  Course *courses = calloc(s->program->n_blocks + 1, sizeof *courses);
  if (!courses) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = set_courses(s, courses, last);
  if (!status) status = evaluate_resumed(s, &courses[s->position.block]);
  bool any = false;
  for (uint32_t i = 0; i <= last && !status && !s->out_of_time; i++) {
    if (!courses[i].block || courses[i].first >= courses[i].end) continue;
    status = train_block(s, &courses[i]);
    any = true;
  }
  if (!status && !any) status = train_block(s, &courses[s->position.block]);
  free(courses);
  return status;
}

/* Adds the last checkpoint to the message, because that file is valid even if the device failed. */
static ampc_status name_checkpoint(const Session *s, ampc_status status)
{
  if (!s->saved || strstr(ampc_last_error(), "the last checkpoint is")) return status;
  return ampc_fail(status, "%s; the last checkpoint is %s, of step %lld", ampc_last_error(),
                   s->saved, (long long)s->saved_step);
}

static void tell_end(Session *s)
{
  if (s->save_asked && !s->saved) tell_unsaved(s); /* a late SIGUSR1 needs a reply */
  if (s->out_of_time)
    progress_note(&s->progress, "stopped by --max-time after step %lld of %lld",
                  (long long)s->steps, (long long)s->total);
  if (s->saved)
    progress_note(&s->progress, "saved %s at step %lld", s->saved, (long long)s->saved_step);
}

/* Runs the job. An evaluation that ran at the last step is not repeated. */
static ampc_status run(Session *s)
{
  ampc_status status = check_options(s);
  if (!status) status = load_weights(s);
  if (!status) status = open_data(s);
  interrupt_ask(); /* from here on, signals end the run only after a step, so that none is lost */
  if (!status) status = report_open(s);
  status = session_agree(s, status);
  if (!status) status = session_same(s);
  progress_start(&s->progress, s->options->quiet);
  if (!status && !s->options->eval_only) status = train_blocks(s);
  if (!status) status = evaluate_due(s, true, true);
  if (!status) status = session_poll(s);
  if (!status) status = weights_save(s);
  if (status) {
    progress_end_line(&s->progress);
    return status == AMPC_RUN_FAILED ? name_checkpoint(s, status) : status;
  }
  tell_end(s);
  if (s->options->train_only) return AMPC_OK;
  s->alike = s->ending;
  if (s->ending) return ampc_fail(AMPC_INTERRUPTED, "interrupted in the evaluation");
  if (session_leads(s)) progress_results(s);
  return AMPC_OK;
}

static bool make_room(Session *s)
{
  const ampc_program *p = s->program;
  s->batches = calloc(p->n_blocks + 1, sizeof *s->batches);
  s->evaluated = calloc(p->n_blocks + 1, sizeof *s->evaluated);
  s->logged = calloc(p->n_blocks + 1, sizeof *s->logged);
  s->values = calloc(p->n_metrics + 1, sizeof *s->values);
  s->known = calloc(p->n_metrics + 1, sizeof *s->known);
  s->told = calloc(ampc_metric_slots(p->metrics, p->n_metrics) + 1, sizeof *s->told);
  s->locks = malloc((p->n_blocks + 1) * sizeof *s->locks);
  for (uint32_t i = 0; s->locks && i < p->n_blocks; i++) s->locks[i] = -1;
  s->state = malloc((size_t)p->space_bytes[AMPC_STATE]);
  return s->batches && s->evaluated && s->logged && s->values && s->known && s->told && s->locks &&
         s->state;
}

static void give_back(Session *s)
{
  for (uint32_t i = 0; s->batches && i < s->program->n_blocks; i++)
    if (s->batches[i]) s->data->close(s->batches[i]);
  for (uint32_t i = 0; s->locks && i < s->program->n_blocks; i++)
    if (s->locks[i] >= 0) close(s->locks[i]);
  void *const rooms[] = {s->batches, s->locks, s->evaluated, s->logged,
                         s->values,  s->known, s->told,      s->state};
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]);
}

ampc_status ampc_train(ampc_runtime *rt, const ampc_data_interface *data,
                       const ampc_train_options *options)
{
  NEEDS(rt && data && options);
  ampc_train_options own = *options;
  Session s = {.rt = rt, .program = rt->program, .data = data, .options = &own};
  if (!session_leads(&s)) {
    own.quiet = s.progress.silent = true;
    own.json = false;
    own.log_dir = NULL;
  }
  s.deadline = options->max_time > 0 ? seconds_now() + options->max_time : HUGE_VAL;
  progress_start(&s.progress, own.quiet);
  ampc_status status = AMPC_RUN_FAILED;
  if (make_room(&s)) {
    interrupt_catch();
    status = resume_settle(&s, &own);
    if (!status) status = run(&s);
    interrupt_restore();
    status = report_end(&s, status);
    if (status && s.alike) status = session_agree(&s, status);
  } else {
    ampc_fail(status, "out of memory");
  }
  give_back(&s);
  return status;
}
