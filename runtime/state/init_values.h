#pragma once
#include "ampc_plan.h"

/* Whether initial values must be computed all at once, because each depends on the others. */
bool init_is_whole(const ampc_param *p);
/* Computes `n` initial values from element `first` on, or all of them if init_is_whole. False: out
 * of memory. */
bool init_values(const ampc_param *p, uint64_t seed, int64_t first, int64_t n, double *out);
