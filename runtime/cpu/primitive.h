/* Blocks of matrix products as the library's primitives, made once for each kind of block. */
#pragma once
#include "cpu.h"

/* C [m, n] = A B (+ bias) (+ C); rows are ld elements apart. All members count, so that keys can be
 * compared as bytes. */
typedef struct PrimitiveKey {
  int64_t m, n, k, lda, ldb, ldc;
  int64_t trans_a, trans_b, add, has_bias;
  int64_t type, c_type, bias_type; /* f32, or one that library_takes(); f32 takes no other */
} PrimitiveKey;

typedef struct Primitive Primitive;
typedef struct PrimitiveCache PrimitiveCache;

PrimitiveCache *
primitive_cache_create(unsigned lanes); /* lanes: threads that run blocks; NULL: memory */
void primitive_cache_free(PrimitiveCache *cache);
int64_t primitive_cache_bytes(const PrimitiveCache *cache); /* of scratch space */
/* Scratch space for all that was made; before blocks are run. */
ampc_status primitive_cache_allocate(PrimitiveCache *cache);
/* Finds or makes one. Not while blocks are run. */
ampc_status primitive_get(PrimitiveCache *cache, const PrimitiveKey *key, Primitive **out);
/* 0, or the library's status. One call at a time on each lane. `bias` is NULL where there is none;
 * the workspace is not looked at. */
int primitive_run(PrimitiveCache *cache, Primitive *primitive, unsigned lane,
                  const GemmOperands *at);
ampc_status primitive_failed(int status); /* the library's status, not 0, as an error */
/* Note [native bf16]
 * A processor with dot products of bf16 takes such operands as they are: it sums in f32, too, and
 * is twice as fast. Elsewhere the library would imitate it slowly, and operands are widened. */
bool library_takes(ampc_dtype t);
unsigned library_type(ampc_dtype t); /* a float's dnnl_data_type_t */
