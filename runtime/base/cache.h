/* The folder that keeps built kernels, plans of libraries and facts about both between runs:
 * $XDG_CACHE_HOME/ampc or ~/.cache/ampc. Its size is bounded: the least recently used files are
 * removed first.
 *
 * What is loaded from the folder runs with the user's rights. So the folder must belong to the user
 * and nobody else may write to it. A file counts only if it also belongs to the user and ends with
 * the checksum of its name and contents. Any other file is a cache miss. */
#pragma once
#include "ampc_rt.h"
#include <limits.h>

typedef struct Cache {
  char folder[PATH_MAX];
  bool temporary; /* a private folder elsewhere, because the usual one cannot be used */
  unsigned tried; /* places tried for that folder so far */
} Cache;
enum { CACHE_PATH = PATH_MAX + 80, CACHE_BYTES = 256 << 20 };

ampc_status cache_open(Cache *out);
/* Switches to a private folder, because the disk of the current one is full. The first call prints
 * a note that says why. Returns false if no other folder can be used; see ampc_last_error. */
bool cache_elsewhere(Cache *cache, const char *why);
/* Writes 32 hexadecimal digits to `key`: a hash of `text` and of `identity`, which names the tools
 * that build the file. Text and identity together determine the bytes of the file. */
void cache_key(const char *text, size_t size, const char *identity, char key[33]);
/* Writes the path of the file with this key. `kind` is "so", "cubin", "ptx", "txt",
 * "cudnn" or "ids". */
void cache_path(const Cache *cache, const char *key, const char *kind, char path[CACHE_PATH]);
/* Returns whether `path` is an intact file that may be loaded, and marks it as used now. */
bool cache_has(const char *path);
/* Reads a file and marks it as used now. The caller frees *out. False: a cache miss. */
bool cache_read(const char *path, char **out, size_t *out_size);
ampc_status cache_write(const Cache *cache, const char *path, const char *bytes, size_t size);
/* Creates an empty file in the folder. The caller writes it and then passes it to cache_keep. */
ampc_status cache_begin(const Cache *cache, char temporary[CACHE_PATH]);
/* Adds the checksum and renames the file to `path`. Then removes the least recently used other
 * files until all files together fit into CACHE_BYTES. */
ampc_status cache_keep(const char *temporary, const char *path);
/* Removes the folder if it is temporary. The caller must have removed its files. */
void cache_close(const Cache *cache);
