#pragma once
#include "ampc_plan.h"

/* Whether the start values of a parameter can only be made all at once: each depends on the others.
 */
bool init_is_whole(const ampc_param *p);
/* `n` of the start values, from element `first` on; all of them if init_is_whole. False: out of
 * memory. */
bool init_values(const ampc_param *p, uint64_t seed, int64_t first, int64_t n, double *out);
