/* The common code of formats such as idx, npy and raw: contiguous elements of one type in a file.
 * A format says where they are; opening, checking and copying are here. */
#pragma once
#include "bytes.h"
#include "element.h"
#include "runtime/plan/formats.h"

struct ampc_array {
  ElementType type;
  ampc_header is;
  int64_t step; /* elements from one sample to the next; 0: as many as a sample has */
  Bytes bytes;  /* bytes of all samples; only if `contents` was requested */
};

/* Implement the functions of the same names in ampc_format. */
ampc_status array_probe(const ampc_format *f, const char *path, const char *args, ampc_header *out);
ampc_status array_open(const ampc_opening *o, ampc_reader **out, int64_t *out_samples);
void array_use(ampc_reader *r, int64_t first, int64_t count);
ampc_status array_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch, void *to);
void array_close(ampc_reader *r);

/* Defines a format's table row. The format's file defines `locate`, which finds the elements. */
#define ARRAY_FORMAT(KIND, format_name, ...)                                                       \
  const ampc_format ampc_format_##format_name = {.kind = AMPC_SOURCE_##KIND,                       \
                                                 .name = #format_name,                             \
                                                 .probe = array_probe,                             \
                                                 .locate = locate,                                 \
                                                 .open = array_open,                               \
                                                 .use = array_use,                                 \
                                                 .copy = array_copy,                               \
                                                 .close = array_close,                             \
                                                 __VA_ARGS__}

/* Sets *out to the language's type for t; fails if the language has none. */
ampc_status array_type(const char *path, ElementType t, ampc_dtype *out);

/* Returns the bytes of all samples in the file. */
int64_t array_bytes(const ampc_array *a);
