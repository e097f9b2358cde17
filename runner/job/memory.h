/* What a job needs on this machine, told before it runs. */
#pragma once
#include "ampc_rt.h"
#include "compiler/base/target.h"

/* Prints the total to stderr unless `quiet`, the whole report if it is asked for or there is a
 * limit. Refuses a job that needs more than --memory-limit or, on the CPU, than this machine has;
 * warns of one that needs more than is free now. `c` has been compiled; nothing has been allocated.
 */
ampc_status memory_admit(Compile *c, const char *device, bool quiet, bool verbose);
