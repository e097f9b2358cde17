/* Safetensors files. `key` names the tensor; its first axis counts the samples. Plain or
 * gzipped. */
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "array.h"
#include "header.h"
#include "safetensors_header.h"
#include "stream.h"

static ampc_status read_length(Stream *s, int64_t *out)
{
  uint8_t length[HEADER_LENGTH];
  int64_t got;
  ampc_status status = stream_read(s, length, HEADER_LENGTH, &got);
  if (status) return status;
  uint64_t size = got < HEADER_LENGTH ? 0 : tensor_header_length(length);
  *out = (int64_t)size;
  if (size >= 2 && size <= MOST_HEADER && (int64_t)size <= s->most) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE,
                   "%s is no safetensors file, or truncated: its header would have %llu bytes",
                   s->path, (unsigned long long)size);
}

/* Reads the header, of *out_size bytes. */
static ampc_status read_tensors(Stream *s, json_t **out, int64_t *out_size)
{
  int64_t got, size;
  ampc_status status = read_length(s, &size);
  if (status) return status;
  char *text = malloc((size_t)size);
  if (!text) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
  status = stream_read(s, text, size, &got);
  bool exact = gzdirect(s->file);
  if (!status && got < size)
    status = ampc_fail(AMPC_BAD_FILE, "%s is truncated: its header ends after %lld of %lld bytes",
                       s->path, (long long)got, (long long)size);
  if (!status)
    status = tensor_header_read(s->path, text, size,
                                exact ? s->size - HEADER_LENGTH - size : s->most, exact, out);
  free(text);
  *out_size = size;
  return status;
}

static ampc_status not_there(const char *path, json_t *header, const char *key)
{
  char names[200] = "";
  size_t n = 0;
  const char *name;
  json_t *entry;
  json_object_foreach(header, name, entry)
  {
    if (strcmp(name, "__metadata__") == 0) continue;
    if (strlen(names) + 3 < sizeof names)
      snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.63s", n ? ", " : ": ",
               name);
    n++;
  }
  return ampc_fail(AMPC_BAD_FILE, "%s has no tensor %s among its %zu%s", path, key, n, names);
}

static ampc_status take_wanted(const char *path, json_t *header, const char *key, ampc_array *out,
                               int64_t *out_begin)
{
  const json_t *found = json_object_get(header, key);
  if (!found || strcmp(key, "__metadata__") == 0) return not_there(path, header, key);
  const char *type = json_string_value(json_object_get(found, "dtype"));
  out->type = stored_type_named(type)->element;
  if (out->type.kind == ELEMENT_NONE)
    return ampc_fail(AMPC_BAD_FILE, "%s has %s of type %s, which the language lacks", path, key,
                     type);
  TensorEntry e = tensor_entry(found);
  if (!e.rank)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is a single number in %s: data has an axis that counts samples", key,
                     path);
  if (e.rank > AMPC_MAX_RANK)
    return ampc_fail(AMPC_BAD_FILE, "%s has %u axes in %s, at most %d are read", key, e.rank, path,
                     AMPC_MAX_RANK);
  out->is = (ampc_header){.rank = e.rank - 1, .samples = e.dim[0]};
  memcpy(out->is.dim, e.dim + 1, (e.rank - 1) * sizeof *e.dim);
  *out_begin = e.begin;
  ampc_status status = array_type(path, out->type, &out->is.dtype);
  return status ? status : header_elements(&out->is, path, e.elements, &e.elements);
}

static ampc_status find(const DataFile *file, const char *key, ampc_array *out, int64_t *out_at)
{
  Stream s;
  json_t *header = NULL;
  int64_t size = 0, begin = 0;
  ampc_status status = stream_open(file, &s);
  if (status) return status;
  status = read_tensors(&s, &header, &size);
  if (!status) status = take_wanted(file->path, header, key, out, &begin);
  *out_at = HEADER_LENGTH + size + begin;
  stream_close(&s);
  json_decref(header);
  return status;
}

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  const DataFile file = {path, "a safetensors file", false};
  char key[512];
  int64_t at = 0;
  if (!args_text(args, "key", key, sizeof key))
    return ampc_fail(AMPC_BAD_USAGE, "%s: `key` is missing, or longer than 511 bytes", path);
  ampc_status status = find(&file, key, out, &at);
  return status || !contents ? status : bytes_open(&file, at, array_bytes(out), false, &out->bytes);
}

ARRAY_FORMAT(SAFETENSORS, safetensors,
             .types = {AMPC_U8, AMPC_BOOL, AMPC_I32, AMPC_I64,
                       AMPC_NARROW_FLOATS(AMPC_CONSTANT) AMPC_F32},
             .n_types = 7);
