/* Indices that name nothing: what the device has noted of them (ampc_outside), as a message. */
#pragma once
#include "ampc_rt.h"

/* "element [2, 1]", the place of element `at` of a tensor of that shape; "" of a single number. */
void outside_place(uint32_t rank, const int64_t *dim, int64_t at, char *text, size_t room);

/* OK where there is none. `when` stands in front: "step 3: ". */
ampc_status outside_check(const ampc_program *p, const ampc_outside *o, const char *when);

/* Reads what is noted, which waits for the device, and forgets it. */
ampc_status outside_take(ampc_runtime *rt);
