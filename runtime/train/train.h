/* What the files of the training loop share. */
#pragma once
#include "runtime/runtime.h"

/* Who is told about steps, each at its own pace. */
typedef enum Sink { SINK_line, SINK_json, SINK_log, SINK_COUNT } Sink;

/* Progress on stderr: one line that is rewritten on a terminal, a line every `log` steps else. */
typedef struct Progress {
  bool quiet, terminal;
  bool line_open;          /* the terminal's cursor stands behind an unfinished line */
  double started, printed; /* seconds */
  double paused;           /* spent on evaluation and saving since the start */
  int64_t samples, steps;  /* trained since the start */
} Progress;

typedef struct Record {  /* a step, as it is told */
  int64_t step, samples; /* trained until then, since the start */
  ampc_state state;
  double seconds, rate; /* since the start, pauses left out; samples a second, or 0 */
} Record;

/* STATE as it was after a step, on its way from the device: the loop does not wait for it. */
typedef struct Glance {
  uint32_t block;
  int64_t step, samples;
  bool told, due[SINK_COUNT]; /* to whom; if to anybody, the block's metrics begin anew */
  bool keep;                  /* the line stays */
} Glance;

typedef struct Log Log; /* log.c */

typedef struct Session {
  ampc_runtime *rt;
  const ampc_program *program;
  const ampc_data_interface *data;
  const ampc_train_options *options;
  uint64_t seed;
  ampc_batches **batches;        /* one a block; NULL where the run does not need it */
  double *values;                /* one a metric: its last average */
  ampc_metric *gone[SINK_COUNT]; /* one a metric: sums since this sink was last told */
  double *rates;                 /* one an optimizer: its last learning rate */
  int64_t *evaluated;            /* one a block: the step of its last evaluation, or -1 */
  int64_t steps, total;          /* attempted, those before a resume included; of the whole run */
  const char *path;              /* where the train block that runs saves, or NULL */
  const char *saved;             /* where the last checkpoint of this run went, or NULL */
  int64_t saved_step;
  ampc_data_position position; /* of the next step */
  double deadline;             /* progress_clock() of --max-time, or infinity */
  bool out_of_time;
  Log *log;         /* of --log-dir, or NULL */
  bool json_failed; /* stdout could not be written */
  Progress progress;
  Glance glances[LOOKS]; /* those under way: a ring, whose index is the device's slot */
  uint32_t first_glance, n_glances;
  char *state; /* room for the STATE space */
} Session;

/* ---- glance.c ---- */
/* Asks for STATE as the calls so far leave it; `g` says what for. */
ampc_status glance_begin(Session *s, Glance g);
/* Takes what has come: a loss that is not finite ends the run, else the step is told to whom it is
 * due. `wait`: all. */
ampc_status glances_take(Session *s, bool wait);

/* ---- evaluate.c ---- */
/* Brings the next batch of a block to INPUT and runs its step. */
ampc_status session_step(Session *s, uint32_t block, int64_t *out_samples);
/* Averages of a block's metrics into s->values; clears them. */
ampc_status session_take_metrics(Session *s, uint32_t block);
/* Runs an eval block over all its data. */
ampc_status evaluate(Session *s, uint32_t block);
/* Those that are due after this step; all that have not run at this step with `last`. */
ampc_status evaluate_due(Session *s, bool epoch_ended, bool last);

/* ---- train.c ---- */
/* A non-finite loss, or overflow without end, as an error. */
ampc_status check_state(const Session *s, const ampc_state *state);
/* Writes a checkpoint unless this step has one already; keeps the last ones that were asked for. */
ampc_status session_save(Session *s, const char *path);
/* Batches of an epoch, as the options limit them. */
int64_t session_batches(const Session *s, uint32_t block);

/* ---- report.c: tells a step to whom it is due ---- */
ampc_status report_open(Session *s);
void report_begin_block(Session *s, uint32_t block);
/* After a train step; `must` at the end of an epoch. Asks for STATE when somebody is due, or with
 * `look`, and clears the block's metrics when somebody is due. */
ampc_status report_step(Session *s, uint32_t block, bool must, bool look);
/* Tells the step, from s->state: STATE as it was then. */
void report_tell(Session *s, const Glance *g);
void report_evaluated(Session *s, uint32_t block);
/* The end of a run. Gives `status`, or AMPC_BAD_FILE when that is 0 and a log was lost. */
ampc_status report_end(Session *s, ampc_status status);
int64_t report_every(const Session *s, uint32_t block); /* steps between lines */

/* ---- report_json.c: --json ---- */
void json_step(Session *s, uint32_t block, const Record *r);
void json_evaluated(Session *s, uint32_t block);
void json_end(Session *s, ampc_status status);

/* ---- log.c: --log-dir ---- */
/* Refuses a folder that holds the log of another run. A failure later is told once and ends the
 * log, not the run. */
ampc_status log_open(Session *s);
void log_step(Session *s, uint32_t block, const Record *r);
void log_evaluated(Session *s, uint32_t block);
const char *log_trouble(const Log *log); /* NULL: all was written */
void log_close(Log *log);                /* NULL is fine */

/* ---- keep.c: --keep-last and --keep-best ---- */
ampc_status keep_check(const Session *s); /* before the first step */
ampc_status keep_last(const Session *s);  /* after s->saved was written */
/* After the evaluation of a block: saves and keeps the run's state if it is among the best. */
ampc_status keep_best(Session *s, uint32_t block);

/* ---- progress.c ---- */
void progress_start(Progress *p, bool quiet);
bool progress_due(const Session *s, uint32_t block, bool must);
void progress_step(Session *s, uint32_t block, const Record *r, bool keep);
void progress_evaluated(Session *s, uint32_t block);
/* A message of its own line; progress_warn also with --quiet. */
void progress_note(Progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_warn(Progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_end_line(Progress *p); /* of a line that is still open */
double progress_clock(void);
/* Results, on stdout. */
void progress_results(Session *s);
