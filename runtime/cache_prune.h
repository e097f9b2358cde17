/* Keeps the cache folder within its bound. */
#pragma once
#include <stdint.h>

/* Removes files of the folder of `kept` until at most CACHE_BYTES are left: first what a killed
 * process left unfinished an hour ago or more, then entries in the order of their last use. `kept`
 * itself stays. What is loaded stays usable: its pages live until it is unloaded. */
void cache_prune(const char *kept);
/* The same with another bound, for tests. */
void cache_prune_to(const char *kept, int64_t bytes);
