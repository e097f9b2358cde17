/* Lets only one run at a time write to a file. */
#pragma once
#include "ampc_plan.h"

/* Fails if another process of this machine holds the file. Closing *out releases it. -1: there is
 * nothing to release, because this process already holds the file, its folder does not exist, or
 * the system has no such locks. */
ampc_status file_lock(const char *path, int *out);
