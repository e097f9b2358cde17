/* Keeps the cache folder within its size limit. */
#pragma once
#include <stdint.h>

/* Removes files from the folder of `kept` until at most CACHE_BYTES are left. Files that killed
 * processes left unfinished at least an hour ago are removed first, then entries in the order of
 * their last use. `kept` itself stays. A removed library that a process has loaded stays usable
 * there until it is unloaded. */
void cache_prune(const char *kept);
/* The same with another limit, for tests. */
void cache_prune_to(const char *kept, int64_t bytes);
