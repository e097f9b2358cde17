/* Checks, before a job runs, that its memory fits this machine, and reports how much it needs. */
#pragma once
#include "ampc_rt.h"
#include "compiler/base/target.h"

/* Prints the total to stderr unless `quiet`. Prints the whole report if `verbose` or if the user
 * gave a limit. Refuses a job that needs more than --memory-limit or, on the CPU, more than this
 * machine has. Warns if a job needs more than is free now. Call it after compiling `c` and before
 * allocating. */
ampc_status memory_admit(Compile *c, const char *device, bool quiet, bool verbose);
