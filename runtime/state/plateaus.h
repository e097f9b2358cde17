/* The state of plateaus, one per plateau of the program: settings that are lowered when a metric
 * stops improving. */
#pragma once
#include "metadata.h"
#include "runtime/runtime.h"

typedef struct SavedPlateau {
  PlateauState state; /* without `start` */
  double value;       /* the setting's value when the checkpoint was saved */
} SavedPlateau;

ampc_status plateaus_read(ampc_runtime *rt, SavedPlateau *out);
/* Writes the plateaus whose metric has been evaluated. False: out of memory. */
bool plateaus_write(const ampc_program *p, const SavedPlateau *from, TensorFile *f);
/* Reads them from a checkpoint. If the file lacks one, it stays unchanged. */
void plateaus_load(Metadata *m, const ampc_program *p, int64_t steps, SavedPlateau *out);
/* Restores plateaus and their settings. Call it after a reset, which sets initial values. */
ampc_status plateaus_apply(ampc_runtime *rt, const SavedPlateau *from);
