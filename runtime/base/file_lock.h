/* One run at a time writes to a place. */
#pragma once
#include "ampc_plan.h"

/* Refuses where another process of this machine holds the place. *out is closed to give it back;
 * -1: there is nothing to give back, because this process holds it already, there is no such
 * folder, or the system has no such locks. */
ampc_status file_lock(const char *path, int *out);
