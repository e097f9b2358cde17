/* What the files of the training loop share. */
#pragma once
#include "judge.h"
#include "runtime/metric.h"

typedef struct Session Session;

/* ---- who is told about steps ---- */

/* All of them, in the order in which they are told. One more is one word here and one file that
 * defines its Sink: `NAME_sink`. */
#define SINKS(X) X(line) X(json) X(table) X(events)

#define SINK_ENUM(name) SINK_##name,
enum { SINKS(SINK_ENUM) SINK_COUNT };

typedef struct Record { /* a step, as it is told; its metrics are in Session.values */
  uint32_t block;
  int64_t step, samples; /* trained until then, since the start */
  ampc_state state;
  double seconds, rate; /* since the start, pauses left out; samples a second, or 0 */
  bool must;            /* the end of an epoch or of the run, which everybody is told */
} Record;

/* What a sink does. `own` is what `open` gave; functions but `open` and `end` are called only where
 * that is not NULL. `end` may be NULL. A sink that cannot write warns once and is silent from
 * then on: telling never ends a run. */
typedef struct Sink {
  /* Before the first step. Leaves *own NULL where the options do not ask for this sink. */
  ampc_status (*open)(Session *s, void **own);
  /* Is this sink to be told of the step that has just been asked for? Asked once a step. */
  bool (*due)(Session *s, void *own, uint32_t block, bool must);
  void (*step)(Session *s, void *own, const Record *r);
  void (*evaluated)(Session *s, void *own, uint32_t block);
  /* The end of the run, also of one that failed before `open`: frees `own`. Where `status` is 0,
   * gives a failure if not all was written. */
  ampc_status (*end)(Session *s, void *own, ampc_status status);
} Sink;

#define SINK_DECLARE(name) extern const Sink name##_sink;
SINKS(SINK_DECLARE)

/* ---- one run ---- */

/* Progress on stderr: one line that is rewritten on a terminal, a line every `log` steps else. */
typedef struct Progress {
  bool quiet, terminal;
  bool line_open;          /* the terminal's cursor stands behind an unfinished line */
  double started, printed; /* seconds */
  double paused;           /* spent on evaluation and saving since the start */
  int64_t samples, steps;  /* trained since the start */
} Progress;

/* STATE as it was after a step, on its way from the device: the loop does not wait for it. */
typedef struct Glance {
  uint32_t block;
  int64_t step, samples;
  bool told, due[SINK_COUNT]; /* to whom; if to anybody, the block's metrics begin anew */
  bool must;                  /* as in Record */
} Glance;

typedef struct Telling { /* a sink in this run */
  void *own;             /* of the sink; NULL: it is not told */
  ampc_metric *sums;     /* one a slot: since this sink was last told */
} Telling;

struct Session {
  ampc_runtime *rt;
  const ampc_program *program;
  const ampc_data_interface *data;
  const ampc_train_options *options;
  uint64_t seed;
  ampc_batches **batches; /* one a block; NULL where the run does not need it */
  double *values;         /* one a metric: its last average */
  bool *known;       /* likewise: it has one of the steps now told; `every` may not have fired */
  ampc_metric *told; /* what these were made of: one a slot, see ampc_metric_slots */
  Telling telling[SINK_COUNT];
  double *rates;        /* one an optimizer: its last learning rate */
  double *scales;       /* likewise: its loss scale, where each has its own */
  int *locks;           /* one a block: that of where it saves, or -1 */
  int64_t *evaluated;   /* one a block: the step of its last evaluation, or -1 */
  int64_t *logged;      /* likewise, of what the log had when the run began */
  int64_t steps, total; /* attempted, those before a resume included; of the whole run */
  bool resume_of_job;   /* options->resume is the job's own */
  const char *path;     /* where the train block that runs saves, or NULL */
  const char *saved;    /* where the last checkpoint of this run went, or NULL */
  int64_t saved_step;
  bool judged; /* an evaluation after that save has changed what a checkpoint holds */
  ampc_data_position position; /* of the next step */
  double deadline;             /* seconds_now() of --max-time, or infinity */
  bool out_of_time;
  bool stale;      /* the train block that runs ends early */
  bool log_failed; /* the log in --log-dir is not complete; that was said */
  Progress progress;
  Glance glances[LOOKS]; /* those under way: a ring, whose index is the device's slot */
  uint32_t first_glance, n_glances;
  char *state; /* room for the STATE space */
};

/* ---- resume.c ---- */
/* Where --resume is not given, what the job says. It may say where it saves itself: the first time
 * nothing is there, which is told, and the run begins anew. */
ampc_status resume_settle(Session *s, ampc_train_options *own);

/* ---- glance.c ---- */
/* Asks for STATE as the calls so far leave it; `g` says what for. */
ampc_status glance_begin(Session *s, Glance g);
/* Takes what has come: a loss that is not finite ends the run, else the step is told to whom it is
 * due. `wait`: all. */
ampc_status glances_take(Session *s, bool wait);

/* ---- evaluate.c ---- */
/* s->values of a block, of s->told. */
void session_set_values(Session *s, uint32_t block);
/* Those that are due after this step; all that have not run at this step with `last`. */
ampc_status evaluate_due(Session *s, bool epoch_ended, bool last);

/* ---- train.c ---- */
/* lost_check, with the run's last checkpoint. */
ampc_status check_state(const Session *s, const ampc_state *state);
/* Writes a checkpoint unless it would equal the last one; keeps the last ones asked for. */
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

/* ---- keep.c: --keep-last and --keep-best ---- */
ampc_status keep_check(const Session *s); /* before the first step */
ampc_status keep_last(const Session *s);  /* after s->saved was written */
/* After the evaluation of a block: saves and keeps the run's state if it is among the best. */
ampc_status keep_best(Session *s, uint32_t block);

/* ---- early_stop.c ---- */
/* Evaluations without a better one after which a train block ends; 0: never. */
int64_t early_stop_of(const Session *s, uint32_t block);
ampc_status early_stop_check(const Session *s); /* before the first step */
/* A train block begins; `anew`: with its first step. */
void early_stop_begin(Session *s, bool anew);
/* After the evaluation of a block. */
void early_stop_note(Session *s, uint32_t block);

/* ---- progress.c ---- */
void progress_start(Progress *p, bool quiet);
/* A message of its own line; progress_warn also with --quiet. */
void progress_note(Progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_warn(Progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_end_line(Progress *p); /* of a line that is still open */
/* Results, on stdout. */
void progress_results(Session *s);
