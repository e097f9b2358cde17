/* How the CPU divides a product. Only arithmetic on sizes, so that the compiler can plan the
 * workspace without a BLAS. */
#pragma once
#include "ampc_plan.h"

/* An operand or result that is copied to an f32 panel instead of read or written in place. */
typedef struct GemmRoom {
  bool used;
  int64_t ld, bytes; /* of one panel */
} GemmRoom;

typedef struct GemmTiling {
  int64_t mt, nt, kt; /* largest panel of each axis */
  int64_t entries;    /* batch entries that are computed together */
  GemmRoom a, b, c;
  int64_t bytes; /* of one batch entry */
} GemmTiling;

GemmTiling ampc_gemm_tiling(const ampc_gemm *g, bool real64);
