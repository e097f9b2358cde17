/* The header of NumPy files, single ones (npy) or members of an archive (npz). */
#pragma once
#include "array.h"

enum { NPY_HEAD = 1 << 16 /* bytes; no header that is accepted is longer */ };

/* Sets type and header of `out`, and *out_at, where the elements begin, from the first `got` bytes
 * of a file of up to `most` bytes. */
ampc_status npy_read_header(const char *path, const uint8_t *head, int64_t got, int64_t most,
                            ampc_array *out, int64_t *out_at);
