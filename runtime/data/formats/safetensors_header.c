/* A header is untrusted until it is checked: shapes and offsets are compared with the size of the
 * file before they are used to read anything. */
#include "safetensors_header.h"
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"

#define NARROW_KIND(KIND, name, SPACE, copy, cpu, lt, dnn, bytes, ...)                             \
  {#KIND, {ELEMENT_##KIND, bytes, false}, AMPC_##KIND, false},
static const StoredType kinds[] = {
    {"F32", {ELEMENT_FLOAT, 4, false}, AMPC_F32, false},
    AMPC_NARROW_FLOATS(NARROW_KIND){"F64", {ELEMENT_FLOAT, 8, false}, AMPC_F32, true},
    {"I32", {ELEMENT_SIGNED, 4, false}, AMPC_I32, false},
    {"I64", {ELEMENT_SIGNED, 8, false}, AMPC_I64, false},
    {"U8", {ELEMENT_UNSIGNED, 1, false}, AMPC_U8, false},
    {"BOOL", {ELEMENT_BOOL, 1, false}, AMPC_BOOL, false},
    {"I8", {ELEMENT_SIGNED, 1, false}, AMPC_DTYPE_COUNT, false},
    {"I16", {ELEMENT_SIGNED, 2, false}, AMPC_DTYPE_COUNT, false},
    {"U16", {ELEMENT_UNSIGNED, 2, false}, AMPC_DTYPE_COUNT, false},
    {"U32", {ELEMENT_UNSIGNED, 4, false}, AMPC_DTYPE_COUNT, false},
    {"U64", {ELEMENT_UNSIGNED, 8, false}, AMPC_DTYPE_COUNT, false},
    {"F8_E4M3", {ELEMENT_NONE, 1, false}, AMPC_DTYPE_COUNT, false},
    {"F8_E5M2", {ELEMENT_NONE, 1, false}, AMPC_DTYPE_COUNT, false},
    {"C64", {ELEMENT_NONE, 8, false}, AMPC_DTYPE_COUNT, false},
    {NULL, {ELEMENT_NONE, 1, false}, AMPC_DTYPE_COUNT, false},
};

const StoredType *stored_type_named(const char *name)
{
  const StoredType *stored = kinds;
  while (stored->name && (!name || strcmp(stored->name, name) != 0)) stored++;
  return stored;
}

const StoredType *stored_type_of(ampc_dtype dtype, bool wide)
{
  const StoredType *stored = kinds;
  while (stored->dtype != dtype || (dtype == AMPC_F32 && stored->wide != wide)) stored++;
  return stored;
}

uint64_t tensor_header_length(const uint8_t bytes[HEADER_LENGTH])
{
  uint64_t length = 0;
  for (int i = HEADER_LENGTH - 1; i >= 0; i--) length = length << 8 | bytes[i];
  return length;
}

typedef struct Place {
  const char *name;
  int64_t begin, end;
  int64_t needs; /* bytes by type and shape; INT64_MAX: more than fit 64 bits */
  bool known;    /* the type is known, so the tensor must have these bytes */
} Place;

typedef struct Header {
  const char *path;
  int64_t behind;
  bool exact;
  Place *places; /* sorted by `begin` after their check */
  size_t n;
} Header;

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

static bool read_place(const char *name, const json_t *entry, Place *out)
{
  int64_t size[TENSOR_AXES], offsets[2];
  uint32_t rank, n;
  const char *type = json_string_value(json_object_get(entry, "dtype"));
  if (!type || json_object_size(entry) != 3 ||
      !read_numbers(json_object_get(entry, "shape"), size, TENSOR_AXES, &rank) ||
      !read_numbers(json_object_get(entry, "data_offsets"), offsets, 2, &n) || n != 2)
    return false;
  const StoredType *stored = stored_type_named(type);
  *out = (Place){name, offsets[0], offsets[1], stored->element.size, stored->name};
  for (uint32_t i = 0; i < rank; i++) /* a size 0 makes any product 0 */
    if (__builtin_mul_overflow(out->needs, size[i], &out->needs)) out->needs = INT64_MAX;
  return true;
}

static ampc_status check_place(const Header *h, const Place *t)
{
  const char *path = h->path;
  if (t->begin > t->end)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is damaged: its tensor %.63s begins at byte %lld and ends at %lld", path,
                     t->name, (long long)t->begin, (long long)t->end);
  if (t->end > h->behind)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is truncated or damaged: its tensor %.63s ends at byte %lld; %lld bytes follow its "
        "header",
        path, t->name, (long long)t->end, (long long)h->behind);
  if (t->needs < INT64_MAX && (!t->known || t->end - t->begin == t->needs)) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE,
                   "%s is damaged: its tensor %.63s has %lld bytes, its shape needs %s%lld", path,
                   t->name, (long long)(t->end - t->begin), t->needs == INT64_MAX ? "over " : "",
                   (long long)t->needs);
}

static ampc_status read_places(Header *h, json_t *root)
{
  const char *name;
  json_t *entry;
  ampc_status status = AMPC_OK;
  json_object_foreach(root, name, entry)
  {
    bool meta = strcmp(name, "__metadata__") == 0;
    bool good = meta ? json_is_object(entry) || json_is_null(entry)
                     : read_place(name, entry, &h->places[h->n]);
    size_t axes = json_array_size(json_object_get(entry, "shape"));
    if (!good && axes > TENSOR_AXES)
      return ampc_fail(AMPC_BAD_FILE, "%s: its tensor %.63s has %zu axes; at most %d are read",
                       h->path, name, axes, TENSOR_AXES);
    if (!good)
      return ampc_fail(AMPC_BAD_FILE,
                       "%s is damaged: its header is not the JSON of safetensors at %.63s", h->path,
                       name);
    if (!meta) status = check_place(h, &h->places[h->n++]);
    if (status) return status;
  }
  return AMPC_OK;
}

static int by_begin(const void *a, const void *b)
{
  const Place *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

/* Checks that the tensors follow each other. */
static ampc_status check_order(Header *h)
{
  int64_t at = 0;
  qsort(h->places, h->n, sizeof *h->places, by_begin);
  for (size_t i = 0; i < h->n; at = h->places[i++].end)
    if (h->places[i].begin < at)
      return ampc_fail(AMPC_BAD_FILE,
                       "%s is damaged: its tensors %.63s and %.63s overlap at byte %lld", h->path,
                       h->places[i - 1].name, h->places[i].name, (long long)h->places[i].begin);
    else if (h->places[i].begin > at)
      return ampc_fail(AMPC_BAD_FILE,
                       "%s is damaged: bytes %lld to %lld after its header belong to no tensor",
                       h->path, (long long)at, (long long)h->places[i].begin);
  if (!h->exact || at == h->behind) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE,
                   "%s is damaged: bytes %lld to %lld after its header belong to no tensor",
                   h->path, (long long)at, (long long)h->behind);
}

ampc_status tensor_header_read(const char *path, const char *text, int64_t size, int64_t behind,
                               bool exact, json_t **out)
{
  json_error_t error;
  char shown[150]; /* the error quotes the header */
  *out = json_loadb(text, (size_t)size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  if (!json_is_object(*out))
    return ampc_fail(AMPC_BAD_FILE, "%s is damaged: its header is not the JSON of safetensors: %s",
                     path,
                     *out ? "it is not an object" : ampc_show(shown, sizeof shown, error.text, ""));
  Header h = {.path = path, .behind = behind, .exact = exact};
  h.places = calloc(json_object_size(*out) + 1, sizeof *h.places);
  ampc_status status =
      h.places ? read_places(&h, *out) : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  if (!status) status = check_order(&h);
  free(h.places);
  return status;
}

TensorEntry tensor_entry(const json_t *entry)
{
  const json_t *shape = json_object_get(entry, "shape"), *axis;
  const json_t *offsets = json_object_get(entry, "data_offsets");
  const char *type = json_string_value(json_object_get(entry, "dtype"));
  const StoredType *stored = stored_type_named(type);
  size_t i;
  TensorEntry out = {.dtype = stored->dtype,
                     .wide = stored->wide,
                     .unit = stored->element.size,
                     .elements = 1,
                     .begin = json_integer_value(json_array_get(offsets, 0))};
  json_array_foreach(shape, i, axis)
  {
    int64_t size = out.dim[out.rank++] = json_integer_value(axis);
    if (__builtin_mul_overflow(out.elements, size, &out.elements)) out.elements = INT64_MAX;
  }
  if (stored->name) return out;
  out.unread = strchr(type, '.');
  out.elements = json_integer_value(json_array_get(offsets, 1)) - out.begin;
  return out;
}
