/* The files of --log-dir. */
#pragma once
#include "train.h"

/* ---- both files: log.c ---- */

/* Stops writing after a failed write, with the reason in errno, and warns once. */
void log_give_up(Session *s);
/* Handles a file that could not be opened. If the disk is full, the run continues without a log,
 * because there may be space again at the next checkpoint. Any other reason ends the run before its
 * first step. */
ampc_status log_unwritable(Session *s);

/* Whether the log already had an evaluation of this step when the run began. Only the table is
 * checked, because the events contain the same evaluations. */
bool log_has(const Session *s, uint32_t block);
/* Implements Sink.due of both sinks. */
bool log_due(Session *s, void *own, uint32_t block, bool must);

/* Writes run.json: log_run.c. If it cannot, it warns. */
void log_run(Session *s);

/* ---- the format of events: log_events.c ---- */

/* A TensorBoard event file: TFRecord frames, each with a protobuf Event. If the file cannot be
 * written, functions return false and set errno. */
typedef struct Events {
  int fd;
} Events;

/* Creates a file in the folder. `step`: the step from which the run resumes, so that a reader
 * discards events of later steps; 0 for a new run. */
bool events_open(Events *e, const char *folder, int64_t step);
/* Writes one number under a name such as "train/loss". */
bool events_scalar(Events *e, int64_t step, const char *tag, double value);
bool events_close(Events *e);
