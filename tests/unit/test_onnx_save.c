/* ONNX models whose tensors are too large for one file. A small limit stands for 2 GB. */
#include "runner/export/build.h"
#include "runner/export/save.h"
#include "temp.h"

static const char *external(const OnnxTensor *t, const char *key)
{
  for (size_t i = 0; i < t->n_external_data; i++)
    if (strcmp(t->external_data[i]->key, key) == 0) return t->external_data[i]->value;
  return "";
}

static OnnxModel *model_of(Arena *a, const float *large, const float *small)
{
  OnnxBuild *b = build_begin(a, NULL);
  build_tensor(b, "first", AMPC_F32, &(int64_t){1024}, 1, large, 4096);
  build_tensor(b, "small", AMPC_F32, &(int64_t){2}, 1, small, 8);
  build_tensor(b, "last", AMPC_F32, &(int64_t){1023}, 1, large + 1, 4092);
  OnnxModel *m = arena_new(a, OnnxModel);
  onnx__model_proto__init(m);
  m->has_ir_version = true;
  m->ir_version = 8;
  m->producer_name = arena_strdup(a, "ampc"); /* a file of this producer may be replaced */
  m->graph = build_end(b, "graph");
  return m;
}

static void check_tensor(const OnnxTensor *t, const char *bytes, int64_t size, const float *want)
{
  int64_t at = atoll(external(t, "offset")), n = atoll(external(t, "length"));
  CHECK(t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL && !t->has_raw_data);
  CHECK(strcmp(external(t, "location"), "net.onnx.data") == 0);
  CHECK(at % 4096 == 0 && at + n <= size && n == t->dims[0] * 4);
  CHECK(memcmp(bytes + at, want, (size_t)n) == 0);
}

int main(void)
{
  float large[1024], small[] = {1, 2};
  for (int i = 0; i < 1024; i++) large[i] = (float)i;
  Arena *a = arena_create();
  temp_open();
  const char *path = temp_path("net.onnx"), *beside;
  OnnxModel *m;
  CHECK(onnx_save(a, path, model_of(a, large, small), 8196, &beside) == AMPC_OK && !beside);
  CHECK(onnx_read(a, path, &m) == AMPC_OK && m->graph->initializer[2]->raw_data.len == 4092);

  CHECK(onnx_save(a, path, model_of(a, large, small), 8195, &beside) == AMPC_OK);
  CHECK(beside && strcmp(beside, "net.onnx.data") == 0);
  size_t size;
  char *bytes = temp_read(temp_path("net.onnx.data"), &size);
  MUST(onnx_read(a, path, &m) == AMPC_OK && m->graph->n_initializer == 3);
  check_tensor(m->graph->initializer[0], bytes, (int64_t)size, large);
  check_tensor(m->graph->initializer[2], bytes, (int64_t)size, large + 1);
  CHECK(m->graph->initializer[1]->raw_data.len == 8);
  free(bytes);
  CHECK(onnx_save(a, path, model_of(a, large, small), 0, &beside) == AMPC_OK); /* replaces both */
  CHECK(temp_count() == 2);
  temp_write(temp_path("net.onnx.data"), "notes", 5);
  CHECK(onnx_save(a, path, model_of(a, large, small), 0, &beside) == AMPC_BAD_FILE);
  arena_destroy(a);
  temp_close();
  return check_done();
}
