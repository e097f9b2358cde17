/* Safetensors files: u64 length, that many bytes of JSON, the tensors' bytes. Ours also carry a
 * checksum of all their bytes in the metadata. */
#pragma once
#include <jansson.h>
#include "ampc_rt.h"

typedef struct TensorFile {
  json_t *header; /* name -> {"dtype", "shape", "data_offsets"}, and "__metadata__" */
  char *data;     /* all tensors, one after the other */
  int64_t size;
  char *file; /* what `data` lies in, after reading; else NULL and `data` is the owner's own */
} TensorFile;

typedef struct TensorType {
  ampc_dtype dtype;
  bool real64; /* AMPC_F32 is a double */
  uint32_t rank;
  const int64_t *dim;
} TensorType;

/* Adds a tensor behind those that are there; its bytes are the caller's to place at *out_begin. */
bool tensor_file_add(TensorFile *f, const char *name, const TensorType *t, int64_t *out_begin);
bool tensor_file_set(TensorFile *f, const char *key, const char *value); /* metadata */
ampc_status tensor_file_write(TensorFile *f, const char *path);

/* Reads and checks everything that does not depend on a model: header, offsets, checksum. */
ampc_status tensor_file_read(const char *path, TensorFile *out);
const char *tensor_file_get(const TensorFile *f, const char *key); /* metadata; NULL: none */
void tensor_file_free(TensorFile *f);
/* "f32[784, 128]" of a type, or of an entry of a header that has been checked. */
void tensor_type_text(const TensorType *t, char *to, size_t size);
void tensor_entry_text(const json_t *entry, char *to, size_t size);
/* Bytes of a tensor if it is there with that type, else NULL. */
const char *tensor_file_find(const TensorFile *f, const char *name, const TensorType *t);
