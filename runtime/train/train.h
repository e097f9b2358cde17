/* Shared by the files of the training loop. */
#pragma once
#include "judge.h"
#include "run.h"
#include "runtime/members.h"

typedef struct Session Session;
typedef struct Field Field; /* fields.h */

/* ---- sinks: consumers of a run's steps ---- */

/* All sinks, in the order in which they are called. A new sink needs an X(NAME) here and a file
 * that defines its Sink as `NAME_sink`. */
#define SINKS(X) X(line) X(json) X(table) X(events)

#define SINK_ENUM(name) SINK_##name,
enum { SINKS(SINK_ENUM) SINK_COUNT };

typedef struct Record { /* a step as sinks report it; its metrics are in Run.values */
  uint32_t block;
  int64_t step, samples; /* samples trained since this process started */
  ampc_state state;
  double seconds, rate; /* seconds: training time since the start, without evaluating and saving.
                           rate: samples per second; 0: unknown */
  double data_wait;     /* fraction of that time, since the sink's last report, in which the host
                           waited for data */
  bool must;            /* the end of an epoch or of the run: every open sink reports it */
} Record;

/* The functions of a sink. `open` sets *own to the sink's data. All functions except `open` and
 * `end` are called only if *own is not NULL. `end` may be NULL. A sink that cannot write warns once
 * and then stays silent: a failed write never ends a run. */
typedef struct Sink {
  /* Called before the first step. Leaves *own NULL if the options do not request this sink. */
  ampc_status (*open)(Session *s, void **own);
  /* Whether this sink reports the step that was just started. Called once per step. */
  bool (*due)(Session *s, void *own, uint32_t block, bool must);
  void (*step)(Session *s, void *own, const Record *r);
  void (*evaluated)(Session *s, void *own, uint32_t block);
  /* Called at the end of the run, even if the run failed before `open`. Frees `own`. If `status` is
   * 0 and the sink's output is incomplete, returns an error. */
  ampc_status (*end)(Session *s, void *own, ampc_status status);
} Sink;

#define SINK_DECLARE(name) extern const Sink name##_sink;
SINKS(SINK_DECLARE)

/* ---- one run ---- */

/* Progress on stderr: one rewritten line on a terminal, otherwise a line every `log` steps. */
typedef struct Progress {
  bool quiet, terminal;
  bool silent;             /* prints nothing, not even warnings: another rank leads */
  bool line_open;          /* the terminal's current line has no newline yet */
  double started, printed; /* values of seconds_now() */
  double paused;           /* seconds spent on saving since the start */
  struct Mark {            /* the samples after some seconds of training: see recent_rate() */
    double seconds;
    int64_t samples;
  } old, recent;
  int64_t samples, steps; /* number of samples and steps trained since the start */
} Progress;

/* A copy of STATE after one step, on its way from the device. The loop does not wait for it. */
typedef struct Glance {
  uint32_t block;
  int64_t step, samples;
  bool told, due[SINK_COUNT]; /* told: some sink reports the step; due: which ones */
  bool must;                  /* as in Record */
} Glance;

typedef struct Telling {  /* a sink in this run */
  void *own;              /* the sink's data; NULL: the sink is not active */
  ampc_metric *sums;      /* sums since this sink last reported: ampc_metric_slots entries */
  double seconds, waited; /* at its last report: Record.seconds, and of these waiting for data */
} Telling;

struct Session {
  Run run;
  uint64_t seed;
  Telling telling[SINK_COUNT];
  double *rates;  /* one per optimizer: its last learning rate */
  double *scales; /* one per optimizer: its loss scale, if each has its own */
  Field *fields;  /* what logs report of a step besides `run.values` */
  uint32_t n_fields;
  int *locks;         /* one per block: the lock on its checkpoint file, or -1 */
  int64_t *logged;    /* one per block: the step of its last evaluation in the log at the start, or
                         -1 */
  double seconds;     /* that the last call of run_next took */
  bool resume_of_job; /* options->resume comes from the job */
  const char *path;   /* where the current train block saves, or NULL */
  const char *saved;  /* the last checkpoint that this run wrote, or NULL */
  int64_t saved_step;
  bool saves;      /* a checkpoint was due at this step */
  double deadline; /* seconds_now() at which --max-time ends the run, or infinity */
  bool out_of_time;
  bool ending, save_asked; /* signals: the run is to end; a checkpoint is to be written */
  bool alike; /* the run failed on all ranks for the same reason, and they have not agreed on it */
  bool log_failed; /* the log in --log-dir is incomplete; the user was warned */
  Progress progress;
  Glance glances[LOOKS]; /* ring of unread copies; the index is the `slot` of Device.look */
  uint32_t first_glance, n_glances;
  char *state;     /* a host copy of the STATE space */
  bool told_empty; /* the run has warned about batches without a label */
};

/* ---- together.c: runs of several ranks; without other ranks these change nothing ---- */
/* Whether this process prints, logs and writes files. */
bool session_leads(const Session *s);
/* Lets all ranks fail if one has: ranks_agree. */
ampc_status session_agree(const Session *s, ampc_status status);
/* Looks for signals and at the clock, and sets ending, save_asked and out_of_time on all ranks
 * alike. */
ampc_status session_poll(Session *s);
/* Sets *choice to that of the rank that leads. */
ampc_status session_choose(const Session *s, bool *choice);
void session_stepped(const Session *s, double seconds); /* ranks_step */
void session_busy(const Session *s);                    /* ranks_busy */
/* Lets the loader of a block read only the samples of this process. */
ampc_status session_share(const Session *s, uint32_t block);
/* Refuses ranks that would not run the same job with the same options on the same data. */
ampc_status session_same(const Session *s);

/* ---- weights.c: --save-weights ---- */
ampc_status weights_check(const Session *s); /* refuses a file that the run cannot write */
ampc_status weights_save(Session *s);

void sorted_warn(const Session *s, uint32_t block); /* sorted.c: the order of labels */

/* ---- resume.c ---- */
/* If --resume is not given, the run continues from the checkpoint that the job names with
 * `resume=`. A job that saves to that file finds none in its first run: a note says so, and the run
 * begins with initial values. */
ampc_status resume_settle(Session *s, ampc_train_options *own);
/* Tells of the checkpoint that is loaded: the step, and whether it was trained on another part. */
void resume_tell(Session *s);

/* ---- glance.c ---- */
/* Requests a copy of STATE as it will be after all calls so far. `g` describes the step. */
ampc_status glance_begin(Session *s, Glance g);
/* Takes the copies that have arrived: ends the run if the loss is not finite, otherwise passes the
 * step to the sinks that are due. `wait`: first waits for all copies. */
ampc_status glances_take(Session *s, bool wait);

/* ---- train.c ---- */
/* Calls lost_check with the run's last checkpoint. If it returns an error, calls options->lost. */
ampc_status check_state(Session *s, const ampc_state *state);
/* Writes a checkpoint unless the last one has the same contents. Applies --keep-last. */
ampc_status session_save(Session *s, const char *path);

/* ---- report.c: passes steps to the sinks that are due ---- */
ampc_status report_open(Session *s);
void report_begin_block(Session *s, uint32_t block);
/* Reports a train step; `must`: every sink is due. Requests a copy of STATE if a sink is due or
 * `look` is set. Clears the block's metrics if a sink is due. */
ampc_status report_step(Session *s, uint32_t block, bool must, bool look);
/* Reports the step `g`. s->state is STATE as it was after that step. */
void report_tell(Session *s, const Glance *g);
void report_evaluated(Session *s, uint32_t block);
/* Ends the reports. Returns `status`, or AMPC_BAD_FILE if it is 0 but a sink's output is
 * incomplete. */
ampc_status report_end(Session *s, ampc_status status);
int64_t report_every(const Session *s, uint32_t block); /* steps between lines */

/* ---- keep.c: --keep-last and --keep-best ---- */
ampc_status keep_check(const Session *s); /* call it before the first step */
ampc_status keep_last(const Session *s);  /* call it after s->saved is written */
void keep_begin(Session *s); /* when a train block begins: says which metrics count as better */
/* Saves and keeps the run's state after the evaluation that ranks it, if it is among the best. */
ampc_status keep_best(Session *s);

/* ---- progress.c ---- */
void progress_start(Progress *p, bool quiet);
/* Prints a message on a line of its own. progress_warn prints even with --quiet. */
void progress_note(Progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_warn(Progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_tell(void *progress, bool warning, const char *line); /* an ampc_tell */
void progress_end_line(Progress *p); /* ends a line that is still open */
/* Prints the results on stdout. */
void progress_results(Session *s);
