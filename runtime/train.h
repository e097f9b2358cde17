/* What the files of the training loop share. */
#pragma once
#include "runtime.h"

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
  int64_t step;
  bool line, keep; /* wanted for a line of progress; the line stays */
} Glance;

typedef struct Session {
  ampc_runtime *rt;
  const ampc_program *program;
  const ampc_data_interface *data;
  const ampc_train_options *options;
  uint64_t seed;
  ampc_batches **batches; /* one a block; NULL where the run does not need it */
  double *values;         /* one a metric: its last average */
  int64_t *evaluated;     /* one a block: the step of its last evaluation, or -1 */
  int64_t steps, total;   /* attempted, those before a resume included; of the whole run */
  const char *saved;      /* where the last checkpoint of this run went, or NULL */
  int64_t saved_step;
  ampc_data_position position; /* of the next step */
  Progress progress;
  Glance glances[LOOKS]; /* those under way: a ring, whose index is the device's slot */
  uint32_t first_glance, n_glances;
  char *state; /* room for the STATE space */
} Session;

/* Brings the next batch of a block to INPUT and runs its step. */
ampc_status session_step(Session *s, uint32_t block, int64_t *out_samples);
/* Averages of a block's metrics into s->values; clears them. */
ampc_status session_take_metrics(Session *s, uint32_t block);

/* Asks for STATE as the calls so far leave it. */
ampc_status glance_begin(Session *s, uint32_t block, bool line, bool keep);
/* Takes what has come: a loss that is not finite ends the run, lines are printed. `wait`: all. */
ampc_status glances_take(Session *s, bool wait);
/* That loss as an error. */
ampc_status check_state(const Session *s, const ampc_state *state);

/* Runs an eval block over all its data. */
ampc_status evaluate(Session *s, uint32_t block);
/* Those that are due after this step; all that have not run at this step with `last`. */
ampc_status evaluate_due(Session *s, bool epoch_ended, bool last);

void progress_start(Progress *p, bool quiet);
/* After a train step; `must` at the end of an epoch. Asks for the block's metrics and clears them
 * when a line is due. */
ampc_status progress_step(Session *s, uint32_t block, bool must);
void progress_line(Session *s, const Glance *g, const char *state);
void progress_evaluated(Session *s, uint32_t block);
/* A message of its own line. */
void progress_note(Progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_end_line(Progress *p); /* of a line that is still open */
double progress_clock(void);
/* Results, on stdout. */
void progress_results(Session *s);
