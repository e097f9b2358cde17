/* Files as a whole. */
#pragma once
#include "ampc_rt.h"

typedef struct FilePart {
  const void *bytes;
  int64_t size;
} FilePart;

/* Writes a new file beside `path`, syncs it and renames it: at any moment `path` is the old file or
 * the new one. After a failure it is the old one and nothing is left over. */
ampc_status file_replace(const char *path, const FilePart *parts, uint32_t n_parts);
/* Whether file_replace could begin; leaves nothing behind. */
ampc_status file_check_writable(const char *path);
/* Reads a regular file into memory that the caller frees. */
ampc_status file_read(const char *path, char **out, int64_t *out_size);
