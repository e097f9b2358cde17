/* ONNX files: protobuf messages, whose C structs protoc-c makes of onnx.proto during the build. */
#pragma once
#include "compiler/base/arena.h"
#include "common/file.h"
#include "onnx.pb-c.h"

typedef Onnx__ModelProto OnnxModel;
typedef Onnx__GraphProto OnnxGraph;
typedef Onnx__NodeProto OnnxNode;
typedef Onnx__AttributeProto OnnxAttribute;
typedef Onnx__TensorProto OnnxTensor;
typedef Onnx__ValueInfoProto OnnxValueInfo;

extern const FileKind file_onnx;

/* Reads a model; *out is in the arena. The file may be hostile: messages that contain each other
 * too deeply, or that need far more memory than the file has bytes, are AMPC_BAD_FILE. Fields are
 * not checked beyond their wire types: strings may be NULL, names need not be unique. */
ampc_status onnx_read(Arena *arena, const char *path, OnnxModel **out);
/* The same for the bytes of a file; `path` is for messages. */
ampc_status onnx_parse(Arena *arena, const char *path, const void *bytes, size_t size,
                       OnnxModel **out);
/* Writes a model without a copy of its tensors in memory. */
ampc_status onnx_write(const char *path, const OnnxModel *model);

/* Returns an entry of a node's metadata, such as the modules that an exporter of PyTorch writes
 * there, or NULL. */
const char *onnx_metadata(Arena *arena, const OnnxNode *n, const char *key);
const char *graph_metadata(Arena *arena, const OnnxGraph *g, const char *key);
