/* Training and evaluation in a session. The steps and their results are the same as with `amp
 * train`, but any number of steps can be run at a time. Ctrl-C stops after a step. */
#include "commands.h"
#include "runner/probe/probe.h"
#include "runtime/metric.h"
#include "runtime/outside.h"
#include "common/clock.h"
#include "common/number.h"
#include "common/terminal.h"
#include "runtime/train/judge.h"
#include "runtime/train/lost.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFRESH 0.1 /* seconds between two updates of a terminal's line */
enum { DEFAULT_LOG = 100 };

typedef struct Run { /* one :train */
  Repl *r;
  const ampc_program *p;
  uint32_t block;
  Next at;               /* the block's next step */
  int64_t end;           /* the last step of the block */
  int64_t done, samples; /* steps and samples of this :train so far */
  int64_t told;          /* the step of the last printed line */
  double loss_count;     /* samples in the average of the first loss */
  double began, printed;
  Text line;      /* the last printed line */
  bool line_open; /* it may be replaced: the terminal shows as much of it as fits */
  bool terminal;
  bool stale;         /* early_stop has ended the block */
  bool lost;          /* the last step is lost */
  int64_t *evaluated; /* for each block: the step of its last evaluation; -1: none */
  double *values;     /* for each metric: its average in the block's last evaluation */
} Run;

/* Finds the first train block from `from` on; false: no such block. */
static bool find_block(const ampc_program *p, uint32_t from, uint32_t *out)
{
  for (*out = from; *out < p->n_blocks; ++*out)
    if (p->blocks[*out].kind == AMPC_TRAIN) return true;
  return false;
}

/* Finds the train block of the next step; blocks before it are done. */
bool train_block(const Repl *r, const ampc_program *p, uint32_t *out)
{
  return find_block(p, (uint32_t)r->position.block, out);
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
static void end_line(Run *t)
{
  if (!t->line_open) return;
  fputs("\r\033[K", stdout);
  put_fields(t->line.at, (size_t)terminal_columns(STDOUT_FILENO));
  putchar('\n');
  t->line_open = false;
}

/* Adds averages over the steps since the last line, as `amp train` does. */
static bool add_metrics(Run *t)
{
  const ampc_block *b = &t->p->blocks[t->block];
  for (uint32_t i = 0; i < b->n_metrics; i++) {
    ampc_metric m;
    if (!metric_is_number(&t->p->metrics[b->first_metric + i]))
      continue; /* :eval prints matrices */
    if (!repl_check(t->r, ampc_get_metric(t->r->rt, b->first_metric + i, &m))) return false;
    if (m.count == 0) continue; /* its `every` has not fired */
    double v = m.sum / m.count;
    text_printf(&t->line, "  %s ", t->p->metrics[b->first_metric + i].name);
    text_printf(&t->line, is_plain(v) ? "%.4f" : "%.3e", v);
  }
  t->loss_count = 0;
  return repl_check(t->r, ampc_clear_metrics(t->r->rt, t->block));
}

static bool add_optimizers(Run *t, const ampc_state *state)
{
  bool own = t->p->scaler.per_optimizer;
  for (uint32_t i = 0; i < t->p->n_optimizers; i++) {
    ampc_optimizer o;
    ampc_ref at = {AMPC_STATE, ampc_state_optimizer(i)};
    const char *name = t->p->optimizers[i].name;
    if (!repl_check(t->r, ampc_read(t->r->rt, at, &o, sizeof o))) return false;
    text_printf(&t->line, "  %s.lr %.4g", name, (double)o.lr);
    if (own) text_printf(&t->line, "  %s.scale %g", name, (double)o.scale);
  }
  if (t->p->scaler.on && !own) text_printf(&t->line, "  scale %g", (double)state->scale);
  if (t->p->scaler.on) text_printf(&t->line, "  skipped %lld", state->skipped);
  if (state->empty) text_printf(&t->line, "  without labels %d", state->empty);
  return true;
}

/* Prints a line; on a terminal it replaces the previous one and does not wrap. */
static bool print_line(Run *t)
{
  ampc_state state;
  if (!repl_check(t->r, ampc_get_state(t->r->rt, &state))) return false;
  t->line.n = 0;
  text_printf(&t->line, "step %lld/%lld  epoch %lld", (long long)t->at.step, (long long)t->end,
              (long long)state.epoch + 1);
  if (!add_metrics(t) || !add_optimizers(t, &state)) return false;
  if (t->terminal)
    printf("\r\033[K%.*s", terminal_columns(STDOUT_FILENO) - 1, t->line.at);
  else
    puts(t->line.at);
  fflush(stdout);
  t->line_open = t->terminal;
  t->told = t->at.step;
  t->printed = seconds_now();
  return true;
}

/* Whether a line is due: on a terminal by time, otherwise every `log` steps. */
static bool line_is_due(const Run *t)
{
  if (t->terminal) return seconds_now() - t->printed >= REFRESH;
  int64_t log = t->p->blocks[t->block].log;
  return t->at.step % (log ? log : DEFAULT_LOG) == 0;
}

/* ---- one step ---- */

/* Writes the epoch to STATE, where kernels read it (op `epoch`); a schedule may depend on it. */
static ampc_status write_epoch(Run *t)
{
  long long epoch = t->at.step / t->at.per_epoch;
  return ampc_write(t->r->rt, (ampc_ref){AMPC_STATE, offsetof(ampc_state, epoch)}, &epoch,
                    sizeof epoch);
}

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
static ampc_status note_loss(Run *t)
{
  const ampc_block *b = &t->p->blocks[t->block];
  for (uint32_t i = 0; i < b->n_metrics; i++) {
    ampc_metric m;
    if (!t->p->metrics[b->first_metric + i].is_loss) continue;
    ampc_status status = ampc_get_metric(t->r->rt, b->first_metric + i, &m);
    if (!status && m.count != t->loss_count) add_loss(&t->r->losses, (double)m.last);
    if (!status) t->loss_count = m.count;
    return status;
  }
  return AMPC_OK;
}

/* Checks the loss: the step stores in STATE if it was not finite; see ampc_state. */
static ampc_status check_loss(Run *t)
{
  ampc_state state;
  ampc_status status = ampc_get_state(t->r->rt, &state);
  if (!status) status = lost_check(t->p, &state, NULL, &ampc_data, t->at.batches, true);
  t->lost = status && !state.outside.check;
  return status;
}

/* Says why the last step is lost. The session does not change. */
static void tell_lost(const Run *t)
{
  Repl *r = t->r;
  Next last = t->at;
  last.step--;
  int64_t together = t->p->blocks[t->block].accumulate;
  Lost lost = {true, r->steps, position_at(&last, together), .set = ":set"};
  /* the session keeps the weights that were lost, so the user must begin again */
  if (r->file.text) lost.set = arena_printf(r->arena, ":open %s, then :set", r->file.name);
  diagnose(program_compile_probed, r, r->device, r->data_dir, r->rt, &lost);
}

/* Runs a step, and advances the position as `amp train` does, so that `amp train` can resume from a
 * checkpoint of the session. */
static ampc_status run_step(Run *t)
{
  int64_t samples = 0;
  ampc_status status = AMPC_OK;
  if (t->done == 0 || t->at.step % t->at.per_epoch == 0) status = write_epoch(t);
  int64_t together = t->p->blocks[t->block].accumulate;
  int64_t left = t->at.n_batches - position_at(&t->at, together).batch;
  if (!status)
    status = ampc_run_group(t->r->rt, &ampc_data, t->at.batches, t->block, t->r->steps + 1,
                            left < together ? left : together, &samples);
  if (status) return status;
  t->at.step++;
  t->done++;
  t->samples += samples;
  t->r->steps++;
  t->r->position = position_at(&t->at, together);
  status = note_loss(t);
  return status ? status : check_loss(t);
}

/* ---- evaluation ---- */

/* Evaluates from the first batch on. Ctrl-C stops it. */
static ampc_status eval_block(Repl *r, uint32_t block)
{
  const ampc_block *b = &r->live->c->program->blocks[block];
  ampc_batches *batches;
  ampc_status status = feed_at(r, block, (ampc_data_position){.block = block}, &batches);
  if (!status) status = ampc_clear_metrics(r->rt, block);
  if (status) return status;
  int64_t n = ampc_data.per_epoch(batches), samples;
  if (b->max_steps && b->max_steps < n) n = b->max_steps;
  for (int64_t i = 0; i < n && !status && !input_interrupted(); i++)
    status = ampc_run_batch(r->rt, &ampc_data, batches, block, i, &samples);
  return status ? status : outside_take(r->rt);
}

/* Prints a metric. `values` receives the average; or NULL. */
static bool print_metric(Repl *r, const ampc_block *b, uint32_t metric, double *values)
{
  const ampc_metric_desc *m = &r->live->c->program->metrics[metric];
  ampc_metric *slots = malloc(ampc_metric_slots(m, 1) * sizeof *slots);
  bool good = slots && repl_check(r, metric_read(r->rt, metric, slots));
  if (!slots) repl_error(r, "out of memory");
  if (good && values) values[metric] = metric_value(m, slots);
  if (good) {
    printf("%s %s:%s", b->name, m->name, metric_is_number(m) ? " " : "\n");
    double v = metric_is_number(m) ? metric_value(m, slots) : 0;
    if (metric_is_number(m)) {
      printf(is_plain(v) ? "%.4f\n" : "%.3e\n", v);
    } else {
      metric_print_matrix(stdout, m, slots);
    }
  }
  free(slots);
  return good;
}

static bool print_eval(Repl *r, uint32_t block, double *values)
{
  const ampc_program *p = r->live->c->program;
  const ampc_block *b = &p->blocks[block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++)
    if (!print_metric(r, b, i, values)) return false;
  return repl_check(r, ampc_clear_metrics(r->rt, block));
}

/* Prints an evaluation, unless it is interrupted: then its average covers only some of the data. */
static bool eval_one(Repl *r, uint32_t block, double *values)
{
  if (!repl_check(r, eval_block(r, block))) return false;
  if (input_interrupted()) return repl_error(r, "interrupted in the evaluation");
  return print_eval(r, block, values);
}

/* Runs the eval blocks that `done` does not list as evaluated at this step; NULL: all. */
static bool eval_all(Repl *r, const int64_t *done)
{
  const ampc_program *p = r->live->c->program;
  for (uint32_t i = 0; i < p->n_blocks; i++)
    if (p->blocks[i].kind == AMPC_EVAL && (!done || done[i] != r->steps) && !eval_one(r, i, NULL))
      return false;
  return true;
}

/* ---- early_stop and plateaus, as in `amp train` ---- */

/* Whether training depends on an evaluation of the block at this step, so that :train N must run
 * the evaluation. */
static bool is_judge(const Run *t, uint32_t block)
{
  int64_t most = t->p->blocks[t->block].early_stop;
  return patience_waits_for(t->r->rt, block, most, t->r->steps) ||
         plateau_waits_for(t->r->rt, block, t->r->steps);
}

static void tell_lowered(void *to, bool warning, const char *line)
{
  (void)to, (void)warning;
  puts(line);
}

static bool judge(Run *t, uint32_t block)
{
  char line[PATIENCE_ROOM];
  const ampc_block *b = &t->p->blocks[block];
  bool before = t->stale;
  t->stale = patience_note(t->r->rt, block, t->p->blocks[t->block].early_stop, t->r->steps,
                           t->values[b->first_metric]);
  if (t->stale && !before) patience_text(t->r->rt, line), puts(line);
  return repl_check(t->r,
                    plateau_note(t->r->rt, block, t->r->steps, t->values, tell_lowered, NULL));
}

/* ---- a block ---- */

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

/* Finds the last step of a block, of epochs of `per_epoch` steps. */
static ampc_status find_end(const ampc_block *b, int64_t per_epoch, int64_t *out)
{
  if (!ampc_steps_of(b->epochs, per_epoch, out) && !b->max_steps)
    return ampc_fail(AMPC_BAD_USAGE, "block `%s`: epochs=%lld of %lld steps are too many", b->name,
                     (long long)b->epochs, (long long)per_epoch);
  if (b->max_steps) *out = b->max_steps;
  return AMPC_OK;
}

/* Sets the length of schedules that have no `steps`: the steps of the whole job, as in `amp
 * train`. */
static ampc_status set_lengths(Repl *r)
{
  const ampc_program *p = r->live->c->program;
  enum { BLOCKS = 64 }; /* as many bits as steps_of has */
  int64_t steps[BLOCKS] = {0};
  uint64_t wanted = 0;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_settings; i++) wanted |= p->settings[i].steps_of;
  for (uint32_t i = 0; i < p->n_blocks && i < BLOCKS && !status; i++) {
    ampc_batches *batches;
    if (!(wanted >> i & 1)) continue;
    status = feed_at(r, i, (ampc_data_position){.block = i}, &batches);
    int64_t n = status ? 0 : ampc_groups(ampc_data.per_epoch(batches), p->blocks[i].accumulate);
    if (!status) status = find_end(&p->blocks[i], n, &steps[i]);
  }
  return status || !wanted ? status : ampc_set_lengths(r->rt, steps);
}

/* Finds the next step and the end of the block, and clears its metrics. */
static ampc_status begin_block(Run *t)
{
  const ampc_block *b = &t->p->blocks[t->block];
  Repl *r = t->r;
  ampc_status status = feed_next(r, t->block, &t->at);
  if (status) return status;
  status = find_end(b, t->at.per_epoch, &t->end);
  if (status) return status;
  t->loss_count = 0;
  t->stale = patience_begin(r->rt, b->early_stop, t->at.step == 0);
  char line[JUDGE_ROOM];
  if (b->early_stop && t->at.step == 0 && keep_assumed(t->p, line)) puts(line);
  return ampc_clear_metrics(r->rt, t->block);
}

/* Runs the eval blocks that are due at this step, as `amp train` does: at the end of an epoch, or
 * every `every` steps. At the end of the job, train_blocks runs them. :train N (`all` false) runs
 * only evaluations that training depends on. */
static bool eval_due(Run *t, bool all)
{
  for (uint32_t i = 0; i < t->p->n_blocks; i++) {
    const ampc_block *b = &t->p->blocks[i];
    bool due = b->every ? t->r->steps % b->every == 0 : t->at.step % t->at.per_epoch == 0;
    bool judges = b->kind == AMPC_EVAL && is_judge(t, i);
    if (b->kind != AMPC_EVAL || !due || t->evaluated[i] == t->r->steps) continue;
    if (!judges && !(all && t->at.step < t->end)) continue;
    end_line(t);
    if (!eval_one(t->r, i, t->values)) return false;
    t->evaluated[i] = t->r->steps;
    if (judges && !judge(t, i)) return false;
  }
  return true;
}

/* Runs evaluations that were due when the loaded checkpoint was saved, because they may not have
 * been run. `amp train` also runs them after loading, perhaps a second time. */
static bool eval_before(Run *t)
{
  return t->at.step == 0 || t->r->steps == 0 || eval_due(t, false);
}

/* Whether to train another step: up to `most` steps per :train; `most` 0: to the end of the block.
 * Only the last block may train beyond its end, and only with :train N. */
static bool goes_on(const Run *t, int64_t most, bool last)
{
  if (t->stale || input_interrupted()) return false;
  return most ? t->done < most && (last || t->at.step < t->end) : t->at.step < t->end;
}

static bool run_block(Run *t, int64_t most, bool last)
{
  if (!t->stale && !eval_before(t)) return false;
  while (goes_on(t, most, last)) {
    ampc_status status = run_step(t);
    if (status) end_line(t);
    repl_check(t->r, status);
    if (status && t->lost) tell_lost(t);
    if (status) return false;
    if (line_is_due(t) && !print_line(t)) return false;
    if (!eval_due(t, !most)) return false;
  }
  return true;
}

static void tell_end(Run *t)
{
  char line[PATIENCE_ROOM];
  if (t->done == 0 && !input_interrupted()) {
    if (t->stale)
      patience_text(t->r->rt, line), puts(line);
    else
      printf("all %lld steps of the job are done; :train N trains more\n", (long long)t->end);
    return;
  }
  double seconds = seconds_now() - t->began;
  if (t->told != t->at.step) print_line(t);
  end_line(t);
  printf("%s %lld step%s in %.1f s", input_interrupted() ? "interrupted after" : "trained",
         (long long)t->done, t->done == 1 ? "" : "s", seconds);
  if (seconds > 0) printf(", %.0f samples/s", (double)t->samples / seconds);
  putchar('\n');
}

/* Trains block after block until n steps are done; n 0: to the end of the job, followed by all
 * evaluations, as in `amp train`. */
static bool train_blocks(Run *t, int64_t n)
{
  Repl *r = t->r;
  for (bool more = true; more;) {
    uint32_t next;
    bool last = !find_block(t->p, t->block + 1, &next);
    if (!repl_check(r, begin_block(t)) || !run_block(t, n, last)) return false;
    more = !last && !input_interrupted() && (!n || t->done < n);
    if (more) t->block = next;
  }
  tell_end(t);
  return n || t->done == 0 || input_interrupted() || eval_all(r, t->evaluated);
}

static bool can_stop_early(Repl *r, const ampc_program *p)
{
  for (uint32_t i = 0; i < p->n_blocks; i++)
    if (p->blocks[i].kind == AMPC_TRAIN && p->blocks[i].early_stop && !keep_judge(p))
      return repl_error(r, "early_stop: the program has no eval block with a metric");
  return true;
}

bool train_steps(Repl *r, int64_t n)
{
  if (!live_ready(r)) return false;
  Run t = {.r = r, .p = r->live->c->program, .told = -1, .terminal = isatty(STDOUT_FILENO)};
  if (!train_block(r, t.p, &t.block)) return repl_error(r, "the program has no train block");
  if (!can_stop_early(r, t.p) || !repl_check(r, forgive(r)) || !repl_check(r, set_lengths(r)))
    return false;
  t.began = seconds_now();
  t.evaluated = malloc((t.p->n_blocks + 1) * sizeof *t.evaluated);
  t.values = calloc(t.p->n_metrics + 1, sizeof *t.values);
  if (!t.evaluated || !t.values) arena_out_of_memory();
  for (uint32_t i = 0; i < t.p->n_blocks; i++) t.evaluated[i] = -1;
  Arena *arena = arena_create();
  t.line = text_new(arena);
  bool good = train_blocks(&t, n);
  arena_destroy(arena);
  free(t.evaluated);
  free(t.values);
  return good;
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
    if (p->blocks[i].kind == AMPC_EVAL) return eval_all(r, NULL);
  return repl_error(r, "the program has no eval block");
}
