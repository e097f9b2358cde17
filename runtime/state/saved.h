/* What a run consists of besides its program: THE list. A checkpoint stores it (checkpoint.c), and
 * the prompt carries it from the runtime of one program to that of the next (carry.c).
 *
 * Gradients, norms, metrics and 16-bit copies are left out, because a step computes them. Settings
 * are left out, because the next run has its own; one that a plateau has lowered is stored. */
#pragma once
#include "plateaus.h"
#include "runtime/runtime.h"
#include "safetensors.h"

/* ---- tensors ---- */

typedef struct Entry {
  const ampc_param *param;
  ampc_space space;
  const ampc_optimizer_desc *of; /* the optimizer that keeps it; NULL: a parameter or a buffer */
  char *name;    /* in a checkpoint: "fc1.weight", "optimizer.opt.moment1/fc1.weight" */
  int64_t begin; /* offset in bytes in the data of a checkpoint */
} Entry;

typedef struct Entries {
  Entry *at;
  uint32_t n;
} Entries;

TensorType entry_type(const ampc_program *p, const Entry *e);
/* Lists parameters and buffers, then what optimizers keep of them; their order decides the bytes of
 * a checkpoint. Call entries_free also after a failure. */
typedef enum EntriesOf {
  ENTRIES_run,        /* all */
  ENTRIES_checkpoint, /* without what each run loads again: ampc_param.given */
  ENTRIES_weights,    /* without what optimizers keep; tied ones under all their names */
  ENTRIES_adapter     /* the same, under PEFT's names */
} EntriesOf;
ampc_status entries_of(const ampc_program *p, EntriesOf what, Entries *out);
void entries_free(Entries *e);

/* ---- numbers ---- */

typedef struct Saved {
  /* Of `state`: seed, body, step, epoch, skipped, replayed, empty; scale, inv_scale, growth and
   * spared, which count only if the scaler is dynamic in both runs. */
  ampc_state state;
  bool dynamic;
  ampc_optimizer *optimizer; /* one per optimizer: taken; scale, growth and spared count only if
                                each optimizer has its own scale */
  bool *has;                 /* one per optimizer: the run had it */
  Patience patience;
  SavedPlateau *plateau; /* one per plateau */
} Saved;

/* Makes room for the numbers of a run of `p`. Call saved_free also after a failure. */
ampc_status saved_open(const ampc_program *p, Saved *out);
void saved_free(Saved *s);
/* Reads the numbers of a run. Waits for the device. */
ampc_status saved_read(ampc_runtime *rt, Saved *out);
/* Writes the numbers, and resets what they leave out: norms, metrics, flags of a failed step. An
 * optimizer that the run did not have begins anew. */
ampc_status saved_apply(ampc_runtime *rt, const Saved *s);

/* ---- carry.c: from the runtime of one program to that of another ---- */

/* Copies what `to` has in common with `from`: tensors with the same name, type and shape,
 * those of optimizers only if the optimizer has the same kind; counters, the scaler, plateaus of
 * settings with the same name. The rest of `to` should have initial values. *out_kept: number of
 * parameters and buffers that were copied. Waits for the device. */
ampc_status state_carry(ampc_runtime *from, ampc_runtime *to, uint32_t *out_kept);
/* Copies averages of weights, where an optimizer of `from` keeps them, to the weights of `to`,
 * which has no optimizers: infer blocks read averages. */
ampc_status state_carry_averages(ampc_runtime *from, ampc_runtime *to);
