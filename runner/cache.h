/* Where built kernels are kept between runs: $XDG_CACHE_HOME/ampc or ~/.cache/ampc.
 *
 * What is loaded from there runs with the user's rights. So the folder must belong to the user and
 * be writable by nobody else, and a file counts only when it is the user's too and ends in the
 * checksum of its name and of what stands before. Everything else is a miss. */
#pragma once
#include "ampc_rt.h"
#include <limits.h>

typedef struct Cache {
  char folder[PATH_MAX];
  bool temporary; /* a private folder in /tmp, because the real one cannot be used */
} Cache;
enum { CACHE_PATH = PATH_MAX + 80 };

ampc_status cache_open(Cache *out);
/* `kind`: "so", "cubin" */
void cache_path(const Cache *cache, const char *key, const char *kind, char path[CACHE_PATH]);
/* 32 hexadecimal digits of a text and of what else decides the bytes that are made of it. */
void cache_key(const char *text, const char *identity, char key[33]);
bool cache_has(const char *path); /* is a whole file there that may be loaded? */
bool cache_read(const char *path, char **out, size_t *out_size); /* malloced; false: a miss */
ampc_status cache_write(const Cache *cache, const char *path, const char *bytes, size_t size);
/* A new empty file in the folder, to be written and then given to cache_keep. */
ampc_status cache_begin(const Cache *cache, char temporary[CACHE_PATH]);
/* Adds the checksum and moves the file to `path` in one step. */
ampc_status cache_keep(const char *temporary, const char *path);
/* A temporary folder and the file in it vanish; what has been loaded stays. */
void cache_close(const Cache *cache, const char *path);
