/* Windows of consecutive rows as samples: series of csv, npy and raw, and tokens. Sample i has
 * `rows` rows, from row i * stride on. */
#pragma once
#include "runtime/plan/formats.h"

typedef struct Window {
  int64_t rows, stride; /* rows 0: a sample is one row */
} Window;

/* Reads the arguments `window` and `stride`. */
ampc_status window_read(const char *args, Window *out);
/* Returns how many windows n rows have. */
int64_t window_count(Window w, int64_t n);
/* Changes a header of rows, of which there are `out->samples`, to one of windows. A NULL path: the
 * number of rows is not known. */
ampc_status window_apply(Window w, const char *path, ampc_header *out);
