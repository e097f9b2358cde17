/* What idx, npy, npz, safetensors, raw, tokens and cifar10 have in common: elements of one type
 * that lie in a file one behind the other. A format says where; opening, checking and copying are
 * here. */
#pragma once
#include "bytes.h"
#include "element.h"
#include "runtime/plan/formats.h"

struct ampc_array {
  ElementType type;
  ampc_header is;
  int64_t step; /* elements from one sample to the next; 0: those of a sample */
  Bytes bytes;  /* of all samples; only where `contents` was asked for */
};

/* ampc_format.locate: reads the header of a file, and with `contents` opens the range of its
 * elements; all of it is checked against the size of the file. Where the arguments alone are known,
 * a `path` that is NULL asks for what they say. */
typedef ampc_status ArrayLocate(const char *path, const char *args, bool contents, ampc_array *out);

/* As in ampc_format. */
ampc_status array_probe(const ampc_format *f, const char *path, const char *args, ampc_header *out);
ampc_status array_open(const ampc_opening *o, ampc_reader **out, int64_t *out_samples);
void array_use(ampc_reader *r, int64_t first, int64_t count);
ampc_status array_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch, void *to);
void array_close(ampc_reader *r);

/* Fills in the type of the language; refuses a type that has none. */
ampc_status array_type(const char *path, ElementType t, ampc_dtype *out);

/* Of all samples, in the file. */
int64_t array_bytes(const ampc_array *a);
