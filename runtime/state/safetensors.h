/* Safetensors files: u64 length, that many bytes of JSON, the tensors' bytes. Ours also carry a
 * checksum of all their bytes in the metadata. */
#pragma once
#include <jansson.h>
#include <xxhash.h>
#include "ampc_rt.h"
#include "runtime/plan/file.h"

typedef struct TensorFile {
  json_t *header; /* name -> {"dtype", "shape", "data_offsets"}, and "__metadata__" */
  int64_t size;   /* bytes of all tensors, which lie one after the other */
  /* of a file that is read, where the tensors stay: */
  const char *path; /* the caller's */
  bool foreign;     /* may be of any program: it need not have a checksum */
  int64_t begin;    /* of the first tensor */
  int fd;
} TensorFile;

/* A file that is being written, by parts: no copy of the tensors is made. */
typedef struct TensorWriter {
  FileWriter file;
  XXH3_state_t *sum;
  int64_t digits; /* where the checksum stands */
} TensorWriter;

typedef struct TensorType {
  ampc_dtype dtype;
  bool real64; /* AMPC_F32 is a double */
  uint32_t rank;
  const int64_t *dim;
} TensorType;

/* ---- writing ---- */

/* Adds a tensor behind those that are there, at *out_begin of all their bytes. */
bool tensor_file_add(TensorFile *f, const char *name, const TensorType *t, int64_t *out_begin);
bool tensor_file_set(TensorFile *f, const char *key, const char *value); /* metadata */
/* Then all tensors, in the order in which they were added. A writer that began and does not end is
 * abandoned. */
ampc_status tensor_write_begin(TensorWriter *w, TensorFile *f, const char *path);
ampc_status tensor_write(TensorWriter *w, const void *bytes, int64_t size);
ampc_status tensor_write_end(TensorWriter *w);
void tensor_write_abandon(TensorWriter *w);

/* ---- reading ---- */

/* Reads and checks everything that does not depend on a model: header, offsets, checksum. */
ampc_status tensor_file_read(const char *path, TensorFile *out);
/* The same of any program's file: a checksum is checked where there is one. */
ampc_status tensor_file_read_any(const char *path, TensorFile *out);
enum { TENSOR_AXES = 8 };
typedef struct TensorEntry {
  ampc_dtype dtype; /* AMPC_DTYPE_COUNT: none of ours */
  bool wide;        /* AMPC_F32 is a double */
  uint32_t rank;
  int64_t dim[TENSOR_AXES], elements, unit, begin; /* unit: bytes of an element */
} TensorEntry;
TensorEntry tensor_entry(const json_t *entry);                     /* of a file that was read */
const char *tensor_file_get(const TensorFile *f, const char *key); /* metadata; NULL: none */
void tensor_file_free(TensorFile *f);
/* "f32[784, 128]" of a type, or of an entry of a header that has been checked. */
void tensor_type_text(const TensorType *t, char *to, size_t size);
void tensor_entry_text(const json_t *entry, char *to, size_t size);
/* Where a tensor begins if it is there with that type, else -1. */
int64_t tensor_file_find(const TensorFile *f, const char *name, const TensorType *t);
/* A ParamMove of a tensor's bytes into `piece`. */
typedef struct TensorPlace {
  const TensorFile *file;
  int64_t begin;
} TensorPlace;
ampc_status tensor_place_load(void *place, int64_t at, int64_t bytes, void *piece);
/* Bytes of the tensors, from `begin` on. */
ampc_status tensor_file_load(const TensorFile *f, int64_t begin, void *to, int64_t bytes);
