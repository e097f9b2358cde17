/* `amp train --probe-every`: who looks on at a training. */
#pragma once
#include "probe.h"

typedef struct OnLooker { /* context of ampc_train_options */
  Watch watch;
  const char *log_dir; /* of the run, or NULL */
  Lost lost;
} OnLooker;

/* after_step: of a step that was looked at, a line of DIR/probe.jsonl and the worst in words. */
ampc_status look_on(void *context, ampc_runtime *rt, uint32_t block, int64_t step,
                    const char **out_note);
