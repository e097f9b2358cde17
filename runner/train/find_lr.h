/* amp train --find-lr: a range test of the learning rate (Smith, 2017, "Cyclical learning rates for
 * training neural networks", section 3.3). */
#pragma once
#include "ampc_rt.h"
#include "compiler/base/compile.h"
#include "compiler/cli/option_table.h"

typedef struct LrRange { /* what --find-lr asks for; high 0: no test */
  double low, high;
} LrRange;

typedef struct FindLr FindLr;

OptionRead find_lr_read; /* reads `LOW,HIGH`, or nothing, into an LrRange */

/* Begins a test and changes `options`, so that the job's learning rates, schedules too, become
 * numbers that the test can set. *out is in the arena. Fails if the job does not compile. */
ampc_status find_lr_open(Arena *arena, LrRange range, Options *options, FindLr **out);
/* Makes the options of a run those of the test. */
void find_lr_options(FindLr *f, ampc_train_options *options);
/* Prints the test, unless `silent`. Takes the status of the run and returns that of the test. */
ampc_status find_lr_tell(const FindLr *f, ampc_status status, bool silent);
