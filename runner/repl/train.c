/* Training and evaluation in a session. The steps and their results are the same as with `amp
 * train`, but any number of steps can be run at a time. Ctrl-C stops after a step. */
#include "commands.h"
#include "runner/probe/probe.h"
#include "common/clock.h"
#include "common/number.h"
#include "common/terminal.h"
#include "runtime/train/judge.h"
#include "runtime/train/lost.h"
#include "runtime/train/run.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFRESH 0.1 /* seconds between two updates of a terminal's line */
enum { DEFAULT_LOG = 100 };

typedef struct Train { /* one :train or :eval */
  Repl *r;
  Run run;
  int64_t most;          /* steps of :train N; 0: to the end of the job */
  int64_t done, samples; /* steps and samples of this :train so far */
  int64_t told;          /* the step of the last printed line */
  double loss_count;     /* samples in the average of the first loss */
  double began, printed;
  Text line;      /* the last printed line */
  bool line_open; /* the line has no newline yet, so the next one overwrites it */
  bool terminal;
  bool lost; /* the last step is lost */
  bool told_end;
} Train;

/* Finds the train block of the next step; blocks before it are done. */
bool train_block(const Repl *r, const ampc_program *p, uint32_t *out)
{
  for (*out = (uint32_t)r->position.block; *out < p->n_blocks; ++*out)
    if (p->blocks[*out].kind == AMPC_TRAIN) return true;
  return false;
}

/* ---- output ---- */

/* Whether four decimals show the number well; otherwise it is printed with an exponent. */
static bool is_plain(double v)
{
  return v == 0 || (fabs(v) >= 1e-3 && fabs(v) < 1e6);
}

/* Prints a line of fields, which two blanks separate. No field is broken. */
static void put_fields(const char *line, size_t columns)
{
  size_t used = 0;
  while (*line) {
    const char *next = strstr(line, "  ");
    size_t n = next ? (size_t)(next - line) : strlen(line);
    bool fits = used == 0 || used + 2 + n <= columns;
    printf("%s%.*s", used == 0 ? "" : fits ? "  " : "\n  ", (int)n, line);
    used = (fits ? used : 0) + (used ? 2 : 0) + n;
    line += n + strspn(line + n, " ");
  }
}

/* Ends the open line, which is now printed in full. */
static void end_line(Train *t)
{
  if (!t->line_open) return;
  fputs("\r\033[K", stdout);
  put_fields(t->line.at, (size_t)terminal_columns(STDOUT_FILENO));
  putchar('\n');
  t->line_open = false;
}

/* Adds averages over the steps since the last line, as `amp train` does. */
static bool add_metrics(Train *t)
{
  const ampc_block *b = &t->run.program->blocks[t->run.course.index];
  for (uint32_t i = 0; i < b->n_metrics; i++) {
    ampc_metric m;
    if (!metric_is_number(&t->run.program->metrics[b->first_metric + i]))
      continue; /* :eval prints matrices */
    if (!repl_check(t->r, ampc_get_metric(t->r->rt, b->first_metric + i, &m))) return false;
    if (m.count == 0) continue; /* its `every` has not fired */
    double v = m.sum / m.count;
    text_printf(&t->line, "  %s ", t->run.program->metrics[b->first_metric + i].name);
    text_printf(&t->line, is_plain(v) ? "%.4f" : "%.3e", v);
  }
  t->loss_count = 0;
  return repl_check(t->r, ampc_clear_metrics(t->r->rt, t->run.course.index));
}

static bool add_optimizers(Train *t, const ampc_state *state)
{
  bool own = t->run.program->scaler.per_optimizer;
  for (uint32_t i = 0; i < t->run.program->n_optimizers; i++) {
    ampc_optimizer o;
    ampc_ref at = {AMPC_STATE, ampc_state_optimizer(i)};
    const char *name = t->run.program->optimizers[i].name;
    if (!repl_check(t->r, ampc_read(t->r->rt, at, &o, sizeof o))) return false;
    text_printf(&t->line, "  %s.lr %.4g", name, (double)o.lr);
    if (own) text_printf(&t->line, "  %s.scale %g", name, (double)o.scale);
  }
  if (t->run.program->scaler.on && !own) text_printf(&t->line, "  scale %g", (double)state->scale);
  if (run_shows_skipped(t->run.program, state))
    text_printf(&t->line, "  skipped %lld", state->skipped);
  if (state->empty) text_printf(&t->line, "  without labels %d", state->empty);
  return true;
}

/* Prints a line; on a terminal it replaces the previous one and does not wrap. */
static bool print_line(Train *t)
{
  ampc_state state;
  if (!repl_check(t->r, ampc_get_state(t->r->rt, &state))) return false;
  t->line.n = 0;
  text_printf(&t->line, "step %lld/%lld  epoch %lld", (long long)t->run.step,
              (long long)t->run.course.whole, (long long)state.epoch + 1);
  if (!add_metrics(t) || !add_optimizers(t, &state)) return false;
  if (t->terminal)
    printf("\r\033[K%.*s", terminal_columns(STDOUT_FILENO) - 1, t->line.at);
  else
    puts(t->line.at);
  fflush(stdout);
  t->line_open = t->terminal;
  t->told = t->run.step;
  t->printed = seconds_now();
  return true;
}

/* Whether a line is due: on a terminal by time, otherwise every `log` steps. */
static bool line_is_due(const Train *t)
{
  if (t->terminal) return seconds_now() - t->printed >= REFRESH;
  int64_t log = t->run.program->blocks[t->run.course.index].log;
  return t->run.step % (log ? log : DEFAULT_LOG) == 0;
}

/* ---- one step ---- */

static void add_loss(Losses *l, double v)
{
  if (l->n == l->cap) {
    l->cap = l->cap ? 2 * l->cap : 1024;
    l->at = realloc(l->at, l->cap * sizeof *l->at);
    if (!l->at) arena_out_of_memory();
  }
  l->at[l->n++] = v;
}

/* Records the first metric that is a loss for :loss, if the step computed it (an `every` may not
 * have fired). This waits for the step, which costs little at a prompt. */
static ampc_status note_loss(Train *t)
{
  const ampc_block *b = &t->run.program->blocks[t->run.course.index];
  for (uint32_t i = 0; i < b->n_metrics; i++) {
    ampc_metric m;
    if (!t->run.program->metrics[b->first_metric + i].is_loss) continue;
    ampc_status status = ampc_get_metric(t->r->rt, b->first_metric + i, &m);
    if (!status && m.count != t->loss_count) add_loss(&t->r->losses, (double)m.last);
    if (!status) t->loss_count = m.count;
    return status;
  }
  return AMPC_OK;
}

/* Checks the loss: the step stores in STATE if it was not finite; see ampc_state. */
static ampc_status check_loss(Train *t)
{
  ampc_state state;
  ampc_status status = ampc_get_state(t->r->rt, &state);
  if (!status)
    status = lost_check(t->run.program, &state, NULL, &ampc_data,
                        t->run.batches[t->run.course.index], true);
  t->lost = status && !state.outside.check;
  return status;
}

/* Says why the last step is lost. The session does not change. */
static void tell_lost(const Train *t)
{
  Repl *r = t->r;
  Lost lost = {true, r->steps, run_position(&t->run.course, t->run.step - 1), .set = ":set"};
  /* the session keeps the weights that were lost, so the user must begin again */
  if (r->file.text) lost.set = arena_printf(r->arena, ":open %s, then :set", r->file.name);
  diagnose(program_compile_probed, r, r->device, r->data_dir, r->rt, &lost);
}

/* The session stands where the run stands, so that `amp train` can resume from its checkpoint. */
static void stand(const Train *t)
{
  t->r->position = t->run.position;
  t->r->per_epoch = t->run.per_epoch;
  t->r->steps = t->run.steps;
}

/* ---- evaluation ---- */

/* Prints the metrics of the eval block that has run. */
static void print_eval(const Train *t)
{
  const ampc_program *p = t->run.program;
  const ampc_block *b = &p->blocks[t->run.eval_block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    const ampc_metric_desc *m = &p->metrics[i];
    const ampc_metric *slots = t->run.sums + ampc_metric_slots(p->metrics, i);
    printf("%s %s:%s", b->name, m->name, metric_is_number(m) ? " " : "\n");
    double v = metric_is_number(m) ? metric_value(m, slots) : 0;
    if (metric_is_number(m))
      printf(is_plain(v) ? "%.4f\n" : "%.3e\n", v);
    else
      metric_print_matrix(stdout, m, slots);
  }
}

/* Ctrl-C stops an evaluation. */
static ampc_status poll(void *train, RunPoll when, bool *out_stop)
{
  if (when == POLL_begins) end_line(train);
  *out_stop = input_interrupted();
  return AMPC_OK;
}

static void tell_decided(void *train, bool warning, const char *line)
{
  (void)train, (void)warning;
  puts(line);
}

/* ---- a run ---- */

static ampc_status write_count(Repl *r, size_t offset, long long value)
{
  return ampc_write(r->rt, (ampc_ref){AMPC_STATE, (int64_t)offset}, &value, sizeof value);
}

/* Clears marks of the last :train, because a new :train is another try. After a loss that is not
 * finite, a mark in STATE drops every later update; another mark counts overflows in a row. */
static ampc_status forgive_optimizers(Repl *r)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < r->live->c->program->n_optimizers && !status; i++) {
    ampc_optimizer o;
    ampc_ref at = {AMPC_STATE, ampc_state_optimizer(i)};
    status = ampc_read(r->rt, at, &o, sizeof o);
    if (status || o.growth >= 0) continue;
    o.growth = 0;
    status = ampc_write(r->rt, at, &o, sizeof o);
  }
  return status;
}

static ampc_status forgive(Repl *r)
{
  ampc_state state;
  ampc_status status = ampc_get_state(r->rt, &state);
  if (!status && state.outside.check)
    status = write_count(r, offsetof(ampc_state, outside.check), 0);
  if (!status && state.bad_loss) status = write_count(r, offsetof(ampc_state, bad_loss), 0);
  if (!status && state.growth < 0) status = write_count(r, offsetof(ampc_state, growth), 0);
  if (!status && state.growth < 0) status = forgive_optimizers(r);
  return status;
}

static void tell_end(Train *t)
{
  if (t->told_end) return;
  t->told_end = true;
  if (t->done == 0 && !input_interrupted()) {
    if (!t->run.stale) /* early stop has printed why */
      printf("all %lld steps of the job are done; :train N trains more\n",
             (long long)t->run.course.whole);
    return;
  }
  double seconds = seconds_now() - t->began;
  if (t->told != t->run.step) print_line(t);
  end_line(t);
  printf("%s %lld step%s in %.1f s", input_interrupted() ? "interrupted after" : "trained",
         (long long)t->done, t->done == 1 ? "" : "s", seconds);
  if (seconds > 0) printf(", %.0f samples/s", (double)t->samples / seconds);
  putchar('\n');
}

static void begin_block(Train *t)
{
  char line[JUDGE_ROOM];
  t->loss_count = 0;
  t->told = -1;
  if (t->run.course.block->early_stop && t->run.step == 0 && keep_assumed(t->run.program, line))
    puts(line);
}

/* The evaluations at the end of the job follow its last line. */
static bool after_step(Train *t)
{
  t->done++;
  t->samples += t->run.samples;
  ampc_status status = note_loss(t);
  if (!status) status = check_loss(t);
  if (status) end_line(t);
  repl_check(t->r, status);
  if (t->lost) tell_lost(t);
  if (status || (line_is_due(t) && !print_line(t))) return false;
  if (!t->most && run_is_last(&t->run)) tell_end(t);
  return true;
}

static bool after(Train *t, RunEvent event)
{
  stand(t);
  if (event == RUN_block) begin_block(t);
  if (event == RUN_step) return after_step(t);
  if (event == RUN_evaluated) print_eval(t);
  bool more = t->run.step > t->run.course.first && t->told != t->run.step;
  if (event == RUN_left && !t->told_end && more) return print_line(t);
  if (event == RUN_settled && t->run.stopped && t->told_end)
    return repl_error(t->r, "interrupted in the evaluation");
  return true;
}

/* Whether the run ends at this event. A run to the end of the job goes on with all evaluations, as
 * in `amp train`. */
static bool is_done(const Train *t, RunEvent event)
{
  if (event == RUN_step || event == RUN_evaluated) return false; /* evaluations may follow */
  bool left = event == RUN_left && t->run.last;
  return input_interrupted() || (t->most && t->done >= t->most) ||
         (left && (t->most || t->done == 0));
}

static bool drive(Train *t)
{
  RunEvent event = RUN_nothing;
  for (bool goes_on = true; goes_on; goes_on = event != RUN_ended && !is_done(t, event)) {
    ampc_status status = run_next(&t->run, &event);
    if (status) end_line(t);
    if (!repl_check(t->r, status) || !after(t, event)) return false;
    if (event == RUN_left && t->run.last) tell_end(t);
  }
  tell_end(t);
  return true;
}

static ampc_status open_feed(void *train, uint32_t block, ampc_batches **out)
{
  return feed_open(((Train *)train)->r, block, out);
}

static ampc_status start(Train *t)
{
  Repl *r = t->r;
  ampc_status status = early_stop_check(&t->run);
  if (!status) status = forgive(r);
  t->run.judging = t->run.endless = t->most > 0;
  return status ? status : run_start(&t->run);
}

/* Runs a :train, or with `evals` a :eval. */
static bool run_job(Repl *r, int64_t most, bool evals)
{
  Train t = {.r = r, .most = most, .told = -1, .terminal = isatty(STDOUT_FILENO)};
  Arena *arena = arena_create();
  t.line = text_new(arena);
  t.began = seconds_now();
  t.told_end = evals;
  ampc_status status = feed_run(r, r->rt, &t.run);
  t.run.calls = (RunCalls){&t, open_feed, poll, tell_decided};
  if (!status && !evals) status = start(&t);
  bool good = repl_check(r, status) && drive(&t);
  run_close(&t.run);
  arena_destroy(arena);
  return good;
}

bool train_steps(Repl *r, int64_t n)
{
  uint32_t block;
  if (!live_ready(r)) return false;
  if (!train_block(r, r->live->c->program, &block))
    return repl_error(r, "the program has no train block");
  return run_job(r, n, false);
}

/* Reads a whole number as people write it: 100, 1_000, 1e6, 10k, 2M. */
static bool read_whole(const char *arg, double *out)
{
  char digits[32];
  size_t n = 0;
  for (; *arg && n + 1 < sizeof digits; arg++)
    if (*arg != '_' || !n || arg[1] == '_' || !arg[1]) digits[n++] = *arg;
  char unit = n && !*arg ? digits[n - 1] : 0;
  double times = unit == 'k' ? 1e3 : unit == 'M' ? 1e6 : 1;
  digits[n - (times > 1)] = 0;
  if (*arg || !ampc_read_real(digits, out)) return false;
  *out *= times;
  return *out == floor(*out);
}

bool steps_read(Repl *r, const char *arg, int64_t most, int64_t *out)
{
  double n;
  char range[AMPC_RANGE_ROOM];
  if (!read_whole(arg, &n) || n < 1 || n > (double)most)
    return repl_error(r, "%s: expected a number of steps: %s, as 100, 10k or 1e6", arg,
                      ampc_range_text(range, 1, most));
  *out = (int64_t)n;
  return true;
}

bool command_train(Repl *r, const char *arg)
{
  int64_t n = 0;
  if (*arg && !steps_read(r, arg, AMPC_MOST_STEPS, &n)) return false;
  return resume_remind(r) && train_steps(r, n);
}

bool command_step(Repl *r, const char *arg)
{
  (void)arg;
  return resume_remind(r) && train_steps(r, 1);
}

bool command_eval(Repl *r, const char *arg)
{
  (void)arg;
  if (!live_ready(r)) return false;
  const ampc_program *p = r->live->c->program;
  for (uint32_t i = 0; i < p->n_blocks; i++)
    if (p->blocks[i].kind == AMPC_EVAL) return run_job(r, 0, true);
  return repl_error(r, "the program has no eval block");
}
