/* Writes GGUF files, version 3. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gguf.h"
#include "runtime/base/convert.h"

enum { TYPE_f32, TYPE_f16, TYPE_q8_0 = 8, TYPE_bf16 = 30 };                 /* of tensors */
enum { KIND_u32 = 4, KIND_i32, KIND_f32, KIND_bool, KIND_text, KIND_list }; /* of values */
enum { PIECE = 1 << 15 /* elements; a multiple of all blocks */ };

const GgufWritten *gguf_written(const char *name)
{
  static const GgufWritten all[] = {{TYPE_f32, 0}, {TYPE_f16, 1}, {TYPE_q8_0, 7}, {TYPE_bf16, 32}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(gguf_type(all[i].type)->name, name) == 0) return &all[i];
  return NULL;
}

/* ---- the header ---- */

static void put(FILE *to, uint64_t v, int bytes)
{
  for (int i = 0; i < bytes; i++) putc((int)(v >> 8 * i & 255), to);
}

static void put_text(FILE *to, const char *text, size_t n)
{
  put(to, n, 8);
  fwrite(text, 1, n, to);
}

static uint32_t kind_of(const json_t *v, bool in_list)
{
  return json_is_array(v)     ? KIND_list
         : json_is_integer(v) ? in_list ? KIND_i32 : KIND_u32
         : json_is_real(v)    ? KIND_f32
         : json_is_boolean(v) ? KIND_bool
                              : KIND_text;
}

static void put_value(FILE *to, const json_t *v, uint32_t kind)
{
  json_t *item;
  size_t i;
  float real = (float)json_number_value(v);
  uint32_t bits;
  memcpy(&bits, &real, sizeof bits);
  if (kind == KIND_text) put_text(to, json_string_value(v), json_string_length(v));
  if (kind == KIND_bool) put(to, json_is_true(v), 1);
  if (kind == KIND_f32) put(to, bits, 4);
  if (kind == KIND_u32 || kind == KIND_i32) put(to, (uint64_t)json_integer_value(v), 4);
  if (kind != KIND_list) return;
  kind = kind_of(json_array_get(v, 0), true);
  put(to, kind, 4);
  put(to, json_array_size(v), 8);
  json_array_foreach(v, i, item) put_value(to, item, kind);
}

static int64_t elements_of(const GgufTensor *t)
{
  int64_t n = 1;
  for (uint32_t i = 0; i < t->rank; i++) n *= t->dim[i];
  return n;
}

static int64_t bytes_of(const GgufTensor *t, int64_t elements)
{
  return elements / gguf_type(t->type)->elements * gguf_type(t->type)->bytes;
}

static int64_t gap(int64_t bytes)
{
  return -bytes & (GGUF_ALIGNMENT - 1);
}

ampc_status gguf_write_header(FileWriter *file, const json_t *meta, const GgufTensor *at,
                              uint32_t n)
{
  static const char zeros[GGUF_ALIGNMENT];
  char *text = NULL;
  size_t size;
  const char *key;
  json_t *value;
  uint64_t offset = 0;
  FILE *to = open_memstream(&text, &size);
  if (!to) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", file->path);
  fwrite("GGUF\3\0\0", 1, 8, to);
  put(to, n, 8);
  put(to, json_object_size(meta), 8);
  json_object_foreach((json_t *)(uintptr_t)meta, key, value)
  {
    put_text(to, key, strlen(key));
    put(to, kind_of(value, false), 4);
    put_value(to, value, kind_of(value, false));
  }
  for (uint32_t i = 0; i < n; i++) {
    put_text(to, at[i].name, strlen(at[i].name));
    put(to, at[i].rank, 4);
    for (uint32_t k = at[i].rank; k-- > 0;) put(to, (uint64_t)at[i].dim[k], 8);
    put(to, at[i].type, 4);
    put(to, offset, 8);
    int64_t bytes = bytes_of(&at[i], elements_of(&at[i]));
    offset += (uint64_t)(bytes + gap(bytes));
  }
  bool good = !ferror(to);
  good = fclose(to) == 0 && good;
  ampc_status status = good ? file_add(file, text, (int64_t)size)
                            : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", file->path);
  if (!status) status = file_add(file, zeros, gap((int64_t)size));
  free(text);
  return status;
}

/* ---- tensors ---- */

/* The blocks of ggml's quantize_row_q8_0_ref: a scale in f16, and 32 integers. */
static int64_t narrow_q8_0(const float *from, uint8_t *to, int64_t n)
{
  int64_t lost = 0;
  for (int64_t at = 0; at < n; at += 32, from += 32, to += 34) {
    float most = 0;
    for (int i = 0; i < 32; i++) most = fmaxf(most, fabsf(from[i]));
    float scale = most / 127, times = scale != 0 ? 1 / scale : 0;
    uint16_t bits;
    convert_narrow(AMPC_F16, &scale, &bits, 1);
    lost += isfinite(most) && (bits & 0x7fff) >= 0x7c00 ? 32 : 0;
    to[0] = (uint8_t)bits;
    to[1] = (uint8_t)(bits >> 8);
    for (int i = 0; i < 32; i++) {
      float q = roundf(from[i] * times);
      to[2 + i] = (uint8_t)(int8_t)(fabsf(q) <= 127 ? q : 0); /* 0: the value is not finite */
    }
  }
  return lost;
}

static int64_t narrow(uint32_t type, const float *from, uint8_t *to, int64_t n)
{
  if (type == TYPE_q8_0) return narrow_q8_0(from, to, n);
  ampc_dtype dtype = type == TYPE_f32 ? AMPC_F32 : type == TYPE_f16 ? AMPC_F16 : AMPC_BF16;
  int64_t lost = 0;
  convert_narrow(dtype, from, to, n);
  for (int64_t i = 0; i < n && dtype != AMPC_F32; i++)
    lost += isfinite(from[i]) && !isfinite(number_load(dtype, false, to, i));
  return lost;
}

ampc_status gguf_write_tensor(FileWriter *file, const GgufTensor *t, const float *from,
                              int64_t *out_lost)
{
  static const char zeros[GGUF_ALIGNMENT];
  int64_t all = elements_of(t);
  uint8_t *made = malloc(PIECE * sizeof(float));
  ampc_status status =
      made ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", file->path);
  *out_lost = 0;
  for (int64_t at = 0; at < all && !status; at += PIECE) {
    int64_t n = all - at < PIECE ? all - at : PIECE;
    *out_lost += narrow(t->type, from + at, made, n);
    status = file_add(file, made, bytes_of(t, n));
  }
  free(made);
  return status ? status : file_add(file, zeros, gap(bytes_of(t, all)));
}
