/* A twin of a lost run: the same job with probes on all values. It repeats the lost step, and the
 * steps before it. */
#pragma once
#include "probe.h"
#include "runner/jit/jit.h"
#include "runtime/train/run.h"

typedef struct Again {
  Compile *c;
  Jit *jit;
  ampc_runtime *rt, *from; /* from: the lost run, which does not change; not owned */
  Run run;                 /* of the lost step's block, step by step */
  Watch watch;             /* of the last step that was repeated */
  const Lost *lost;
  const char *data_dir;
  ampc_state state;           /* before the lost step */
  ampc_optimizer *optimizers; /* state of each optimizer before the lost step */
  const char *start;          /* of again_begin: the checkpoint; NULL: the initial values */
  int64_t first;              /* after again_begin: the first step that can be repeated */
} Again;

/* Returns the data of the lost step's block. */
static inline ampc_batches *again_data(const Again *a)
{
  return a->run.batches ? a->run.batches[a->lost->at.block] : NULL;
}

/* Opens the twin of `from`, which owns and takes over `c`; NULL: the job does not compile.
 * `alike`: c has the precision of the run, so all of its state is copied. Otherwise only weights
 * and buffers are, and only again_lost may follow. Call again_close also after a failure. */
ampc_status again_open(Again *a, Compile *c, const char *device, const char *data_dir,
                       ampc_runtime *from, const Lost *lost, bool alike);
void again_close(Again *a);
/* Repeats the lost step with the weights of the run, up to the first body in which a value is not
 * finite. *out: that value; NULL: all are finite. `unscaled`: with a loss scale of 1. */
ampc_status again_lost(Again *a, bool unscaled, const Seen **out);
/* Goes back to a->start. The first step that can then be repeated is the next one, or the first of
 * the lost step's block. */
ampc_status again_begin(Again *a);
/* Repeats step `step`; the first call after again_begin has step a->first. */
ampc_status again_step(Again *a, int64_t step);
/* Whether the weights are those of the lost run, bit for bit. */
ampc_status again_same(const Again *a, bool *out);
/* Returns the sum of the losses of the last step; NaN if the block reports none. */
double again_loss(const Again *a);
