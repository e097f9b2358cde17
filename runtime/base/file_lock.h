/* Lets only one run at a time write to a file. */
#pragma once
#include "ampc_plan.h"

/* Locks a file; closing *out releases it. Fails if another process of this machine holds the file.
 * *out is -1 if there is nothing to release, because this process already holds the file, its
 * folder does not exist, or the system has no such locks. */
ampc_status file_lock(const char *path, int *out);
