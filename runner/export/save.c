/* Writes an ONNX model, with large tensors in a file of their own. */
#include "save.h"
#include <string.h>

/* Readers map the file, so tensors begin at pages; the first page says what the file is. */
enum { PAGE = 4096, LARGE = 1024 };
static const char head[] = "tensors of an ONNX model of amp export\n";
static const FileKind file_tensors = {"file of tensors of amp export", 0, head, sizeof head - 1,
                                      FILE_NO_ROLE};

static bool is_large(const OnnxTensor *t)
{
  return t->raw_data.len >= LARGE;
}

Onnx__StringStringEntryProto *onnx_entry(Arena *a, const char *key, const char *value)
{
  Onnx__StringStringEntryProto *e = arena_new(a, Onnx__StringStringEntryProto);
  onnx__string_string_entry_proto__init(e);
  e->key = arena_strdup(a, key);
  e->value = arena_strdup(a, value);
  return e;
}

/* Replaces the bytes of a tensor by their place in a file. */
static void refer(Arena *a, OnnxTensor *t, const char *file, int64_t at)
{
  t->n_external_data = 3;
  t->external_data = arena_array(a, Onnx__StringStringEntryProto *, 3);
  t->external_data[0] = onnx_entry(a, "location", file);
  t->external_data[1] = onnx_entry(a, "offset", arena_printf(a, "%lld", (long long)at));
  t->external_data[2] = onnx_entry(a, "length", arena_printf(a, "%zu", t->raw_data.len));
  t->has_data_location = true;
  t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  t->has_raw_data = false;
  t->raw_data = (ProtobufCBinaryData){0};
}

static ampc_status add_padding(FileWriter *file, int64_t at)
{
  static const char zeros[PAGE];
  return at % PAGE ? file_add(file, zeros, PAGE - at % PAGE) : AMPC_OK;
}

static ampc_status add_tensors(Arena *a, FileWriter *file, OnnxGraph *g, const char *name)
{
  int64_t at = PAGE;
  ampc_status status = file_add(file, head, sizeof head - 1);
  if (!status) status = add_padding(file, sizeof head - 1);
  for (size_t i = 0; i < g->n_initializer && !status; i++) {
    OnnxTensor *t = g->initializer[i];
    if (!is_large(t)) continue;
    int64_t size = (int64_t)t->raw_data.len;
    status = file_add(file, t->raw_data.data, size);
    if (!status) status = add_padding(file, size);
    refer(a, t, name, at);
    at += (size + PAGE - 1) / PAGE * PAGE;
  }
  return status;
}

static ampc_status write_tensors(Arena *a, const char *path, OnnxGraph *g, const char **out_name)
{
  FileWriter file;
  const char *all = arena_printf(a, "%s.data", path), *slash = strrchr(all, '/');
  *out_name = slash ? slash + 1 : all;
  ampc_status status = file_begin(&file, all, &file_tensors);
  if (status) return status;
  status = add_tensors(a, &file, g, *out_name);
  if (!status) return file_finish(&file, true);
  file_abandon(&file);
  return status;
}

ampc_status onnx_save(Arena *arena, const char *path, OnnxModel *model, int64_t most,
                      const char **out_beside)
{
  int64_t bytes = 0;
  OnnxGraph *g = model->graph;
  for (size_t i = 0; i < g->n_initializer; i++) bytes += (int64_t)g->initializer[i]->raw_data.len;
  *out_beside = NULL;
  ampc_status status = file_check_writable(path, &file_onnx);
  if (!status && bytes > most) status = write_tensors(arena, path, g, out_beside);
  return status ? status : onnx_write(path, model);
}
