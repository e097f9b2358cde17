/* A batch that the calling program gives: loop.c checks it, batch.c runs a step on it. */
#pragma once
#include "runtime/runtime.h"

typedef struct Given {
  const void *const *in; /* for each source of the block: its samples */
  int64_t samples;
  bool on_device; /* in[] is memory of the device, which the work of `stream` so far writes */
  void *stream;
} Given;

/* Runs an eval block, or one body of a step of a train block. `body` counts the bodies, or the
 * batches of an evaluation, from 0. Asynchronous, unless the scaler has `replay`. */
ampc_status batch_run_given(ampc_runtime *rt, uint32_t block, const Given *given, int64_t body);
