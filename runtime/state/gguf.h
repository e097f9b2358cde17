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

/* ---- gguf_write.c ---- */
enum { GGUF_ALIGNMENT = 32 }; /* bytes: where tensors begin */

typedef struct GgufTensor { /* a tensor to write */
  const char *name;
  uint32_t type; /* its number, one of gguf_written; 0: f32 */
  uint32_t rank;
  int64_t dim[TENSOR_AXES];
} GgufTensor;
typedef struct GgufWritten { /* a type that can be written: f32, f16, bf16, q8_0 */
  uint32_t type;
  int file_type; /* of a file whose matrices have it: LlamaFileType */
} GgufWritten;
const GgufWritten *gguf_written(const char *name); /* NULL: it cannot */
/* Writes the header. The tensors must follow in this order, by gguf_write_tensor. `meta` has text,
 * bools, numbers, and lists of one of these; integers become u32, in lists i32, reals f32. */
ampc_status gguf_write_header(FileWriter *file, const json_t *meta, const GgufTensor *at,
                              uint32_t n);
/* Writes the elements of a tensor, and zeros up to the next one. *out_lost: finite elements that
 * became infinite. */
ampc_status gguf_write_tensor(FileWriter *file, const GgufTensor *t, const float *from,
                              int64_t *out_lost);

/* ---- gguf_blocks.c ---- */
typedef struct GgufType {
  const char *name;        /* "q4_K"; NULL: no type has this number */
  const char *stored;      /* the type of safetensors with the same elements; NULL: blocks */
  int64_t elements, bytes; /* of a block */
  void (*widen)(const uint8_t *block, float *to); /* NULL: the blocks are not read */
} GgufType;
/* Returns the type of a number, without a name if it is unknown. */
const GgufType *gguf_type(uint32_t number);
