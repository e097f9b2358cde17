/* What every format with a file has to check of a header. */
#pragma once
#include "runtime/plan/formats.h"

/* Elements in all samples; an error when a size is 0 or the file, which has room for `most`
 * elements, cannot hold as many. */
ampc_status header_elements(const ampc_header *h, const char *path, int64_t most, int64_t *out);

/* Refuses a file that does not hold what the program was compiled for. Every `open` calls this
 * before it reads samples: the loader's memory is laid out by `desc`. */
ampc_status header_check(const ampc_header *h, const char *path, const ampc_source *desc);
