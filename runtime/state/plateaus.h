/* What a checkpoint has of settings that are lowered when a metric gets no better. */
#pragma once
#include "runtime/plan/number.h"
#include "runtime/runtime.h"
#include "safetensors.h"

typedef struct SavedPlateau {
  PlateauState state; /* but for its start */
  double value;       /* what the setting had come to */
} SavedPlateau;

/* Those whose metric has been evaluated. */
ampc_status plateaus_write(ampc_runtime *rt, TensorFile *f);
/* One a plateau of the program; what the file lacks stays as it is. False: *out_key has a value
 * that makes no sense, and `expected` says what would. *out_key is malloced, NULL where memory ran
 * out, and the caller's in any case; it may be one of before. */
bool plateaus_read(const TensorFile *f, const ampc_program *p, int64_t steps, SavedPlateau *out,
                   char **out_key, char expected[AMPC_RANGE_ROOM]);
/* After a reset, which has given settings their start. */
ampc_status plateaus_apply(ampc_runtime *rt, const SavedPlateau *from);
