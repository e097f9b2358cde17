/* Tensors of ONNX files: their elements may be in any of several fields, or in a file beside. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "read.h"
#include "runtime/base/convert.h"
#include "common/shown.h"
#include "runtime/plan/types.h"

/* The type of jobs with the same elements. *wide: it is f32, but the elements are doubles. */
ampc_dtype dtype_of(int32_t type, bool *wide)
{
  *wide = type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
  switch (type) {
  case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
  case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
    return AMPC_F32;
  case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
    return AMPC_F16;
  case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
    return AMPC_BF16;
  case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
    return AMPC_I32;
  case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
    return AMPC_I64;
  case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
    return AMPC_U8;
  case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
    return AMPC_BOOL;
  default:
    return AMPC_DTYPE_COUNT;
  }
}

int32_t type_of_dtype(ampc_dtype type)
{
  static const int32_t types[] = {
      ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,    ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16,
      ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16, ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
      ONNX__TENSOR_PROTO__DATA_TYPE__INT64,    ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
      ONNX__TENSOR_PROTO__DATA_TYPE__BOOL};
  bool wide;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (dtype_of(types[i], &wide) == type) return types[i];
  return 0;
}

ampc_dtype tensor_type(const OnnxTensor *t, bool *wide)
{
  return dtype_of(t->data_type, wide);
}

bool onnx_is_float(int32_t type)
{
  bool wide;
  return ampc_is_float(dtype_of(type, &wide));
}

const char *type_word(int32_t type)
{
  bool wide;
  ampc_dtype d = dtype_of(type, &wide);
  return d == AMPC_DTYPE_COUNT ? NULL : ampc_type_of(d)->name;
}

int64_t tensor_elements(const OnnxTensor *t)
{
  int64_t n = 1;
  for (size_t i = 0; i < t->n_dims; i++)
    if (t->dims[i] < 0 || __builtin_mul_overflow(n, t->dims[i], &n)) return -1;
  return n;
}

int64_t tensor_int(const OnnxTensor *t, int64_t i)
{
  int64_t v;
  if (t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__INT64) return (int64_t)tensor_real(t, i);
  memcpy(&v, t->raw_data.data + i * (int64_t)sizeof v, sizeof v);
  return v;
}

double tensor_real(const OnnxTensor *t, int64_t i)
{
  bool wide;
  ampc_dtype type = tensor_type(t, &wide);
  return number_load(type, wide, t->raw_data.data, i);
}

static ampc_status bad_tensor(const Reader *r, const OnnxTensor *t, const char *why)
{
  char name[200];
  return ampc_fail(AMPC_BAD_FILE, "%s: tensor %s %s", r->path,
                   ampc_show(name, sizeof name, t->name ? t->name : "of a node", ""), why);
}

/* ---- elements in fields ---- */

/* 16-bit floats are in int32_data as bits, other types as numbers. */
static bool collect(Reader *r, OnnxTensor *t, int64_t n, ampc_dtype type, bool wide)
{
  int64_t size = ampc_size_of(type, wide);
  uint8_t *to = arena_alloc(r->arena, (size_t)(n * size) + 1, _Alignof(max_align_t));
  size_t count = (size_t)n;
  for (int64_t i = 0; i < n; i++) {
    if (t->n_int64_data == count)
      memcpy(to + i * size, &t->int64_data[i], (size_t)size);
    else if (t->n_int32_data == count && type != AMPC_I64)
      memcpy(to + i * size, &t->int32_data[i], (size_t)size);
    else if (t->n_float_data == count && !wide)
      memcpy(to + i * size, &t->float_data[i], (size_t)size);
    else if (t->n_double_data == count && wide)
      memcpy(to + i * size, &t->double_data[i], (size_t)size);
    else
      return false;
  }
  t->raw_data = (ProtobufCBinaryData){(size_t)(n * size), to};
  return true;
}

/* ---- elements in another file ---- */

static const char *entry(const OnnxTensor *t, const char *key)
{
  for (size_t i = 0; i < t->n_external_data; i++) {
    const Onnx__StringStringEntryProto *e = t->external_data[i];
    if (e->key && e->value && strcmp(e->key, key) == 0) return e->value;
  }
  return NULL;
}

/* Opens a file in the model's folder. Links are not followed: they could lead out of the folder. */
static int open_beside(const Reader *r, const char *name)
{
  if (!name || !*name || name[0] == '/' || strstr(name, "..") || strchr(name, '/')) return -1;
  char *path = file_join(r->folder, name);
  int fd = path ? file_open_input(FILE_WEIGHTS, path, O_NOFOLLOW) : -1;
  free(path);
  return fd;
}

static ampc_status load_beside(Reader *r, OnnxTensor *t, int64_t bytes)
{
  const char *name = entry(t, "location"), *at = entry(t, "offset"), *length = entry(t, "length");
  int64_t offset = at ? strtoll(at, NULL, 10) : 0;
  struct stat file;
  char shown[200];
  if (length && strtoll(length, NULL, 10) != bytes)
    return bad_tensor(r, t,
                      text(r, "has %s bytes in its file, but its shape needs %lld",
                           ampc_show(shown, sizeof shown, length, ""), (long long)bytes));
  int fd = open_beside(r, name);
  if (fd < 0)
    return bad_tensor(r, t,
                      text(r,
                           "needs the file %s, which cannot be opened in the folder of the model",
                           ampc_show(shown, sizeof shown, name ? name : "", "")));
  bool fits = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && offset >= 0 &&
              offset <= file.st_size - bytes;
  ampc_status status = fits ? AMPC_OK : bad_tensor(r, t, "is beyond the end of its file");
  if (!status) {
    t->raw_data.len = (size_t)bytes;
    t->raw_data.data = arena_alloc(r->arena, (size_t)bytes + 1, _Alignof(max_align_t));
    status = file_read_at(name, fd, offset, bytes, t->raw_data.data);
  }
  close(fd);
  return status;
}

ampc_status tensor_load(Reader *r, OnnxTensor *t)
{
  bool wide;
  ampc_dtype type = tensor_type(t, &wide);
  int64_t n = tensor_elements(t), bytes;
  for (size_t i = 0; i < t->n_dims; i++)
    if (t->dims[i] > MOST_SIZE) n = -1;
  if (n < 0 || t->n_dims > READ_RANK)
    return bad_tensor(r, t, "has a size below 0 or above 2^31, or more than 6 axes");
  if (type == AMPC_DTYPE_COUNT) return bad_tensor(r, t, "has a type that jobs do not have");
  if (__builtin_mul_overflow(n, ampc_size_of(type, wide), &bytes))
    return bad_tensor(r, t, "is too large");
  if (t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
    return load_beside(r, t, bytes);
  bool whole = t->has_raw_data ? t->raw_data.len == (size_t)bytes : collect(r, t, n, type, wide);
  return whole ? AMPC_OK : bad_tensor(r, t, "has another size than its data");
}
