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

typedef struct ampc_outside { /* the first index value that was out of range */
  long long check;            /* 1 + index of its ampc_program.checks; 0: none was out of range */
  long long at, value;        /* at: position in the index tensor, row-major; value: the index */
  long long step;             /* ampc_state.step at that time */
} ampc_outside;

typedef struct ampc_state {
  long long seed;
  long long body; /* train bodies (micro-steps) attempted; part of the key of random numbers */
  long long first_sample; /* index in the batch of the member's first sample; part of the place of
                             random numbers. 0 without other members */
  long long step;  /* steps attempted. A step has `accumulate` bodies; the last step of an epoch
                      may have fewer */
  long long epoch; /* from 0 */
  float scale; /* loss scale; 1 without a scaler. If each optimizer has its own scale, this is the
                  lowest of them, and `growth` is the lowest `growth` */
  float inv_scale;   /* 1 / scale, rounded once from fp64 */
  long long growth;  /* steps since the scale last changed or a step overflowed. Negative: minus the
                        number of steps in a row that overflowed at the lowest scale */
  long long spared;  /* overflows that did not lower the scale, counted since the scale was last due
                        to grow; always below `hysteresis` */
  long long skipped; /* steps in which an update was dropped */
  long long replayed; /* restarts of steps at a lower scale: Note [replay] in
                         compiler/passes/gradient.c */
  long long begun;    /* `body` at the step's first body */
  /* decided: optimizers that this attempt at the step has reached. passed: optimizers whose
   * decision (update or drop) is final, also from earlier attempts */
  int decided, passed;
  int again, dropped; /* again: 1: a gradient overflowed, so the step runs again and the optimizers
                         that follow wait. dropped: 1: an update of the step is lost for good: an
                         overflow that replay cannot cure, or a norm above skip_above */
  int replay;         /* 1: the host must run the last step again on the same batches */
  int empty;          /* losses of a batch that are means of no elements: all labels are ignored */
  long long bad_loss; /* 0: nothing was lost. Without a scaler: 1 + step of the first minimized
                         value or gradient that is not finite; no update is applied after it. With
                         a scaler: -(1 + step) if the last minimized value is not finite */
  long long growth_interval; /* default 2000 */
  long long hysteresis;      /* the scale is lowered after this many overflows; default 1 */
  double growth_factor, backoff_factor; /* 2, 0.5 by default; the new scale is rounded once */
  float min_scale, max_scale;
  int found_inf;     /* 1: some optimizer of this step found a non-finite gradient */
  int dynamic;       /* 0: the scale is static, or there is no scaler */
  unsigned arrived;  /* CUDA blocks of the running kernel that have arrived at last_block() in
                        templates/cuda.cuh; 0 between kernels */
  int first, closes; /* first: 1: this body is the first of its step. closes: 1: it is the last.
                        ampc_set_group() writes both; only train blocks that accumulate read them */
  unsigned call;     /* number of the evaluation's batch or of the infer block's call, from 0. In
                        eval and infer blocks, `body` and `call` are the key of random numbers */
  ampc_outside outside;
} ampc_state;

typedef struct ampc_optimizer {
  long long taken; /* number of updates applied; schedules and bias correction use it */
  int found_inf;   /* 1: this step's update is dropped: its gradients are not finite, or their norm
                      is above skip_above */
  float grad_norm; /* L2 norm of the gradients, unscaled, before clipping */
  float factor;    /* inv_scale times the clip factor; gradients are multiplied by it */
  float lr;        /* scheduled learning rate of the last step, for the progress line */
  /* first: 1: this body is the first of its step. waits: 1: this body is not the last, so gradients
   * are only summed. Both are 0 in a block that does not accumulate */
  int first, waits;
  /* The fields below are used only if each optimizer has its own scale; otherwise they are 0. */
  float scale, inv_scale;
  long long growth, spared; /* as the fields of ampc_state, but for this scale */
  int judged, overflowed;   /* judged: 1: the optimizer has decided in this body. overflowed: 1: it
                               found an overflow */
} ampc_optimizer;

typedef struct ampc_metric { /* average = sum / count; a statistic uses only `sum` */
  double sum;                /* sum of value times samples, since the host last cleared it */
  double count;              /* samples */
  float last;                /* value of the last body */
  float counted; /* of a loss whose divisor depends on data: the sum over the step's bodies of what
                    it is computed from */
} ampc_metric;

#endif
