/* Note [checksum]
 * The metadata has the key CHECKSUM_KEY: the XXH3 of the whole file, computed with zeros in place
 * of the checksum's own digits. So a changed bit is detected anywhere, in header and tensors. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "safetensors.h"
#include "gguf.h"
#include "torch_file.h"
#include "common/shown.h"
#include "runtime/plan/types.h"

#define CHECKSUM_KEY "ampc.checksum"
static const char zeros[] = "0000000000000000";
enum { DIGITS = sizeof zeros - 1, PIECE = 1 << 20 };

/* ---- writing ---- */

/* Returns the shape as JSON. The caller owns the reference. */
static json_t *shape_of(const TensorType *t)
{
  json_t *shape = json_array();
  for (uint32_t i = 0; i < t->rank; i++) json_array_append_new(shape, json_integer(t->dim[i]));
  return shape;
}

/* Appends a tensor of `bytes` bytes. Takes ownership of `shape`. */
static bool add_entry(TensorFile *f, const char *name, const char *type, json_t *shape,
                      int64_t bytes)
{
  if (!f->header) f->header = json_object();
  int64_t begin = f->size;
  f->size += bytes;
  json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape, "data_offsets",
                            (json_int_t)begin, (json_int_t)f->size);
  return entry && json_object_set_new(f->header, name, entry) == 0;
}

bool tensor_file_add(TensorFile *f, const char *name, const TensorType *t, int64_t *out_begin)
{
  const StoredType *stored = stored_type_of(t->dtype, t->real64);
  int64_t bytes = stored->element.size;
  for (uint32_t i = 0; i < t->rank; i++) bytes *= t->dim[i];
  *out_begin = f->size;
  return add_entry(f, name, stored->name, shape_of(t), bytes);
}

bool tensor_file_set(TensorFile *f, const char *key, const char *value)
{
  if (!f->header) f->header = json_object();
  json_t *meta = json_object_get(f->header, "__metadata__");
  if (!meta) {
    meta = json_object();
    if (json_object_set_new(f->header, "__metadata__", meta) != 0) return false;
  }
  return json_object_set_new(meta, key, json_string(value)) == 0;
}

static void length_bytes(int64_t n, uint8_t to[8])
{
  for (int i = 0; i < 8; i++) to[i] = (uint8_t)((uint64_t)n >> (8 * i));
}

/* Finds the digits of the checksum in the text of a header; NULL: it has no checksum. */
static char *find_digits(char *text, int64_t size)
{
  static const char before[] = "\"" CHECKSUM_KEY "\":\"";
  char *at = memmem(text, (size_t)size, before, sizeof before - 1);
  if (!at || at + sizeof before - 1 + DIGITS > text + size) return NULL;
  return at + sizeof before - 1;
}

/* Returns the text of the header. Sorts keys and pads with spaces to a multiple of 8 bytes, so that
 * the same contents give the same bytes. */
static char *header_text(const TensorFile *f, int64_t *out_size)
{
  char *compact = json_dumps(f->header, JSON_COMPACT | JSON_SORT_KEYS);
  if (!compact) return NULL;
  size_t length = strlen(compact), padded = (length + 7) / 8 * 8;
  char *text = malloc(padded + 1);
  if (text) snprintf(text, padded + 1, "%-*s", (int)padded, compact);
  free(compact);
  *out_size = (int64_t)padded;
  return text;
}

/* Writes the header with zeros as the checksum. tensor_write_end replaces them. */
static ampc_status write_header(TensorWriter *w, char *text, int64_t size)
{
  uint8_t length[8];
  length_bytes(size, length);
  w->digits = 8 + (find_digits(text, size) - text);
  XXH3_64bits_reset(w->sum);
  ampc_status status = tensor_write(w, length, sizeof length);
  if (!status) status = tensor_write(w, text, size);
  return status;
}

ampc_status tensor_write_begin(TensorWriter *w, TensorFile *f, const char *path,
                               const FileKind *kind)
{
  int64_t size = 0;
  char *text = tensor_file_set(f, CHECKSUM_KEY, zeros) ? header_text(f, &size) : NULL;
  *w = (TensorWriter){.sum = XXH3_createState(), .file.fd = -1};
  ampc_status status = text && w->sum ? file_begin(&w->file, path, kind)
                                      : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  if (!status) status = write_header(w, text, size);
  free(text);
  if (status) tensor_write_abandon(w);
  return status;
}

ampc_status tensor_write(TensorWriter *w, const void *bytes, int64_t size)
{
  XXH3_64bits_update(w->sum, bytes, (size_t)size);
  return file_add(&w->file, bytes, size);
}

ampc_status tensor_write_end(TensorWriter *w)
{
  char digits[DIGITS + 1];
  snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH3_64bits_digest(w->sum));
  ampc_status status = file_put(&w->file, w->digits, digits, DIGITS);
  if (!status) status = file_finish(&w->file, true);
  tensor_write_abandon(w);
  return status;
}

void tensor_write_abandon(TensorWriter *w)
{
  file_abandon(&w->file);
  XXH3_freeState(w->sum);
  w->sum = NULL;
}

/* ---- reading ---- */

/* Computes the checksum of the header text and of the tensors in the file. */
static ampc_status sum_up(const TensorFile *f, const char *path, const char *text,
                          int64_t text_size, XXH3_state_t *sum)
{
  char *piece = malloc(PIECE);
  if (!piece) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  uint8_t length[8];
  length_bytes(text_size, length);
  XXH3_64bits_reset(sum);
  XXH3_64bits_update(sum, length, sizeof length);
  XXH3_64bits_update(sum, text, (size_t)text_size);
  ampc_status status = AMPC_OK;
  for (int64_t at = 0; at < f->size && !status; at += PIECE) {
    int64_t n = f->size - at < PIECE ? f->size - at : PIECE;
    status = file_read_at(path, f->fd, f->begin + at, n, piece);
    if (!status) XXH3_64bits_update(sum, piece, (size_t)n);
  }
  free(piece);
  return status;
}

/* Verifies the checksum, computed with zeros as its digits. Files of other programs lack it. */
static ampc_status verify(const char *path, char *text, int64_t text_size, const TensorFile *f)
{
  char *digits = find_digits(text, text_size), found[DIGITS + 1] = "", wanted[DIGITS + 1];
  if (!digits && f->foreign) return AMPC_OK;
  if (!digits) return ampc_fail(AMPC_BAD_FILE, "%s is no checkpoint of ampc: no checksum", path);
  memcpy(found, digits, DIGITS);
  memcpy(digits, zeros, DIGITS);
  XXH3_state_t *sum = XXH3_createState();
  ampc_status status = sum ? sum_up(f, path, text, text_size, sum)
                           : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  if (!status)
    snprintf(wanted, sizeof wanted, "%016llx", (unsigned long long)XXH3_64bits_digest(sum));
  XXH3_freeState(sum);
  if (status || strcmp(found, wanted) == 0) return status;
  return ampc_fail(AMPC_BAD_FILE,
                   "%s is damaged: its stored checksum is %s, but its bytes have checksum %s", path,
                   found, wanted);
}

/* Reads the header's length. False: this is not a safetensors file. */
static bool read_length(const TensorFile *f, int64_t file_size, int64_t *out)
{
  uint8_t head[9];
  if (file_size < (int64_t)sizeof head || pread(f->fd, head, sizeof head, 0) != sizeof head ||
      head[8] != '{')
    return false;
  uint64_t length = tensor_header_length(head);
  *out = length < INT64_MAX ? (int64_t)length : INT64_MAX;
  return true;
}

static ampc_status check_file(const char *path, int64_t file_size, TensorFile *f)
{
  int64_t length;
  uint8_t head[9] = {0}; /* a header of 0x280 bytes begins as a pickle does, but byte 8 is `{` */
  bool read = f->foreign && pread(f->fd, head, sizeof head, 0) >= 4;
  bool archive = memcmp(head, "PK\3\4", 4) == 0;
  bool old = head[0] == 0x80 && head[1] == 2 && head[8] != '{';
  if (read && (archive || old)) return torch_file_read(path, file_size, old, f);
  if (read && memcmp(head, "GGUF", 4) == 0) return gguf_read(path, file_size, f);
  if (!read_length(f, file_size, &length))
    return ampc_fail(AMPC_BAD_FILE, "%s is not a %s: no safetensors file begins like that%s", path,
                     f->foreign ? "safetensors file" : "checkpoint",
                     f->foreign ? ", and no file of torch.save, and no GGUF file" : "");
  if (length > file_size - 8 || length > MOST_HEADER)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is damaged: its header is longer than the file or than 100 MB", path);
  f->begin = 8 + length;
  f->size = file_size - f->begin;
  char *text = malloc((size_t)length + 1);
  if (!text) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  ampc_status status = file_read_at(path, f->fd, 8, length, text);
  if (!status) status = tensor_header_read(path, text, length, f->size, true, &f->header);
  if (!status) status = verify(path, text, length, f);
  free(text);
  return status;
}

static FileRole role_of(const TensorFile *f)
{
  return f->foreign ? FILE_WEIGHTS : FILE_CHECKPOINT;
}

/* Opens a regular file. */
static ampc_status open_file(const char *path, TensorFile *out, int64_t *out_size)
{
  struct stat info;
  out->fd = file_open_input(role_of(out), path, 0);
  if (out->fd < 0 || fstat(out->fd, &info) != 0)
    return ampc_fail(AMPC_BAD_FILE, "cannot open %s: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode))
    return ampc_fail(AMPC_BAD_FILE, "cannot read %s: not a regular file", path);
  *out_size = info.st_size;
  return AMPC_OK;
}

static ampc_status read_file(const char *path, bool foreign, TensorFile *out)
{
  *out = (TensorFile){.fd = -1, .path = path, .foreign = foreign};
  int64_t size = 0;
  ampc_status status = open_file(path, out, &size);
  if (!status) status = check_file(path, size, out);
  if (status) tensor_file_free(out);
  return status;
}

ampc_status tensor_file_read(const char *path, TensorFile *out)
{
  return read_file(path, false, out);
}

ampc_status tensor_file_read_any(const char *path, TensorFile *out)
{
  return read_file(path, true, out);
}

bool tensor_file_add_like(TensorFile *f, const char *name, const json_t *entry, ampc_dtype type)
{
  TensorEntry e = tensor_entry(entry);
  bool same = type == AMPC_DTYPE_COUNT;
  const char *own = json_string_value(json_object_get(entry, "dtype"));
  const StoredType *stored = same ? stored_type_named(own) : stored_type_of(type, false);
  return add_entry(f, name, same ? own : stored->name,
                   json_deep_copy(json_object_get(entry, "shape")),
                   e.elements * stored->element.size);
}

const char *tensor_file_get(const TensorFile *f, const char *key)
{
  return json_string_value(json_object_get(json_object_get(f->header, "__metadata__"), key));
}

void tensor_file_free(TensorFile *f)
{
  json_decref(f->header);
  for (uint32_t i = 0; i < f->n_views; i++) free(f->views[i].held);
  free(f->views);
  if (f->fd >= 0) file_close_input(role_of(f), f->path, f->fd);
  *f = (TensorFile){.fd = -1};
}

void tensor_type_text(const TensorType *t, char *to, size_t size)
{
  json_t *entry = json_pack("{s:s, s:o}", "dtype", stored_type_of(t->dtype, t->real64)->name,
                            "shape", shape_of(t));
  tensor_entry_text(entry, to, size);
  json_decref(entry);
}

void tensor_entry_text(const json_t *entry, char *to, size_t size)
{
  const json_t *shape = json_object_get(entry, "shape");
  char *dims = json_dumps(shape, 0);
  snprintf(to, size, "%s%s", json_string_value(json_object_get(entry, "dtype")), dims ? dims : "");
  free(dims);
}

/* Finds a tensor. The header was checked, so the range is inside the data. */
int64_t tensor_file_find(const TensorFile *f, const char *name, const TensorType *t)
{
  const json_t *entry = json_object_get(f->header, name);
  if (!entry || strcmp(name, "__metadata__") == 0) return -1;
  json_t *shape = shape_of(t);
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  bool same = strcmp(dtype, stored_type_of(t->dtype, t->real64)->name) == 0 &&
              json_equal(shape, json_object_get(entry, "shape"));
  json_decref(shape);
  return same ? json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0)) : -1;
}

ampc_status tensor_file_load(const TensorFile *f, int64_t begin, void *to, int64_t bytes)
{
  if (f->n_views && begin >= f->views[0].begin) return torch_view_load(f, begin, to, bytes);
  return file_read_at(f->path, f->fd, f->begin + begin, bytes, to);
}

ampc_status tensor_place_load(void *place, int64_t at, int64_t bytes, void *piece)
{
  const TensorPlace *p = place;
  return tensor_file_load(p->file, p->begin + at, piece, bytes);
}
