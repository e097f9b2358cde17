/* Fuzz target for amp import. For any bytes, the reader must return a status. If it reads a model,
 * the job must have no syntax error: no name of the file becomes code. */
#include <stdint.h>
#include <stdlib.h>
#include "compiler/cli/options.h"
#include "compiler/driver.h"
#include "runner/import/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  Arena *arena = arena_create();
  OnnxModel *model;
  Reader r;
  const ReadWishes file = {.path = "fuzz.onnx", .folder = "/nonexistent"};
  const JobWishes wishes = {.source = "fuzz.onnx", .weights = "fuzz.safetensors"};
  JobText text;
  bool read = onnx_parse(arena, "fuzz.onnx", data, size, &model) == AMPC_OK &&
              read_model(&r, arena, model, &file) == AMPC_OK && !r.refused.n;
  if (read) {
    job_text(&r, &wishes, &text);
    Options options = options_default();
    options.silent = true;
    Compile *c = compile_create(&options);
    if (!compile_add_file(c, "fuzz.amp", text.whole, strlen(text.whole))) abort();
    compile_destroy(c);
  }
  arena_destroy(arena);
  return 0;
}
