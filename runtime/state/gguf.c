/* Reads the header of a GGUF file, version 2 or 3. All numbers are untrusted: lengths are compared
 * with the bytes that are left, and tensors with the file, before anything is read. */
#include "gguf.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  WINDOW = 1 << 16,        /* bytes of the file that are held */
  MOST_TEXT = 1 << 24,     /* bytes of one text */
  MOST_ELEMENTS = 1 << 24, /* of all lists: a tokenizer has up to a few million */
  MOST_NAME = 256,
};

typedef enum Kind { /* of a value in the metadata */
                    KIND_u8,
                    KIND_i8,
                    KIND_u16,
                    KIND_i16,
                    KIND_u32,
                    KIND_i32,
                    KIND_f32,
                    KIND_bool,
                    KIND_text,
                    KIND_list,
                    KIND_u64,
                    KIND_i64,
                    KIND_f64,
                    KINDS
} Kind;
static const uint8_t kind_bytes[KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8}; /* at least */

typedef struct Reading {
  TensorFile *f;
  const char *path;
  int64_t at, size;           /* bytes read, and bytes of the file */
  int64_t held_from, held_to; /* the bytes in `held` */
  uint8_t *held;
  int64_t elements; /* of lists, so far */
  ampc_status status;
} Reading;

static void spoiled(Reading *r, const char *what)
{
  if (r->status) return;
  r->status = ampc_fail(AMPC_BAD_FILE, "%s is damaged or truncated: %s at byte %lld", r->path, what,
                        (long long)r->at);
}

/* ---- bytes ---- */

/* Copies n bytes, or zeros after a failure. */
static void take(Reading *r, void *to, int64_t n)
{
  memset(to, 0, (size_t)n);
  if (!r->status && n > r->size - r->at) spoiled(r, "its header ends too soon");
  if (!r->status && r->at + n > MOST_HEADER) spoiled(r, "its header is longer than 100 MB");
  char *out = to;
  while (n > 0 && !r->status) {
    if (r->at < r->held_from || r->at >= r->held_to) {
      int64_t left = r->size - r->at, room = left < WINDOW ? left : WINDOW;
      r->status = file_read_at(r->path, r->f->fd, r->at, room, r->held);
      r->held_from = r->at;
      r->held_to = r->at + room;
      continue;
    }
    int64_t there = r->held_to - r->at, some = n < there ? n : there;
    memcpy(out, r->held + (r->at - r->held_from), (size_t)some);
    out += some;
    r->at += some;
    n -= some;
  }
}

static uint64_t take_bits(Reading *r, int bytes)
{
  uint8_t raw[8] = {0};
  uint64_t v = 0;
  take(r, raw, bytes);
  for (int i = 7; i >= 0; i--) v = v << 8 | raw[i];
  return v;
}

/* Returns a NUL-terminated text that the caller frees; NULL after a failure. */
static char *take_text(Reading *r, int64_t most, int64_t *out_n)
{
  uint64_t n = take_bits(r, 8);
  if (!r->status && n > (uint64_t)most) spoiled(r, "a text is too long");
  if (!r->status && n > (uint64_t)(r->size - r->at)) spoiled(r, "a text is longer than the file");
  char *text = r->status ? NULL : malloc((size_t)n + 1);
  if (!text) {
    if (!r->status) r->status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", r->path);
    return NULL;
  }
  take(r, text, (int64_t)n);
  text[n] = 0;
  *out_n = (int64_t)n;
  return text;
}

/* ---- metadata ---- */

static json_t *take_value(Reading *r, uint32_t kind, bool in_list);

static json_t *take_list(Reading *r)
{
  uint32_t kind = (uint32_t)take_bits(r, 4);
  uint64_t n = take_bits(r, 8);
  json_t *list = json_array();
  if (kind >= KINDS || kind == KIND_list) spoiled(r, "a list of an unknown type");
  if (!r->status && n > (uint64_t)(r->size - r->at) / kind_bytes[kind])
    spoiled(r, "a list is longer than the file");
  if (!r->status && (r->elements += (int64_t)n) > MOST_ELEMENTS)
    spoiled(r, "its lists are too long");
  for (uint64_t i = 0; i < n && !r->status; i++)
    if (json_array_append_new(list, take_value(r, kind, true)) && !r->status)
      r->status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", r->path);
  return list;
}

/* Text that is not UTF-8 becomes null. */
static json_t *take_json_text(Reading *r)
{
  int64_t n = 0;
  char *text = take_text(r, MOST_TEXT, &n);
  json_t *value = text ? json_stringn(text, (size_t)n) : NULL;
  free(text);
  return value ? value : json_null();
}

/* The shortest decimal number that is this float, as the program that wrote it had it: 1e-05. */
static double shortest(float v)
{
  char text[40];
  for (int digits = 1; digits < 10; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, (double)v);
    if (strtof(text, NULL) == v) break;
  }
  return isfinite(v) ? strtod(text, NULL) : NAN;
}

static json_t *take_value(Reading *r, uint32_t kind, bool in_list)
{
  float small;
  double wide;
  uint64_t bits;
  switch (kind) {
  case KIND_u8:
    return json_integer((json_int_t)take_bits(r, 1));
  case KIND_i8:
    return json_integer((int8_t)take_bits(r, 1));
  case KIND_u16:
    return json_integer((json_int_t)take_bits(r, 2));
  case KIND_i16:
    return json_integer((int16_t)take_bits(r, 2));
  case KIND_u32:
    return json_integer((json_int_t)take_bits(r, 4));
  case KIND_i32:
    return json_integer((int32_t)take_bits(r, 4));
  case KIND_u64:
  case KIND_i64:
    return json_integer((json_int_t)take_bits(r, 8));
  case KIND_bool:
    return json_boolean(take_bits(r, 1) != 0);
  case KIND_text:
    return take_json_text(r);
  case KIND_f32:
    bits = take_bits(r, 4);
    memcpy(&small, &bits, sizeof small);
    wide = shortest(small);
    break;
  case KIND_f64:
    bits = take_bits(r, 8);
    memcpy(&wide, &bits, sizeof wide);
    break;
  case KIND_list:
    if (!in_list) return take_list(r);
    /* fall through */
  default:
    spoiled(r, "a value of an unknown type");
    return json_null();
  }
  return isfinite(wide) ? json_real(wide) : json_null();
}

static void take_metadata(Reading *r, uint64_t n)
{
  json_t *all = json_object();
  if (json_object_set_new(r->f->header, "__metadata__", all))
    r->status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", r->path);
  for (uint64_t i = 0; i < n && !r->status; i++) {
    int64_t length;
    char *key = take_text(r, MOST_NAME, &length);
    json_t *value = r->status ? NULL : take_value(r, (uint32_t)take_bits(r, 4), false);
    if (!r->status && json_object_get(all, key)) spoiled(r, "a key is there twice");
    if (!r->status && json_object_set(all, key, value)) spoiled(r, "a key is not UTF-8");
    json_decref(value);
    free(key);
  }
}

/* ---- tensors ---- */

static void bad_info(Reading *r, const char *name, const char *why)
{
  if (!r->status) r->status = ampc_fail(AMPC_BAD_FILE, "%s: tensor %.200s %s", r->path, name, why);
}

/* Adds a view and returns its offset. */
static int64_t add_blocks(Reading *r, const GgufType *type, uint32_t number, int64_t elements,
                          int64_t at)
{
  TensorFile *f = r->f;
  const TensorView *last = f->n_views ? &f->views[f->n_views - 1] : NULL;
  TensorView v = {.begin = last ? last->begin + last->bytes : f->size,
                  .bytes = 4 * elements,
                  .at = at,
                  .unit = 4,
                  .span = elements / type->elements * type->bytes,
                  .gguf = number};
  TensorView *more =
      v.begin < INT64_MAX - v.bytes ? realloc(f->views, (f->n_views + 1) * sizeof *more) : NULL;
  if (!more) {
    r->status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", r->path);
    return 0;
  }
  f->views = more;
  f->views[f->n_views++] = v;
  return v.begin;
}

typedef struct Info { /* of a tensor */
  char *name;
  uint32_t rank, number; /* number: of its type */
  int64_t dim[TENSOR_AXES], elements;
  uint64_t offset;
} Info;

static void take_info(Reading *r, Info *t)
{
  int64_t length = 0;
  t->name = take_text(r, MOST_NAME, &length);
  t->rank = (uint32_t)take_bits(r, 4);
  t->elements = 1;
  if (t->rank > TENSOR_AXES) spoiled(r, "a tensor has over 8 axes");
  for (uint32_t i = 0; i < t->rank && !r->status; i++) {
    uint64_t n = take_bits(r, 8);
    if (n > INT64_MAX / 4 || __builtin_mul_overflow(t->elements, (int64_t)n, &t->elements) ||
        t->elements > INT64_MAX / 8)
      spoiled(r, "a tensor is larger than any file");
    t->dim[t->rank - 1 - i] = (int64_t)n;
  }
  t->number = (uint32_t)take_bits(r, 4);
  t->offset = take_bits(r, 8);
}

/* Adds the entry of a tensor. Blocks that are not read get an entry without elements, so that
 * `unused` may name the tensor, and other uses are refused with the name of its type. */
static void add_info(Reading *r, const Info *t, int64_t begin)
{
  const GgufType *type = gguf_type(t->number);
  char shown[40];
  json_t *name = json_string(t->name), *shape = json_array(), *entry;
  if (!name || !*t->name || strcmp(t->name, "__metadata__") == 0 ||
      json_object_get(r->f->header, t->name))
    bad_info(r, name ? t->name : "?", "is there twice, or has a name that no tensor can have");
  json_decref(name);
  int64_t unit = type->name ? type->elements : 1, row = t->rank ? t->dim[t->rank - 1] : 1;
  int64_t bytes = type->name ? t->elements / unit * type->bytes : 0, room = r->size - begin;
  if (row % unit) bad_info(r, t->name, "has rows that are no whole blocks");
  if (room < 0 || t->offset > (uint64_t)room || bytes > room - (int64_t)t->offset)
    bad_info(r, t->name, "ends behind the end of the file");
  bool read = type->stored || type->widen;
  int64_t at = begin + (int64_t)t->offset, size = type->stored ? bytes : 4 * t->elements;
  if (!r->status && type->widen) at = add_blocks(r, type, t->number, t->elements, at);
  snprintf(shown, sizeof shown, "GGUF.%s", type->name ? type->name : "unknown");
  for (uint32_t i = 0; i < t->rank && read; i++)
    json_array_append_new(shape, json_integer(t->dim[i]));
  entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                    type->stored ? type->stored
                    : read       ? "F32"
                                 : shown,
                    "shape", shape, "data_offsets", (json_int_t)(read ? at : 0),
                    (json_int_t)(read ? at + size : 0));
  if (r->status)
    json_decref(entry);
  else if (json_object_set_new(r->f->header, t->name, entry))
    r->status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", r->path);
}

/* The tensors follow the header, from a multiple of the alignment on. */
static void take_tensors(Reading *r, uint64_t n)
{
  const json_t *meta = json_object_get(r->f->header, "__metadata__");
  const json_t *given = json_object_get(meta, "general.alignment");
  json_int_t align = given ? json_integer_value(given) : 32;
  if (align < 1 || align > 1 << 20 || (align & (align - 1)))
    spoiled(r, "its alignment is no power of two");
  if (!r->status && n > (uint64_t)(r->size - r->at) / 24) spoiled(r, "it has too many tensors");
  Info *all = r->status ? NULL : calloc((size_t)n + 1, sizeof *all);
  if (!all && !r->status) r->status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", r->path);
  for (uint64_t i = 0; i < n && !r->status; i++) take_info(r, &all[i]);
  int64_t begin = r->status ? 0 : (r->at + align - 1) / align * align;
  for (uint64_t i = 0; i < n && all; i++) {
    if (!r->status) add_info(r, &all[i], begin);
    free(all[i].name);
  }
  free(all);
}

ampc_status gguf_read(const char *path, int64_t file_size, TensorFile *f)
{
  Reading r = {.f = f, .path = path, .size = file_size, .held = malloc(WINDOW)};
  f->size = file_size;
  f->header = json_object();
  if (!r.held || !f->header) r.status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  take_bits(&r, 4); /* the magic number */
  uint32_t version = (uint32_t)take_bits(&r, 4);
  if (!r.status && version != 2 && version != 3)
    r.status = ampc_fail(AMPC_BAD_FILE,
                         "%s has version %u of GGUF, or big-endian numbers; versions 2 and 3 with "
                         "little-endian ones are read",
                         path, version);
  uint64_t tensors = take_bits(&r, 8), pairs = take_bits(&r, 8);
  if (!r.status) take_metadata(&r, pairs);
  if (!r.status) take_tensors(&r, tensors);
  free(r.held);
  return r.status;
}

ampc_status gguf_view_load(const TensorFile *f, const TensorView *v, int64_t begin, void *to,
                           int64_t bytes)
{
  const GgufType *type = gguf_type(v->gguf);
  int64_t at = begin / 4, end = at + bytes / 4, first = at / type->elements;
  int64_t blocks = (end + type->elements - 1) / type->elements - first;
  uint8_t *raw = malloc((size_t)(blocks * type->bytes));
  if (!raw) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", f->path);
  ampc_status status =
      file_read_at(f->path, f->fd, v->at + first * type->bytes, blocks * type->bytes, raw);
  for (int64_t i = 0; i < blocks && !status; i++) {
    float wide[256];
    int64_t from = (first + i) * type->elements, skip = at > from ? at - from : 0;
    int64_t n = (end - from < type->elements ? end - from : type->elements) - skip;
    type->widen(raw + i * type->bytes, wide);
    memcpy((float *)to + (from + skip - at), wide + skip, (size_t)n * sizeof *wide);
  }
  free(raw);
  return status;
}
