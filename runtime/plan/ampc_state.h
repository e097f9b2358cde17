/* What lives on the device and steers a step: counters, loss scaler, optimizers, metrics, settings.
 *
 * These structs are shared three ways: the host runtime, compiled kernels (the text of this file is
 * put before them; it includes nothing and is C and C++), and emitted programs through ampc_rt.h.
 * The STATE space (ampc_plan.h) is laid out as
 *   ampc_state, ampc_optimizer[n_optimizers], ampc_metric[], float settings[n_settings]
 * without gaps beyond each struct's own size. Host code never touches it in a step: it is read late
 * (metrics) and written between steps (settings). */
#ifndef AMPC_STATE_H
#define AMPC_STATE_H

typedef struct ampc_outside { /* the first element of a computed index that names no row */
  long long check;            /* 1 + its place in ampc_program.checks; 0: there was none */
  long long at, value;        /* where it stands, row-major, and what it is */
  long long step;             /* ampc_state.step then */
} ampc_outside;

typedef struct ampc_state {
  long long seed;
  long long body;    /* train bodies (micro-steps) attempted; keys the random numbers */
  long long step;    /* steps attempted: a step is `accumulate` bodies, or what an epoch has left */
  long long epoch;   /* from 0 */
  float scale;       /* loss scale; 1 when there is no scaler. Where each optimizer has its own: the
                        lowest of them, and `growth` likewise */
  float inv_scale;   /* 1 / scale, rounded once from fp64 */
  long long growth;  /* steps since the last overflow or growth; below 0: minus the number of
                        steps in a row that overflowed where the scale is lowest */
  long long spared;  /* overflows that have left the scale as it was, since it last was due to grow:
                        `hysteresis` - 1 at most */
  long long skipped; /* steps in which found_inf was 1 */
  long long replayed;  /* times that a step was begun again, its scale being lower. Note [replay] in
                          compiler/passes/gradient.c has what follows of it */
  long long begun;     /* `body` at the step's first one */
  int decided, passed; /* decisions of optimizers: in this attempt at the step; that are made for
                          good, in this one or those before it, and are not made again */
  int again, dropped;  /* 1: in this attempt the decisions from here on wait for the next; some
                          update of the step was dropped for good */
  int replay, pad;     /* 1: the last step has to be run again on the same batches, for the host */
  long long bad_loss;  /* without a scaler 1 + step of the first minimized value or gradient that is
                          not finite: from then on no update is taken; 0: none yet. With one minus
                          that, of the last minimized value, 0 where it is finite: one step */
  long long growth_interval;            /* 2000 */
  long long hysteresis;                 /* so many overflows lower the scale: 1 */
  double growth_factor, backoff_factor; /* 2 and 0.5; a product with the scale is rounded once */
  float min_scale, max_scale;
  int found_inf;     /* 1: some optimizer of this step met a non-finite gradient */
  int dynamic;       /* 0: static scale, or none */
  unsigned arrived;  /* blocks of the running kernel that are done with all but what its last block
                        does; 0 between kernels */
  int first, closes; /* 1: this body is the first, the last of its step; only a block that
                        accumulates asks, and ampc_set_group() writes them */
  unsigned call;     /* which batch of an evaluation, or call of an infer block, from 0: beside
                        `body` it keys the random numbers of blocks that train nothing */
  ampc_outside outside;
} ampc_state;

typedef struct ampc_optimizer {
  long long taken;  /* updates applied: schedules and bias correction count these */
  int found_inf;    /* 1: this step's gradients are not finite, the update is dropped */
  float grad_norm;  /* L2, unscaled, before clipping */
  float factor;     /* inv_scale times the clip factor: what a gradient is multiplied with */
  float lr;         /* of the last step, as the schedule gave it; for the progress line */
  int first, waits; /* 1: this body is the first of its step; it is not the last, so gradients are
                       only added up. Both 0 where nothing accumulates */
  float scale, inv_scale; /* where each optimizer has a loss scale of its own, as in ampc_state: */
  long long growth, spared; /* its scale; else 0 */
  int judged, overflowed;   /* likewise, 1: in this body it has decided; dropped an update */
} ampc_optimizer;

typedef struct ampc_metric { /* average = sum / count; of a statistic the sum is what counts */
  double sum;                /* of value times samples, since the host last cleared it */
  double count;              /* samples */
  float last;                /* value of the last body */
  int pad;
} ampc_metric;

#endif
