/* Where built kernels, plans of libraries and what is known about both are kept between runs:
 * $XDG_CACHE_HOME/ampc or ~/.cache/ampc. It keeps within a bound: what was used longest ago goes
 * first.
 *
 * What is loaded from there runs with the user's rights. So the folder must belong to the user and
 * be writable by nobody else, and a file counts only when it is the user's too and ends in the
 * checksum of its name and of what stands before. Everything else is a miss. */
#pragma once
#include "ampc_rt.h"
#include <limits.h>

typedef struct Cache {
  char folder[PATH_MAX];
  bool temporary; /* a private folder elsewhere, because the real one cannot be used */
  unsigned tried; /* places for that, so far */
} Cache;
enum { CACHE_PATH = PATH_MAX + 80, CACHE_BYTES = 256 << 20 };

ampc_status cache_open(Cache *out);
/* Goes on in a private folder, the first time with a note that says why: where it was there is no
 * room. False with ampc_last_error: there is no other place. */
bool cache_elsewhere(Cache *cache, const char *why);
/* 32 hexadecimal digits of all that decides the bytes of a file: a text, and what it is made with.
 */
void cache_key(const char *text, size_t size, const char *identity, char key[33]);
/* `kind`: "so", "cubin", "txt", "cudnn" */
void cache_path(const Cache *cache, const char *key, const char *kind, char path[CACHE_PATH]);
/* Is a whole file there that may be loaded? It counts as used now, as does one that is read. */
bool cache_has(const char *path);
bool cache_read(const char *path, char **out, size_t *out_size); /* malloced; false: a miss */
ampc_status cache_write(const Cache *cache, const char *path, const char *bytes, size_t size);
/* A new empty file in the folder, to be written and then given to cache_keep. */
ampc_status cache_begin(const Cache *cache, char temporary[CACHE_PATH]);
/* Adds the checksum, moves the file to `path` in one step, and makes room: of the other files
 * those go that were used longest ago, until all together fit in the bound (CACHE_BYTES). */
ampc_status cache_keep(const char *temporary, const char *path);
/* A temporary folder vanishes; whoever kept files in it has removed them. */
void cache_close(const Cache *cache);
