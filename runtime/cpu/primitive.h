/* Blocks of matrix products as oneDNN primitives, made once for each kind of block. */
#pragma once
#include "cpu.h"

/* The product C [m, n] = A B (+ bias) (+ C) of a block. Rows are ld elements apart. The struct has
 * no padding, so that keys can be compared as bytes. */
typedef struct PrimitiveKey {
  int64_t m, n, k, lda, ldb, ldc;
  int64_t trans_a, trans_b, add, has_bias;
  int64_t type, c_type, bias_type; /* f32 or a type of library_takes(); f32 takes only f32 */
} PrimitiveKey;

typedef struct Primitive Primitive;
typedef struct PrimitiveCache PrimitiveCache;

PrimitiveCache *
primitive_cache_create(unsigned lanes); /* lanes: threads that run blocks; NULL: out of memory */
void primitive_cache_free(PrimitiveCache *cache);
int64_t primitive_cache_bytes(const PrimitiveCache *cache); /* bytes of scratch space */
/* Allocates scratch space for all primitives made so far. Call before blocks run. */
ampc_status primitive_cache_allocate(PrimitiveCache *cache);
/* Finds or makes a primitive. Do not call while blocks run. */
ampc_status primitive_get(PrimitiveCache *cache, const PrimitiveKey *key, Primitive **out);
/* Returns 0 or the library's status. Each lane runs one call at a time. `bias` may be NULL; the
 * workspace is ignored. */
int primitive_run(PrimitiveCache *cache, Primitive *primitive, unsigned lane,
                  const GemmOperands *at);
ampc_status primitive_failed(int status); /* makes an error of a library status that is not 0 */
/* Note [native bf16]
 * A processor with bf16 dot products takes bf16 operands without widening. It also sums in f32 and
 * is twice as fast. Elsewhere the library would emulate them slowly, so operands are widened. */
bool library_takes(ampc_dtype t);
unsigned library_type(ampc_dtype t); /* the dnnl_data_type_t of a float */
