/* A run: the steps of the job's train blocks in their order, and the evaluations between them. The
 * training loop, the prompt and the tools that repeat steps drive one object. Each decides what it
 * reports and saves, and when it stops:
 *
 *   run_open(&r), run_start(&r);
 *   while (!(status = run_next(&r, &event)) && event != RUN_ended) ..
 *   run_close(&r); */
#pragma once
#include "runtime/metric.h"
#include "runtime/runtime.h"

typedef enum RunEvent {
  RUN_nothing,
  RUN_block,     /* a train block begins */
  RUN_step,      /* a step was started; its number is Run.steps */
  RUN_evaluated, /* the eval block Run.eval_block has run; its metrics are in Run.values */
  RUN_settled,   /* all evaluations that were due have run */
  RUN_left,      /* no step of the train block is left */
  RUN_ended,
  RUN_EVENTS
} RunEvent;

typedef enum RunPoll { POLL_begins, POLL_batch, POLL_ends } RunPoll; /* of an evaluation */

typedef struct RunCalls { /* functions of the caller, each with `context`; all may be NULL */
  void *context;
  /* Opens the data of a block when it is first needed. The caller closes it. NULL: the
   * caller has filled Run.batches. */
  ampc_status (*open)(void *context, uint32_t block, ampc_batches **out);
  /* Called when an evaluation begins, after each of its batches, and before its metrics are read.
   * *out_stop, false at first, ends the evaluation. */
  ampc_status (*poll)(void *context, RunPoll when, bool *out_stop);
  ampc_tell *tell; /* told what an evaluation has decided: a setting is lowered, a block ends.
                      NULL only if no evaluation decides */
} RunCalls;

typedef struct Course { /* the steps of one train block in this run */
  uint32_t index;
  const ampc_block *block; /* NULL: no train block */
  int64_t batches;         /* batches per epoch, as limited by options */
  int64_t per_epoch;       /* steps per epoch */
  int64_t first, end;      /* this run trains steps [first, end) of the block */
  int64_t whole;           /* steps of the whole block; schedules use this length */
} Course;

typedef struct Run Run;
typedef ampc_status RunPhase(Run *r, RunEvent *out);

struct Run {
  /* ---- set by the caller before run_open ---- */
  ampc_runtime *rt;
  const ampc_program *program;
  const ampc_data_interface *data;
  const ampc_train_options *options; /* limits of steps, batches and evaluations; resume */
  RunCalls calls;
  bool judging; /* run only evaluations on which training depends */
  bool endless; /* the last train block goes on after its last step */
  bool finish;  /* train no more steps: end this block, then the run. May be set at any event */
  /* ---- where the run stands: set by the caller before run_start, then by the run ---- */
  ampc_data_position position; /* of the next step */
  int64_t per_epoch;           /* batches of an epoch when `position` was set; 0: as now */
  int64_t steps;               /* attempted, including before a resume */
  /* ---- set by the run ---- */
  ampc_batches **batches; /* one per block; NULL: not open */
  Course *courses;        /* one per block */
  Course course;          /* of the current train block */
  int64_t step;           /* the block's next step */
  int64_t total;          /* steps of the run, including before a resume */
  int64_t samples;        /* of the last step */
  bool sought;            /* the loader stands at the next step. A limited epoch still begins with a
                             seek */
  bool last;              /* no step follows */
  bool stale;             /* early stop ends the block */
  bool stopped;           /* the last evaluation was stopped: its metrics cover part of the data */
  bool changed; /* an evaluation has changed what a checkpoint stores. The caller clears it */
  bool ranked;  /* since the last RUN_settled, the block that ranks checkpoints was evaluated */
  uint32_t next_block;    /* the train blocks before it are done */
  uint32_t eval_block;    /* the one that RUN_evaluated reports; then where the search goes on */
  RunPhase *phase, *then; /* what run_next does; `then`: after evaluations */
  bool epoch_ended;       /* evaluations at the end of an epoch are due */
  bool only_awaited;      /* a due evaluation on which training does not depend is left out */
  int64_t *evaluated;     /* one per block: the step of its last evaluation, or -1 */
  double *values;         /* one per metric: its last value; NaN: unknown */
  bool *known;            /* one per metric: whether it has a value */
  ampc_metric *sums;      /* from which `values` are computed: ampc_metric_slots entries */
  double evaluating;      /* seconds that evaluations have taken */
};

/* Makes room. Call run_close also after a failure. Without run_start, run_next only evaluates each
 * eval block once. */
ampc_status run_open(Run *r);
void run_close(Run *r); /* the data stay open */

/* Finds the steps of all train blocks, from run.position on, and opens their data. Afterwards
 * `position` is that of the next step in a train block. */
ampc_status run_find(Run *r);
/* Finds the steps, sets the lengths of schedules that have no `steps`, and begins. */
ampc_status run_start(Run *r);
/* Goes on to the next event. */
ampc_status run_next(Run *r, RunEvent *out);
/* Whether no step follows the last one, unless early stop ends its block before. */
bool run_is_last(const Run *r);

/* run_enter makes `step` the next step of a train block; run_step trains it. Neither evaluates.
 * After run_enter, the caller may set run.steps: the steps attempted before `step`. */
ampc_status run_enter(Run *r, uint32_t block, int64_t step);
ampc_status run_step(Run *r);

/* Opens the data of a block if they are not open: run.batches[block]. */
ampc_status run_data(Run *r, uint32_t block);
/* Returns the batches per epoch, as the options limit them. */
int64_t run_batches(const Run *r, uint32_t block);
/* Sets *out to the steps of a train block. False: its epochs are more than AMPC_MOST_STEPS. */
bool run_length(const ampc_block *b, int64_t per_epoch, int64_t *out);
/* Returns the position of the first batch of a step. */
ampc_data_position run_position(const Course *c, int64_t step);
/* True if messages count skipped steps: with a scaler, and once `skip_above` has skipped one. */
bool run_shows_skipped(const ampc_program *p, const ampc_state *state);

/* ---- evaluate.c ---- */
/* Computes run.values of a block from run.sums. */
void run_set_values(Run *r, uint32_t block);
/* Looks for the next evaluation that is due; runs it, or ends with RUN_settled. */
RunPhase run_evaluate;

/* ---- early_stop.c ---- */
/* Returns the evaluations without an improvement after which the block ends; 0: never. */
int64_t early_stop_of(const Run *r, uint32_t block);
ampc_status early_stop_check(const Run *r); /* refuses a job that cannot stop early */
/* Whether the evaluation of a block at this step counts. */
bool early_stop_waits_for(const Run *r, uint32_t block);
void early_stop_begin(Run *r);                /* when the current train block begins */
void early_stop_note(Run *r, uint32_t block); /* counts the evaluation of a block */
