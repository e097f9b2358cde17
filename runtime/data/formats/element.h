/* Types of elements in files, and their conversion to the types in INPUT. */
#pragma once
#include "runtime/plan/types.h"

typedef enum ElementKind {
  ELEMENT_NONE,
  ELEMENT_BOOL,
  ELEMENT_UNSIGNED,
  ELEMENT_SIGNED,
  ELEMENT_FLOAT, /* of 4 or 8 bytes */
#define ELEMENT_NARROW(KIND, ...) ELEMENT_##KIND,
  AMPC_NARROW_FLOATS(ELEMENT_NARROW)
} ElementKind;

typedef struct ElementType {
  ElementKind kind;
  uint8_t size;    /* bytes in the file */
  bool big_endian; /* byte order in the file */
} ElementType;

/* Sets *out to the language's type that holds all numbers of the file's type. Other integer types
 * are widened; f64 is rounded to f32. Returns false if no type holds them, as for u64. */
bool element_dtype(ElementType t, ampc_dtype *out);

/* Converts n elements of a file to `dtype`: the type from element_dtype, or a wider integer
 * type. */
void element_copy(const ampc_program *p, ElementType t, const uint8_t *from, int64_t n,
                  ampc_dtype dtype, void *to);
