/* The training loop: what happens before a run, after each of its events, and at its end. */
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
  if (s->run.options->train_only) return NULL;
  return s->run.options->save ? s->run.options->save : b->save;
}

/* Returns the file to which this run saves block `i`; NULL: it does not save the block. */
static const char *place_of(const Session *s, uint32_t i)
{
  const ampc_block *b = &s->run.program->blocks[i];
  return b->kind == AMPC_TRAIN && !s->run.options->eval_only ? save_path(s, b) : NULL;
}

/* Refuses a symbolic link to the file of --resume: saving would follow the link and overwrite that
 * file, perhaps unintentionally. */
static ampc_status check_link(const Session *s, const char *path)
{
  const char *resume = s->run.options->resume;
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
  const ampc_train_options *o = s->run.options;
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
  return status ? status : early_stop_check(&s->run);
}

/* Rejects wrong options before anything is loaded or written. */
static ampc_status check_options(Session *s)
{
  const ampc_program *p = s->run.program;
  const ampc_train_options *o = s->run.options;
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
  ampc_status status = ampc_init_params(s->run.rt, s->seed);
  return status
             ? status
             : ampc_load_params(s->run.rt, s->run.options->data_dir, progress_tell, &s->progress);
}

/* Sets initial values, or loads a checkpoint. A checkpoint also sets the seed, so that the sequence
 * of random numbers continues. */
static ampc_status load_weights(Session *s)
{
  const ampc_train_options *o = s->run.options;
  ampc_state state;
  s->seed = o->seed_given ? o->seed : s->run.program->seed;
  if (!o->resume) return begin_weights(s);
  ampc_status status = ampc_load_given(s->run.rt, o->data_dir, progress_tell, &s->progress);
  if (!status) status = ampc_checkpoint_load(s->run.rt, o->resume, &s->run.position);
  if (!status) status = ampc_get_state(s->run.rt, &state);
  if (status) return status;
  if (o->seed_given && (uint64_t)state.seed != o->seed)
    return ampc_fail(AMPC_BAD_USAGE, "--seed %llu: %s was made with seed %lld; leave --seed out",
                     (unsigned long long)o->seed, o->resume, state.seed);
  if (s->run.program->blocks[s->run.position.block].kind != AMPC_TRAIN)
    return ampc_fail(AMPC_BAD_FILE, "%s was not saved in a train block of %s", o->resume,
                     s->run.program->source);
  s->seed = (uint64_t)state.seed;
  s->run.steps = state.step;
  resume_tell(s);
  return AMPC_OK;
}

/* Checks the checkpoint paths again: only now all inputs of the run are known. */
static ampc_status guard_places(const Session *s)
{
  ampc_status status = weights_check(s);
  for (uint32_t i = 0; i < s->run.program->n_blocks && !status; i++) {
    const char *path = place_of(s, i);
    if (path && session_leads(s)) status = file_guard(path, &file_checkpoint);
  }
  return status;
}

/* Opens the data of the blocks that run. With --eval, the data of train blocks may be missing. */
static ampc_status open_data(Session *s)
{
  const ampc_program *p = s->run.program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_blocks && !status; i++) {
    bool wanted = (p->blocks[i].kind == AMPC_EVAL && !s->run.options->train_only) ||
                  (p->blocks[i].kind == AMPC_TRAIN && !s->run.options->eval_only);
    if (wanted)
      status = s->run.data->open(p, i, s->run.options->data_dir, s->seed, &s->run.batches[i]);
    if (wanted && !status) sorted_warn(s, i);
    if (wanted && !status) status = session_share(s, i);
  }
  return status ? status : guard_places(s);
}

/* ---- saving, and reasons to stop ---- */

enum { LOST_TEXT = 4096 };

/* Returns the position of the first batch of step `step` of the run, in the current block. */
static ampc_data_position position_before(const Run *r, int64_t step)
{
  int64_t at = r->step - (r->steps + 1 - step);
  return run_position(&r->course, at < 0 ? 0 : at);
}

ampc_status check_state(Session *s, const ampc_state *state)
{
  const ampc_train_options *o = s->run.options;
  ampc_status status = lost_check(s->run.program, state, s->saved ? s->saved : o->resume,
                                  s->run.data, s->run.batches[s->run.position.block], o->lost);
  s->alike = status && !state->outside.check;
  if (!status || !o->lost || state->outside.check) return status;
  char text[LOST_TEXT];
  snprintf(text, sizeof text, "%s", ampc_last_error());
  int64_t step = state->bad_loss > 0 ? state->bad_loss : state->step;
  o->lost(o->context, s->run.rt, step, position_before(&s->run, step), o->resume, s->saved);
  return ampc_fail(status, "%s", text); /* o->lost may have replaced the error text */
}

/* Checks the loss of the last step. Earlier steps are reported first. */
static ampc_status check_loss(Session *s)
{
  ampc_state state;
  ampc_status status = glances_take(s, true);
  if (!status) status = ampc_get_state(s->run.rt, &state);
  return status ? status : check_state(s, &state);
}

ampc_status session_save(Session *s, const char *path)
{
  if (s->saved && s->saved_step == s->run.steps && !s->run.changed) return AMPC_OK;
  double begin = seconds_now();
  session_busy(s);
  ampc_status status = check_loss(s);
  if (status) return status;
  status = session_agree(s, ampc_checkpoint_save(s->run.rt, path, s->run.position));
  if (status) return status;
  s->saved = path;
  s->saved_step = s->run.steps;
  s->run.changed = false;
  status = session_agree(s, keep_last(s));
  s->progress.paused += seconds_now() - begin;
  return status;
}

static void tell_unsaved(Session *s)
{
  progress_note(&s->progress, "SIGUSR1: nothing was saved (%s)",
                s->run.options->eval_only ? "no step was done" : "no --save");
}

/* Handles SIGUSR1: saves a checkpoint, then training continues. */
static ampc_status save_asked(Session *s)
{
  s->save_asked = false;
  ampc_status status = s->path ? session_save(s, s->path) : AMPC_OK;
  if (status) return status;
  if (s->path)
    progress_note(&s->progress, "saved %s at step %lld", s->path, (long long)s->run.steps);
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
                  (long long)s->run.steps, path);
  } else {
    progress_note(&s->progress, "interrupted after step %lld; nothing was saved (no --save)",
                  (long long)s->run.steps);
  }
  s->alike = true;
  return ampc_fail(AMPC_INTERRUPTED, "interrupted after step %lld", (long long)s->run.steps);
}

/* ---- what follows the events of a run ---- */

static ampc_status look_on(Session *s)
{
  const ampc_train_options *o = s->run.options;
  const char *note = NULL;
  if (!o->after_step) return AMPC_OK;
  ampc_status status =
      o->after_step(o->context, s->run.rt, s->run.course.index, s->run.steps, &note);
  if (note) progress_note(&s->progress, "%s", note);
  return status;
}

static ampc_status begin_block(Session *s)
{
  s->path = place_of(s, s->run.course.index);
  report_begin_block(s, s->run.course.index);
  keep_begin(s);
  return AMPC_OK;
}

/* Reports a step. An evaluation may fail or be killed, so a checkpoint that is due is written
 * before it. */
static ampc_status after_step(Session *s)
{
  const Run *r = &s->run;
  s->progress.steps++;
  s->progress.samples += r->samples;
  session_stepped(s, s->seconds);
  ampc_status status = session_poll(s);
  s->run.finish = s->out_of_time;
  bool look = r->rt->device->host_memory || r->steps % LOOK_EVERY == 0;
  bool must = r->epoch_ended || r->step == r->course.end || s->out_of_time;
  int64_t every = r->options->save_every ? r->options->save_every : r->course.block->save_every;
  s->saves = s->path && every && r->steps % every == 0;
  if (!status) status = look_on(s);
  if (!status) status = report_step(s, r->course.index, must, look);
  if (!status) status = glances_take(s, must);
  return !status && s->saves ? session_save(s, s->path) : status;
}

static ampc_status after_evaluation(Session *s)
{
  report_evaluated(s, s->run.eval_block);
  return AMPC_OK;
}

/* Keeps the state if its evaluation is among the best. The kept file contains what all evaluations
 * have decided. after_step has written the checkpoint that was due; if an evaluation has changed
 * what it stores, it is written again. */
static ampc_status settle(Session *s)
{
  bool saves = s->saves;
  ampc_status status = s->run.ranked && !s->ending ? keep_best(s) : AMPC_OK;
  s->saves = false;
  if (s->run.last) return status; /* the run has been saved */
  if (!status && saves) status = session_save(s, s->path);
  if (!status && saves) status = session_poll(s); /* writing may have taken long */
  if (!status && s->save_asked) status = save_asked(s);
  s->run.finish = s->out_of_time;
  return !status && s->ending ? stop_interrupted(s) : status;
}

static ampc_status end_block(Session *s)
{
  ampc_status status = check_loss(s);
  return !status && s->path ? session_save(s, s->path) : status;
}

static void tell(void *session, bool warning, const char *line)
{
  Session *s = session;
  (void)warning;
  progress_note(&s->progress, "%s", line);
}

/* An evaluation stops when the run is to end. Steps are reported before it. */
static ampc_status poll_session(void *session, RunPoll when, bool *out_stop)
{
  Session *s = session;
  if (when == POLL_begins) session_busy(s);
  if (when == POLL_ends) return glances_take(s, true);
  ampc_status status = when == POLL_batch ? session_poll(s) : AMPC_OK;
  *out_stop = s->ending;
  return status;
}

static ampc_status do_run(Session *s)
{
  static ampc_status (*const after[RUN_EVENTS])(Session *) = {[RUN_block] = begin_block,
                                                              [RUN_step] = after_step,
                                                              [RUN_evaluated] = after_evaluation,
                                                              [RUN_settled] = settle,
                                                              [RUN_left] = end_block};
  RunEvent event = RUN_nothing;
  ampc_status status = s->run.options->eval_only ? AMPC_OK : run_start(&s->run);
  if (!status) s->path = place_of(s, (uint32_t)s->run.position.block);
  while (!status && event != RUN_ended) {
    double begin = seconds_now();
    status = run_next(&s->run, &event);
    s->seconds = seconds_now() - begin;
    if (!status && after[event]) status = after[event](s);
  }
  return status;
}

/* ---- the run ---- */

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
                  (long long)s->run.steps, (long long)s->run.total);
  if (s->saved)
    progress_note(&s->progress, "saved %s at step %lld", s->saved, (long long)s->saved_step);
}

/* Runs the job. An evaluation that ran at the last step is not repeated. */
static ampc_status train(Session *s)
{
  ampc_status status = check_options(s);
  if (!status) status = load_weights(s);
  if (!status) status = open_data(s);
  interrupt_ask(); /* from here on, signals end the run only after a step, so that none is lost */
  if (!status) status = report_open(s);
  status = session_agree(s, status);
  if (!status) status = session_same(s);
  progress_start(&s->progress, s->run.options->quiet);
  if (!status) status = do_run(s);
  if (!status) status = session_poll(s);
  if (!status) status = weights_save(s);
  if (status) {
    progress_end_line(&s->progress);
    return status == AMPC_RUN_FAILED ? name_checkpoint(s, status) : status;
  }
  tell_end(s);
  if (s->run.options->train_only) return AMPC_OK;
  s->alike = s->ending;
  if (s->ending) return ampc_fail(AMPC_INTERRUPTED, "interrupted in the evaluation");
  if (session_leads(s)) progress_results(s);
  return AMPC_OK;
}

static ampc_status make_room(Session *s)
{
  const ampc_program *p = s->run.program;
  s->logged = malloc((p->n_blocks + 1) * sizeof *s->logged);
  s->locks = malloc((p->n_blocks + 1) * sizeof *s->locks);
  for (uint32_t i = 0; s->locks && i < p->n_blocks; i++) s->locks[i] = -1;
  for (uint32_t i = 0; s->logged && i < p->n_blocks; i++) s->logged[i] = -1;
  s->state = malloc((size_t)p->space_bytes[AMPC_STATE]);
  if (!s->logged || !s->locks || !s->state) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  return run_open(&s->run);
}

static void give_back(Session *s)
{
  for (uint32_t i = 0; s->run.batches && i < s->run.program->n_blocks; i++)
    if (s->run.batches[i]) s->run.data->close(s->run.batches[i]);
  for (uint32_t i = 0; s->locks && i < s->run.program->n_blocks; i++)
    if (s->locks[i] >= 0) close(s->locks[i]);
  free(s->locks);
  free(s->logged);
  free(s->state);
  run_close(&s->run);
}

ampc_status ampc_train(ampc_runtime *rt, const ampc_data_interface *data,
                       const ampc_train_options *options)
{
  NEEDS(rt && data && options);
  ampc_train_options own = *options;
  Session s = {.run = {.rt = rt, .program = rt->program, .data = data, .options = &own}};
  s.run.calls = (RunCalls){.context = &s, .poll = poll_session, .tell = tell};
  if (!session_leads(&s)) {
    own.quiet = s.progress.silent = true;
    own.json = false;
    own.log_dir = NULL;
  }
  s.deadline = options->max_time > 0 ? seconds_now() + options->max_time : HUGE_VAL;
  progress_start(&s.progress, own.quiet);
  ampc_status status = make_room(&s);
  if (!status) {
    interrupt_catch();
    status = resume_settle(&s, &own);
    if (!status) status = train(&s);
    interrupt_restore();
    status = report_end(&s, status);
    if (status && s.alike) status = session_agree(&s, status);
  }
  give_back(&s);
  return status;
}
