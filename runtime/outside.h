/* Indices out of range: makes a message of what the device has noted about them (ampc_outside). */
#pragma once
#include "ampc_rt.h"

/* "element [2, 1]", the place of element `at` of a tensor of that shape; "" for a scalar. */
void outside_place(uint32_t rank, const int64_t *dim, int64_t at, char *text, size_t room);

/* Returns AMPC_OK if there is no such index. The message begins with `when`, such as "step 3: ". */
ampc_status outside_check(const ampc_program *p, const ampc_outside *o, const char *when);

/* Reads what the device has noted, which waits for the device, and clears it. */
ampc_status outside_take(ampc_runtime *rt);
