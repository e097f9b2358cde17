/* Checks of headers that every format with a file needs. */
#pragma once
#include "runtime/plan/formats.h"

/* Computes the number of elements in all samples. Fails if a size is 0, or if there are more than
 * `most`, the number of elements that fit into the file. */
ampc_status header_elements(const ampc_header *h, const char *path, int64_t most, int64_t *out);

/* Fails if the file's type or sizes are not those that the program was compiled for. Every `open`
 * calls this before it reads samples, because the loader's buffers are laid out by `desc`. */
ampc_status header_check(const ampc_header *h, const char *path, const ampc_source *desc);
