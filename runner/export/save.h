/* Writes an ONNX model, with large tensors in a file of their own. */
#pragma once
#include "runner/onnx/file.h"

/* The most bytes of tensors in one file: no protobuf message may be larger than 2 GiB. */
enum { ONNX_MOST_BYTES = 2000000000 };

Onnx__StringStringEntryProto *onnx_entry(Arena *a, const char *key, const char *value);
/* Writes a model whose strings and arrays are in `arena`. If its tensors have more than `most`
 * bytes, those of at least 1 KiB go to the file `path`.data, and *out_beside is its name in the
 * folder of the model; else NULL. Changes the tensors of the model to refer to it. */
ampc_status onnx_save(Arena *arena, const char *path, OnnxModel *model, int64_t most,
                      const char **out_beside);
