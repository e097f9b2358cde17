/* Raw binary: samples one after the other, without a header, little-endian. Type and shape are
 * arguments: `dtype`, and a line `shape` for each axis. A file named *.gz is unpacked. */
#include <stdio.h>
#include <string.h>
#include "args.h"
#include "array.h"
#include "header.h"
#include "common/number.h"

#define NARROW_TYPE(KIND, name, SPACE, copy, cpu, lt, dnn, bytes, ...)                             \
  {#name, {ELEMENT_##KIND, bytes, false}},
static const struct {
  const char *name;
  ElementType type;
} types[] = {{"u8", {ELEMENT_UNSIGNED, 1, false}}, {"bool", {ELEMENT_BOOL, 1, false}},
             {"i32", {ELEMENT_SIGNED, 4, false}},  {"i64", {ELEMENT_SIGNED, 8, false}},
             {"f32", {ELEMENT_FLOAT, 4, false}},   AMPC_NARROW_FLOATS(NARROW_TYPE)};

static ampc_status read_arguments(const char *args, ampc_array *out)
{
  char name[8] = "", size[32];
  args_text(args, "dtype", name, sizeof name);
  out->type.kind = ELEMENT_NONE;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) out->type = types[i].type;
  if (!element_dtype(out->type, &out->is.dtype))
    return ampc_fail(AMPC_BAD_USAGE, "raw needs a dtype, got \"%s\"", name);
  out->is.rank = 0;
  int n;
  for (const char *at = args_next(args, "shape", NULL, &n); at;
       at = args_next(args, "shape", at, &n)) {
    int64_t *dim = &out->is.dim[out->is.rank];
    if (out->is.rank++ == AMPC_MAX_RANK - 1)
      return ampc_fail(AMPC_BAD_USAGE, "`shape` of raw has more than %d axes", AMPC_MAX_RANK - 1);
    snprintf(size, sizeof size, "%.*s", n, at);
    if (!ampc_read_count(size, 1, AMPC_MOST_SAMPLES, dim))
      return ampc_fail(AMPC_BAD_USAGE,
                       "`shape` of raw has the size %s; sizes are whole numbers from 1", size);
  }
  return AMPC_OK;
}

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  const DataFile file = {path, "raw binary", true};
  int64_t size, elements;
  ampc_status status = read_arguments(args, out);
  if (status || !path) return status;
  status = bytes_count(&file, &size);
  if (status) return status;
  out->is.samples = 1;
  status = header_elements(&out->is, path, size / out->type.size, &elements);
  if (status)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has %lld bytes, less than one sample of `shape` and `dtype`", path,
                     (long long)size);
  int64_t sample = elements * out->type.size;
  out->is.samples = size / sample;
  if (size % sample)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has %lld bytes, which are not whole samples of %lld: %lld are left", path,
                     (long long)size, (long long)sample, (long long)(size % sample));
  return contents ? bytes_open(&file, 0, size, true, &out->bytes) : AMPC_OK;
}

ARRAY_FORMAT(RAW, raw,
             .types = {AMPC_U8, AMPC_BOOL, AMPC_I32, AMPC_I64,
                       AMPC_NARROW_FLOATS(AMPC_CONSTANT) AMPC_F32},
             .n_types = 7, .known = true);
