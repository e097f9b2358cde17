/* The files of --log-dir. */
#pragma once
#include "train.h"

/* ---- both files: log.c ---- */

/* Something could not be written, for the reason in errno: says so once; no more is written. */
void log_give_up(Session *s);
/* A file could not be opened. A full disk only ends the log: it may not be full any more at the
 * next checkpoint. Anything else is an error before the first step. */
ampc_status log_unwritable(Session *s);

/* Whether the log had an evaluation at this step when the run began; both files have it then. */
bool log_has(const Session *s, uint32_t block);
/* Sink.due of both. */
bool log_due(Session *s, void *own, uint32_t block, bool must);

/* ---- the format of events: log_events.c ---- */

/* A TensorBoard event file: TFRecord frames, each a protobuf Event. Functions give false with errno
 * set when the file could not be written. */
typedef struct Events {
  int fd;
} Events;

/* A new file in the folder. `step`: the run goes on from there, so what a reader has of later steps
 * is void; 0 for a new run. */
bool events_open(Events *e, const char *folder, int64_t step);
/* One number under a name such as "train/loss". */
bool events_scalar(Events *e, int64_t step, const char *tag, double value);
bool events_close(Events *e);
