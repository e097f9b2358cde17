/* The header of a safetensors file. The file is its length (8 bytes, little-endian), the header in
 * JSON, the tensors. {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} says
 * where each tensor is. */
#pragma once
#include <jansson.h>
#include "element.h"

enum { TENSOR_AXES = 8, HEADER_LENGTH = 8, MOST_HEADER = 100 << 20 /* bytes; by the format */ };

typedef struct StoredType {
  const char *name;    /* "F32"; NULL: a type that ampc does not know, its elements are bytes */
  ElementType element; /* ELEMENT_NONE: a type that only other programs have */
  ampc_dtype dtype; /* the type of ampc with the same elements; AMPC_DTYPE_COUNT: there is none */
  bool wide;        /* AMPC_F32 means double */
} StoredType;

/* Return the row of a type: by its name in a file, or by the type of ampc, which must have one. */
const StoredType *stored_type_named(const char *name);
const StoredType *stored_type_of(ampc_dtype dtype, bool wide);

typedef struct TensorEntry {
  ampc_dtype dtype; /* AMPC_DTYPE_COUNT: a type that ampc lacks */
  bool wide;        /* AMPC_F32 means double */
  bool unread;      /* a tensor of torch.save of another class: only its name is known */
  uint32_t rank;
  int64_t dim[TENSOR_AXES], elements, unit, begin; /* unit: bytes of an element */
} TensorEntry;

/* Returns the length of a header from the first bytes of a file. */
uint64_t tensor_header_length(const uint8_t bytes[HEADER_LENGTH]);
/* Parses and checks a header: each tensor has the size that its shape needs, and the tensors cover
 * the bytes that follow the header without gap or overlap. `behind`: the number of these bytes, or,
 * unless `exact`, an upper bound. The caller frees *out. */
ampc_status tensor_header_read(const char *path, const char *text, int64_t size, int64_t behind,
                               bool exact, json_t **out);
TensorEntry tensor_entry(const json_t *entry); /* of a header that was checked */
