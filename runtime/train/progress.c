/* The messages of a run. Progress goes to stderr, results to stdout. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/shown.h"
#include "common/terminal.h"
#include "train.h"

#define REFRESH 0.1 /* seconds between two updates of a terminal's line */
#define RECENT  2.0 /* seconds of a run whose speed a line shows; up to twice as many */

void progress_start(Progress *p, bool quiet)
{
  *p = (Progress){.quiet = quiet,
                  .silent = p->silent,
                  .terminal = isatty(STDERR_FILENO),
                  .started = seconds_now()};
}

/* ---- a line of text, built piece by piece ---- */

typedef struct Line {
  char text[512];
  size_t size;
} Line;

__attribute__((format(printf, 2, 3))) static void add(Line *l, const char *fmt, ...)
{
  size_t room = sizeof l->text - l->size;
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(l->text + l->size, room, fmt, args);
  va_end(args);
  if (n > 0) l->size += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_value(Line *l, double v)
{
  bool plain = v == 0 || (fabs(v) >= 1e-3 && fabs(v) < 1e6);
  add(l, plain ? "%.4f" : "%.3e", v);
}

static void add_time(Line *l, double seconds)
{
  long long s = (long long)(seconds + 0.5);
  if (s >= 3600) {
    add(l, "%lldh%02lldm", s / 3600, s / 60 % 60);
  } else if (s >= 60) {
    add(l, "%lldm%02llds", s / 60, s % 60);
  } else {
    add(l, "%llds", s);
  }
}

static void add_metrics(Session *s, uint32_t block, Line *l)
{
  const ampc_block *b = &s->run.program->blocks[block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    if (!s->run.known[i] || !metric_is_number(&s->run.program->metrics[i])) continue; /* too long */
    add(l, " %s ", s->run.program->metrics[i].name);
    add_value(l, s->run.values[i]);
  }
}

static void add_rates(const Session *s, Line *l)
{
  const ampc_program *p = s->run.program;
  for (uint32_t i = 0; i < p->n_optimizers; i++) {
    if (p->n_optimizers > 1) {
      add(l, " lr.%s %.4g", p->optimizers[i].name, s->rates[i]);
    } else {
      add(l, " lr %.4g", s->rates[i]);
    }
  }
}

/* Adds the loss scale, or one scale per optimizer if each has its own, and the skipped steps. */
static void add_scale(const Session *s, const Record *r, Line *l)
{
  const ampc_program *p = s->run.program;
  if (p->scaler.on && !p->scaler.per_optimizer) add(l, " scale %g", (double)r->state.scale);
  for (uint32_t i = 0; p->scaler.on && i < p->n_optimizers && p->scaler.per_optimizer; i++)
    add(l, " scale.%s %g", p->optimizers[i].name, s->scales[i]);
  if (run_shows_skipped(p, &r->state)) add(l, " skipped %lld", r->state.skipped);
  if (p->scaler.replay) add(l, " replayed %lld", r->state.replayed);
}

/* Returns the samples per second of the last two to four seconds; before, since the start. */
static double recent_rate(Progress *p, const Record *r)
{
  if (r->seconds - p->recent.seconds > RECENT) {
    p->old = p->recent;
    p->recent = (struct Mark){r->seconds, r->samples};
  }
  double seconds = r->seconds - p->old.seconds;
  return seconds > 0 ? (double)(r->samples - p->old.samples) / seconds : r->rate;
}

static void build_line(Session *s, uint32_t block, const Record *r, Line *l)
{
  Progress *p = &s->progress;
  add(l, "epoch %lld step %lld/%lld", r->state.epoch + 1, (long long)r->step,
      (long long)s->run.total);
  add_metrics(s, block, l);
  add_rates(s, l);
  add_scale(s, r, l);
  if (r->rate > 0 && p->steps > 0) {
    add(l, " %.0f samples/s eta ", recent_rate(p, r));
    add_time(l, r->seconds / (double)p->steps * (double)(s->run.total - r->step));
  }
}

/* ---- when and how ---- */

void progress_end_line(Progress *p)
{
  if (p->line_open) fputc('\n', stderr);
  p->line_open = false;
}

/* Replaces words by shorter ones, one at a time, until the line fits. */
static void shorten(Line *l, size_t columns)
{
  static const char *const words[][2] = {{" samples/s", "/s"},
                                         {" step ", " "},
                                         {" skipped ", " skip "},
                                         {"epoch ", "ep "},
                                         {" scale ", " x"}};
  for (size_t i = 0; i < sizeof words / sizeof *words && l->size > columns; i++) {
    size_t from = strlen(words[i][0]), to = strlen(words[i][1]);
    char *at = strstr(l->text, words[i][0]);
    if (!at) continue;
    memcpy(at, words[i][1], to);
    memmove(at + to, at + from, strlen(at + from) + 1);
    l->size -= from - to;
  }
}

/* Prints a line. On a terminal it stays open and must fit: a wrapped line cannot be rewritten. */
static void show(Progress *p, Line *l, bool keep)
{
  if (!p->terminal) {
    fprintf(stderr, "%s\n", l->text);
    return;
  }
  int columns = terminal_columns(STDERR_FILENO);
  shorten(l, (size_t)columns - 1);
  fprintf(stderr, "\r%.*s\033[K", columns - 1, l->text);
  p->line_open = true;
  if (keep) progress_end_line(p);
  fflush(stderr);
}

/* Opens the sink. Its data is the session's own Progress, because notes must end an open line. */
static ampc_status open_line(Session *s, void **own)
{
  *own = s->run.options->quiet ? NULL : &s->progress;
  return AMPC_OK;
}

/* Whether a line is due: on a terminal every REFRESH seconds, in a file every `log` steps. */
static bool is_due(Session *s, void *own, uint32_t block, bool must)
{
  Progress *p = own;
  double now = seconds_now();
  bool due = p->terminal ? now - p->printed >= REFRESH : s->run.steps % report_every(s, block) == 0;
  if (must || due) p->printed = now;
  return must || due;
}

static void tell_step(Session *s, void *own, const Record *r)
{
  Line line = {.size = 0};
  build_line(s, r->block, r, &line);
  show(own, &line, r->must);
}

static void tell_evaluated(Session *s, void *own, uint32_t block)
{
  Line line = {.size = 0};
  (void)own;
  add(&line, "step %lld %s", (long long)s->run.steps, s->run.program->blocks[block].name);
  add_metrics(s, block, &line);
  progress_end_line(&s->progress);
  fprintf(stderr, "%s\n", line.text);
}

const Sink line_sink = {open_line, is_due, tell_step, tell_evaluated, NULL};

/* ---- messages and results ---- */

static void put_note(Progress *p, const char *fmt, va_list args)
{
  if (p->silent) return;
  char text[8192], shown[8192]; /* paths have up to 4096 bytes */
  progress_end_line(p);
  vsnprintf(text, sizeof text, fmt, args);
  fprintf(stderr, "%s\n", ampc_show(shown, sizeof shown, text, ""));
}

void progress_note(Progress *p, const char *fmt, ...)
{
  va_list args;
  va_start(args, fmt);
  if (!p->quiet) put_note(p, fmt, args);
  va_end(args);
}

void progress_warn(Progress *p, const char *fmt, ...)
{
  va_list args;
  va_start(args, fmt);
  put_note(p, fmt, args);
  va_end(args);
}

void progress_tell(void *to, bool warning, const char *line)
{
  if (warning)
    progress_warn(to, "%s", line);
  else
    progress_note(to, "%s", line);
}

static void print_block(const Session *s, uint32_t block)
{
  const ampc_program *p = s->run.program;
  const ampc_block *b = &p->blocks[block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    const ampc_metric_desc *m = &p->metrics[i];
    Line line = {.size = 0};
    if (metric_is_number(m)) add_value(&line, s->run.values[i]);
    printf("%s %s:%s%s\n", b->name, m->name, line.size ? " " : "", line.text);
    if (!metric_is_number(m))
      metric_print_matrix(stdout, m, s->run.sums + ampc_metric_slots(p->metrics, i));
  }
}

void progress_results(Session *s)
{
  const ampc_program *p = s->run.program;
  ampc_state state;
  progress_end_line(&s->progress);
  if (s->run.options->json) return; /* report_json.c has reported them */
  for (uint32_t i = 0; i < p->n_blocks; i++)
    if (p->blocks[i].kind == AMPC_EVAL) print_block(s, i);
  bool trained = !s->run.options->eval_only && ampc_get_state(s->run.rt, &state) == AMPC_OK;
  if (trained && run_shows_skipped(p, &state))
    printf("skipped steps: %lld of %lld\n", state.skipped, (long long)s->run.steps);
  if (trained && p->scaler.on && p->scaler.replay)
    printf("replays after an overflow: %lld\n", state.replayed);
  if (trained && state.empty) printf("batches without labels: %d\n", state.empty);
  fflush(stdout);
}
