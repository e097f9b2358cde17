/* Keeps the cache folder within its size limit. */
#pragma once
#include <stdint.h>

/* Removes files from the folder of `kept` until at most CACHE_BYTES are left. First it removes
 * files that killed processes left unfinished at least an hour ago, then entries in the order of
 * their last use. Ids of texts do not count; they are removed if nobody has used them for 30 days.
 * `kept` itself stays. If a process has loaded a removed library, the library stays
 * usable there until it is unloaded. */
void cache_prune(const char *kept);
/* Like cache_prune, with the limit `bytes`; for tests. */
void cache_prune_to(const char *kept, int64_t bytes);
