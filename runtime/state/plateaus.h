/* Checkpoints of plateaus: settings that are lowered when a metric stops improving. */
#pragma once
#include "metadata.h"
#include "runtime/runtime.h"

typedef struct SavedPlateau {
  PlateauState state; /* without `start` */
  double value;       /* the setting's value when the checkpoint was saved */
} SavedPlateau;

/* Writes the plateaus whose metric has been evaluated. */
ampc_status plateaus_write(ampc_runtime *rt, TensorFile *f);
/* Reads one SavedPlateau per plateau of the program. If the file lacks one, it stays unchanged. */
void plateaus_read(Metadata *m, const ampc_program *p, int64_t steps, SavedPlateau *out);
/* Restores plateaus and their settings. Call it after a reset, which sets initial values. */
ampc_status plateaus_apply(ampc_runtime *rt, const SavedPlateau *from);
