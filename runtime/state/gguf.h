/* GGUF: the files of llama.cpp. A header with metadata and the names of tensors, then the tensors,
 * most of them as blocks of small integers with their scales. */
#pragma once
#include "safetensors.h"

/* Reads the header of an open file into the fields of a TensorFile, as if its tensors were those of
 * a safetensors file. Tensors of blocks become views of type F32. "__metadata__" of the header has
 * the metadata: text, numbers, bools and lists of these. The caller frees `f`, also after a
 * failure. */
ampc_status gguf_read(const char *path, int64_t file_size, TensorFile *f);
/* Reads bytes of a tensor of blocks, from byte `begin` of its F32 elements on. */
ampc_status gguf_view_load(const TensorFile *f, const TensorView *v, int64_t begin, void *to,
                           int64_t bytes);

/* ---- gguf_blocks.c ---- */
typedef struct GgufType {
  const char *name;        /* "q4_K"; NULL: no type has this number */
  const char *stored;      /* the type of safetensors with the same elements; NULL: blocks */
  int64_t elements, bytes; /* of a block */
  void (*widen)(const uint8_t *block, float *to); /* NULL: the blocks are not read */
} GgufType;
/* Returns the type of a number, without a name if it is unknown. */
const GgufType *gguf_type(uint32_t number);
