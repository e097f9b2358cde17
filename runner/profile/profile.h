/* Shared by the files of `amp profile`: what was measured, as sums over commands. */
#pragma once
#include "compiler/cost/predict.h"
#include "runner/inspect/inspect.h"
#include "runtime/runtime.h"

typedef struct ProfileRow { /* a command that ran. Its facts have the times, for one step */
  CommandRow *row;
  int64_t runs;     /* in all measured steps; more than one in a step: the command is in a loop */
  double us, least; /* sum; the fastest run, without the other iterations of a loop */
  double *busy;     /* mean time that each thread computes; NULL on a GPU */
} ProfileRow;

typedef struct ProfileBlock { /* a variant of a block that ran */
  uint16_t block;             /* index into Graph.blocks */
  uint32_t first, n;          /* its rows */
  int64_t runs;
  double us, step_us; /* of a run: sum of the commands; as the training loop sees it */
  /* waiting for the loader, and copying the batch in, before the step; in the step, waiting for the
   * device */
  double load_us, upload_us, wait_us;
} ProfileBlock;

typedef struct Measured {
  Inspection *in;
  Profile *profile;     /* owned by the caller */
  const char *device;   /* "cpu", "cuda:0 NVIDIA H200" */
  const Gpu *gpu;       /* for predictions; NULL: a GPU that the table does not have */
  uint32_t threads;     /* 0 on a GPU */
  ProfileBlock *blocks; /* those that ran */
  uint32_t n_blocks;
  ProfileRow *rows;
  ProfileRow **row_of;       /* index in ampc_runtime.bound -> row; NULL: a loop, or did not run */
  double timed_us, plain_us; /* a step of the training loop with and without times; 0: unknown */
  uint32_t steps;            /* steps of the training loop with times */
  const TimeSpan *plain;     /* the steps without times, for the trace */
  uint32_t n_plain;
} Measured;

/* ---- sums.c ---- */
/* Fills in blocks and rows from the spans in m->profile. `rt` is the runtime that was profiled. */
void profile_sum(Measured *m, const ampc_runtime *rt);

const char *profile_layer(const CommandRow *row); /* "(no layer)" if it has none */
/* If a tool of NVIDIA watches this process, lets the profile report ranges to it. */
void profile_name_ranges(Profile *p, const Inspection *in, const ampc_runtime *rt);

/* ---- print.c, json.c, trace.c ---- */
void profile_print(const Measured *m);
json_t *profile_json(const Measured *m);
/* Returns Chrome's trace events, which Perfetto reads, too. */
json_t *profile_trace(const Measured *m);

/* ---- measure.c ---- */

/* Steps with and without times take turns, after some steps of warm-up. So both see the same
 * machine, and their difference is the cost of measuring. Set the first three members. */
typedef struct Turns {
  Profile *profile;
  ampc_runtime *rt;
  Arena *arena;
  int64_t step;             /* number of steps that have begun */
  double begin;             /* of the current step */
  VEC(double) timed, plain; /* microseconds of the steps after the warm-up */
  VEC(TimeSpan) spans;      /* of the plain steps */
} Turns;
/* Returns the number of steps that the loop must run to time `steps` steps. */
int64_t turns_steps(const Turns *t, uint32_t steps);
/* Call it between two steps of the training loop: waits for the device, then begins a turn. */
ampc_status turns_next(Turns *t, ampc_runtime *rt);
/* Runs up to `most` batches of each eval block with times. */
ampc_status profile_evaluate(Turns *t, const char *data_dir, uint32_t most);
/* Sums what was measured; predicts for the device. *out is valid as long as turns and inspection.
 */
void profile_finish(Turns *t, Inspection *in, Measured *out);
