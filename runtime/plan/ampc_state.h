/* The state on the device that controls a step: counters, scaler, optimizers, metrics, settings.
 *
 * Three users share these structs: the host runtime, emitted programs (through ampc_rt.h), and
 * compiled kernels. The text of this file is put before the kernels; it includes nothing and is C
 * and C++. The STATE space (ampc_values.h) has the layout
 *   ampc_state, ampc_optimizer[n_optimizers], ampc_metric[], float settings[n_settings]
 * without gaps other than the padding of each struct. The host does not access it during a step: it
 * reads metrics later and writes settings between steps. */
#ifndef AMPC_STATE_H
#define AMPC_STATE_H

typedef struct ampc_outside { /* the first element of a computed index that is out of range */
  long long check;            /* 1 + the check's index in ampc_program.checks; 0: no such element */
  long long at, value;        /* the element's position, row-major, and its value */
  long long step;             /* ampc_state.step at that time */
} ampc_outside;

typedef struct ampc_state {
  long long seed;
  long long body;    /* train bodies (micro-steps) attempted; part of the key of random numbers */
  long long step;    /* steps attempted, of `accumulate` bodies each; the last of an epoch may have
                        fewer */
  long long epoch;   /* from 0 */
  float scale;       /* loss scale; 1 without a scaler. If each optimizer has its own scale: the
                        lowest of them; `growth` likewise */
  float inv_scale;   /* 1 / scale, rounded once from fp64 */
  long long growth;  /* steps since the last overflow or growth; below 0: minus the number of steps
                        in a row that overflowed at the lowest scale */
  long long spared;  /* overflows that did not lower the scale, since it last was due to grow: below
                        `hysteresis` */
  long long skipped; /* steps in which found_inf was 1 */
  long long replayed;  /* restarts of steps at a lower scale: Note [replay] in
                          compiler/passes/gradient.c */
  long long begun;     /* `body` at the step's first body */
  int decided, passed; /* numbers of optimizers' decisions: in this attempt at the step; those that
                          are final, of this or earlier attempts, and are not made again */
  int again, dropped;  /* 1: the decisions from here on wait for the next attempt; an update of the
                          step was dropped for good */
  int replay, pad;     /* replay: 1: the host must run the last step again on the same batches */
  long long bad_loss;  /* without a scaler: 1 + step of the first minimized value or gradient that
                          is not finite, after which no update is applied; 0: none yet. With a
                          scaler: minus that for the last minimized value, or 0 if it is finite */
  long long growth_interval;            /* 2000 */
  long long hysteresis;                 /* the scale is lowered after this many overflows: 1 */
  double growth_factor, backoff_factor; /* 2 and 0.5; the product with the scale is rounded once */
  float min_scale, max_scale;
  int found_inf;     /* 1: some optimizer of this step found a non-finite gradient */
  int dynamic;       /* 0: static scale, or none */
  unsigned arrived;  /* blocks of the running kernel that have done all but its last block's work; 0
                        between kernels */
  int first, closes; /* 1: this body is the first, the last of its step. Only blocks that accumulate
                        read them; ampc_set_group() writes them */
  unsigned call;     /* number of the evaluation's batch, or of the infer block's call, from 0: with
                        `body` the key of the random numbers of blocks that do not train */
  ampc_outside outside;
} ampc_state;

typedef struct ampc_optimizer {
  long long taken;  /* updates applied; schedules and bias correction count these */
  int found_inf;    /* 1: this step's gradients are not finite, so the update is dropped */
  float grad_norm;  /* L2, unscaled, before clipping */
  float factor;     /* inv_scale times the clip factor; gradients are multiplied by it */
  float lr;         /* learning rate of the last step, by the schedule; for the progress line */
  int first, waits; /* first: 1: this body is the first of its step. waits: 1: it is not the last,
                       so gradients are only summed. Both 0 in a block that does not accumulate */
  float scale, inv_scale;   /* this optimizer's own scale, if each has one; else 0 */
  long long growth, spared; /* as in ampc_state, for that scale; else 0 */
  int judged, overflowed;   /* likewise, 1: in this body it has decided, has dropped an update */
} ampc_optimizer;

typedef struct ampc_metric { /* average = sum / count; a statistic uses only `sum` */
  double sum;                /* of value times samples, since the host last cleared it */
  double count;              /* samples */
  float last;                /* value of the last body */
  int pad;
} ampc_metric;

#endif
