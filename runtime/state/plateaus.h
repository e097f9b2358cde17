/* What a checkpoint has of settings that are lowered when a metric gets no better. */
#pragma once
#include "metadata.h"
#include "runtime/runtime.h"

typedef struct SavedPlateau {
  PlateauState state; /* but for its start */
  double value;       /* what the setting had come to */
} SavedPlateau;

/* Those whose metric has been evaluated. */
ampc_status plateaus_write(ampc_runtime *rt, TensorFile *f);
/* One a plateau of the program; what the file lacks stays as it is. */
void plateaus_read(Metadata *m, const ampc_program *p, int64_t steps, SavedPlateau *out);
/* After a reset, which has given settings their start. */
ampc_status plateaus_apply(ampc_runtime *rt, const SavedPlateau *from);
