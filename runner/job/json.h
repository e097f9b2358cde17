/* Writes and reads the JSON that verbs report. */
#pragma once
#include <jansson.h>
#include "ampc_rt.h"
#include "common/file.h"

/* Writes the value to the file; `path` NULL: to stdout. `flags`: those of json_dumps; the order of
 * keys is kept. Takes over the reference. `value` NULL counts as out of memory. */
ampc_status json_save(json_t *value, const char *path, const FileKind *kind, size_t flags);
/* Reads a file. *out is NULL after a failure; the message names the file. */
ampc_status json_read(FileRole role, const char *path, json_t **out);
