#pragma once
#include "ampc_plan.h"

/* The start values of a parameter; out has room for all its elements. */
void init_values(const ampc_param *p, uint64_t seed, double *out);
