/* Named tensors in a file of safetensors. Our own files also store a checksum of all their bytes in
 * the metadata. Files of torch.save (torch_file.c) and GGUF files (gguf.c) are read, too; then the
 * header is made from theirs. */
#pragma once
#include <xxhash.h>
#include "ampc_rt.h"
#include "common/file.h"
#include "runtime/data/formats/safetensors_header.h"

/* A tensor whose elements are not in the file as its type says: one of torch.save in another order,
 * or one of blocks of GGUF. */
typedef struct TensorView {
  int64_t begin, bytes; /* its range in TensorFile.header, behind the end of the file */
  int64_t at, span;     /* offset of its first element in the file; elements up to its last one */
  int64_t unit;         /* bytes of an element */
  uint32_t gguf;        /* number of the type of its blocks; 0: it has none, but strides */
  uint32_t rank;
  int64_t dim[TENSOR_AXES], stride[TENSOR_AXES];
  char *held; /* the bytes of the span while the tensor is read, else NULL */
} TensorView;

typedef struct TensorFile {
  json_t *header; /* name -> {"dtype", "shape", "data_offsets"}, and "__metadata__" */
  int64_t size;   /* bytes of all tensors, which follow each other without gaps */
  /* the fields below are only for a file that is read; its tensors are not in memory */
  const char *path; /* owned by the caller */
  bool foreign;     /* any program may have written it, so it need not have a checksum */
  int64_t begin;    /* offset of the first tensor */
  int fd;
  TensorView *views; /* sorted by `begin` */
  uint32_t n_views;
} TensorFile;

/* A file that is being written in pieces, without a copy of the tensors. */
typedef struct TensorWriter {
  FileWriter file;
  XXH3_state_t *sum;
  int64_t digits; /* offset of the checksum in the file */
} TensorWriter;

typedef struct TensorType {
  ampc_dtype dtype;
  bool real64; /* AMPC_F32 means double */
  uint32_t rank;
  const int64_t *dim;
} TensorType;

/* ---- writing ---- */

/* Appends a tensor to the header. *out_begin: its offset in the bytes of all tensors. */
bool tensor_file_add(TensorFile *f, const char *name, const TensorType *t, int64_t *out_begin);
bool tensor_file_set(TensorFile *f, const char *key, const char *value); /* metadata */
/* Appends a tensor like that of a file that was read, of another type unless `type` is
 * AMPC_DTYPE_COUNT. */
bool tensor_file_add_like(TensorFile *f, const char *name, const json_t *entry, ampc_dtype type);
/* After tensor_write_begin, write all tensors in the order in which they were added. If
 * tensor_write_end is not called, call tensor_write_abandon. */
ampc_status tensor_write_begin(TensorWriter *w, TensorFile *f, const char *path,
                               const FileKind *kind);
ampc_status tensor_write(TensorWriter *w, const void *bytes, int64_t size);
ampc_status tensor_write_end(TensorWriter *w);
void tensor_write_abandon(TensorWriter *w);

/* ---- reading ---- */

/* Reads and checks everything that does not depend on a model: header, offsets, checksum. */
ampc_status tensor_file_read(const char *path, TensorFile *out);
/* Reads and checks a file of any program, also one of torch.save or GGUF: a checksum is optional.
 */
ampc_status tensor_file_read_any(const char *path, TensorFile *out);
const char *tensor_file_get(const TensorFile *f, const char *key); /* metadata; NULL: no such key */
void tensor_file_free(TensorFile *f);
/* Write the text of a type, or of a checked entry of a header: "F32[784, 128]". */
void tensor_type_text(const TensorType *t, char *to, size_t size);
void tensor_entry_text(const json_t *entry, char *to, size_t size);
/* Returns the offset of a tensor if the file has it with this type, otherwise -1. */
int64_t tensor_file_find(const TensorFile *f, const char *name, const TensorType *t);
/* A ParamMove that reads a tensor's bytes into `piece`. */
typedef struct TensorPlace {
  const TensorFile *file;
  int64_t begin;
} TensorPlace;
ampc_status tensor_place_load(void *place, int64_t at, int64_t bytes, void *piece);
/* Reads bytes of the tensors, from offset `begin` on. */
ampc_status tensor_file_load(const TensorFile *f, int64_t begin, void *to, int64_t bytes);
