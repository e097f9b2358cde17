/* Indices out of range: makes a message of what the device has noted about them (ampc_outside). */
#pragma once
#include "ampc_rt.h"

/* Checks values that a caller gives for a source: those of a limited source must be in its range.
 * `in` has the shape `dim`. */
ampc_status outside_argument(const ampc_program *p, const ampc_source *s, const void *in,
                             uint32_t rank, const int64_t *dim);

/* Returns AMPC_OK if no index was out of range. A message begins with `when`, as "step 3: ". */
ampc_status outside_check(const ampc_program *p, const ampc_outside *o, const char *when);

/* Reads and clears what the device has noted, and checks it. Waits for the device. */
ampc_status outside_take(ampc_runtime *rt);
