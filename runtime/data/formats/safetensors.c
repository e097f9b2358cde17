/* Safetensors files: the length of the header (8 bytes, little-endian), the header in JSON, the
 * tensors. {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} says where
 * each tensor is. `key` names the tensor; its first axis counts the samples. Plain or gzipped. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "array.h"
#include "header.h"
#include "stream.h"

enum { LENGTH = 8, MOST_HEADER = 100 << 20 /* bytes; a limit of the format */ };

typedef struct Tensor {
  ElementType type;
  const char *name, *dtype; /* as in the file */
  uint32_t axes;
  int64_t size[AMPC_MAX_RANK];
  int64_t begin, end;
} Tensor;

typedef struct Header {
  const char *path;
  json_t *root;    /* owns all texts */
  int64_t size;    /* bytes of the JSON */
  int64_t most;    /* most bytes that can follow it; exact if the file is not gzipped */
  Tensor *tensors; /* sorted by `begin` */
  size_t n;
} Header;

#define NARROW_TYPE(KIND, name, SPACE, copy, cpu, lt, dnn, bytes, ...)                             \
  {#KIND, {ELEMENT_##KIND, bytes, false}},
static const struct {
  const char *name;
  ElementType type;
} types[] = {{"BOOL", {ELEMENT_BOOL, 1, false}},  {"U8", {ELEMENT_UNSIGNED, 1, false}},
             {"I8", {ELEMENT_SIGNED, 1, false}},  {"U16", {ELEMENT_UNSIGNED, 2, false}},
             {"I16", {ELEMENT_SIGNED, 2, false}}, {"U32", {ELEMENT_UNSIGNED, 4, false}},
             {"I32", {ELEMENT_SIGNED, 4, false}}, {"U64", {ELEMENT_UNSIGNED, 8, false}},
             {"I64", {ELEMENT_SIGNED, 8, false}}, {"F32", {ELEMENT_FLOAT, 4, false}},
             {"F64", {ELEMENT_FLOAT, 8, false}},  AMPC_NARROW_FLOATS(NARROW_TYPE)};

/* ---- the JSON ---- */

static ampc_status read_length(Stream *s, Header *h)
{
  uint8_t length[LENGTH];
  int64_t got;
  ampc_status status = stream_read(s, length, LENGTH, &got);
  if (status) return status;
  uint64_t size = 0;
  for (int i = LENGTH - 1; i >= 0; i--) size = size << 8 | length[i];
  if (got < LENGTH || size < 2 || size > MOST_HEADER || (int64_t)size > s->most)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is no safetensors file, or truncated: its header would have %llu bytes",
                     s->path, got < LENGTH ? 0ULL : (unsigned long long)size);
  h->size = (int64_t)size;
  h->most = gzdirect(s->file) ? s->size - LENGTH - h->size : s->most;
  return AMPC_OK;
}

static ampc_status read_json(Stream *s, Header *h)
{
  int64_t got;
  json_error_t error;
  ampc_status status = read_length(s, h);
  if (status) return status;
  char *text = malloc((size_t)h->size);
  if (!text) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
  status = stream_read(s, text, h->size, &got);
  if (!status && got == h->size)
    h->root = json_loadb(text, (size_t)h->size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  free(text);
  if (status || h->root) return status;
  if (got < h->size)
    return ampc_fail(AMPC_BAD_FILE, "%s is truncated: its header ends after %lld of %lld bytes",
                     s->path, (long long)got, (long long)h->size);
  return ampc_fail(AMPC_BAD_FILE, "%s is damaged: its header is not the JSON of safetensors: %s",
                   s->path, error.text);
}

/* Reads [1, 2, 3]: up to `room` numbers, none below 0. */
static bool read_numbers(const json_t *list, int64_t *to, size_t room, uint32_t *out_n)
{
  if (!json_is_array(list) || json_array_size(list) > room) return false;
  *out_n = (uint32_t)json_array_size(list);
  for (uint32_t i = 0; i < *out_n; i++) {
    const json_t *number = json_array_get(list, i);
    to[i] = json_integer_value(number);
    if (!json_is_integer(number) || to[i] < 0) return false;
  }
  return true;
}

static bool read_tensor(const char *name, const json_t *entry, Tensor *t)
{
  int64_t offsets[2];
  uint32_t n;
  *t = (Tensor){.name = name, .dtype = json_string_value(json_object_get(entry, "dtype"))};
  if (!t->dtype || json_object_size(entry) != 3 ||
      !read_numbers(json_object_get(entry, "shape"), t->size, AMPC_MAX_RANK, &t->axes) ||
      !read_numbers(json_object_get(entry, "data_offsets"), offsets, 2, &n) || n != 2)
    return false;
  t->begin = offsets[0];
  t->end = offsets[1];
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, t->dtype) == 0) t->type = types[i].type;
  return true;
}

static ampc_status read_tensors(Header *h)
{
  const char *name;
  json_t *entry;
  h->tensors = calloc(json_object_size(h->root) + 1, sizeof *h->tensors);
  if (!h->tensors) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", h->path);
  bool good = json_is_object(h->root);
  json_object_foreach(h->root, name, entry)
  {
    if (strcmp(name, "__metadata__") == 0)
      good = good && (json_is_object(entry) || json_is_null(entry));
    else
      good = good && read_tensor(name, entry, &h->tensors[h->n++]);
  }
  return good ? AMPC_OK
              : ampc_fail(AMPC_BAD_FILE, "%s is damaged: its header is not the JSON of safetensors",
                          h->path);
}

/* ---- tensors ---- */

static int by_begin(const void *a, const void *b)
{
  const Tensor *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

/* Checks that a tensor has as many bytes as its shape and type need. */
static ampc_status check_range(const Header *h, const Tensor *t)
{
  const char *path = h->path;
  int64_t n = t->type.size;
  if (t->begin > t->end)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is damaged: its tensor %.63s begins at byte %lld and ends at %lld", path,
                     t->name, (long long)t->begin, (long long)t->end);
  if (t->end > h->most)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is truncated or damaged: its tensor %.63s ends at byte %lld; %lld bytes follow its "
        "header",
        path, t->name, (long long)t->end, (long long)h->most);
  for (uint32_t i = 0; i < t->axes; i++)
    if (__builtin_mul_overflow(n, t->size[i], &n)) n = INT64_MAX;
  if (t->type.kind == ELEMENT_NONE || t->end - t->begin == n) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_FILE, "%s is damaged: its tensor %.63s has %lld bytes, its shape needs %s%lld", path,
      t->name, (long long)(t->end - t->begin), n == INT64_MAX ? "over " : "", (long long)n);
}

/* Checks that ranges do not overlap: no program that writes safetensors makes such a file. */
static ampc_status check_ranges(Header *h)
{
  Tensor *all = h->tensors;
  for (size_t i = 0; i < h->n; i++) {
    ampc_status status = check_range(h, &all[i]);
    if (status) return status;
  }
  if (h->n) qsort(all, h->n, sizeof *all, by_begin);
  for (size_t i = 1; i < h->n; i++)
    if (all[i].begin < all[i - 1].end)
      return ampc_fail(AMPC_BAD_FILE,
                       "%s is damaged: its tensors %.63s and %.63s overlap at byte %lld", h->path,
                       all[i - 1].name, all[i].name, (long long)all[i].begin);
  return AMPC_OK;
}

static ampc_status not_there(const Header *h, const char *key)
{
  char names[200] = "";
  for (size_t i = 0; i < h->n && strlen(names) + 3 < sizeof names; i++)
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.63s", i ? ", " : ": ",
             h->tensors[i].name);
  return ampc_fail(AMPC_BAD_FILE, "%s has no tensor %s among its %zu%s", h->path, key, h->n, names);
}

static ampc_status take_wanted(const Header *h, const char *key, ampc_array *out, int64_t *out_at)
{
  const Tensor *found = h->tensors, *end = found + h->n;
  int64_t elements;
  while (found < end && strcmp(found->name, key) != 0) found++;
  if (found == end) return not_there(h, key);
  if (found->type.kind == ELEMENT_NONE)
    return ampc_fail(AMPC_BAD_FILE, "%s has %s of type %s, which the language lacks", h->path, key,
                     found->dtype);
  if (!found->axes)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is a single number in %s: data has an axis that counts samples", key,
                     h->path);
  out->type = found->type;
  out->is = (ampc_header){.rank = found->axes - 1, .samples = found->size[0]};
  memcpy(out->is.dim, found->size + 1, (found->axes - 1) * sizeof *found->size);
  *out_at = LENGTH + h->size + found->begin;
  ampc_status status = array_type(h->path, out->type, &out->is.dtype);
  int64_t most = (found->end - found->begin) / out->type.size;
  return status ? status : header_elements(&out->is, h->path, most, &elements);
}

/* Finds the tensor `key`. Checks of all tensors that their sizes fit their shapes, and that no
 * tensor overlaps another or exceeds the file. */
static ampc_status find(const DataFile *file, const char *key, ampc_array *out, int64_t *out_at)
{
  Stream s;
  Header h = {.path = file->path};
  ampc_status status = stream_open(file, &s);
  if (status) return status;
  status = read_json(&s, &h);
  if (!status) status = read_tensors(&h);
  if (!status) status = check_ranges(&h);
  if (!status) status = take_wanted(&h, key, out, out_at);
  stream_close(&s);
  json_decref(h.root);
  free(h.tensors);
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
