/* `amp train --probe-every`: probes some steps of a training run. */
#pragma once
#include "probe.h"

typedef struct OnLooker { /* context of ampc_train_options */
  Watch watch;
  Arena *arena;
  const char *log_dir; /* --log-dir of the run, or NULL */
  Lost lost;
} OnLooker;

/* Implements the after_step callback: after a probed step it writes a line to DIR/probe.jsonl and
 * returns the worst findings as a note. */
ampc_status look_on(void *context, ampc_runtime *rt, uint32_t block, int64_t step,
                    const char **out_note);
