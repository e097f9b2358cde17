/* How a product is cut into pieces. Plain arithmetic on its sizes, so that the compiler can plan
 * the workspace without a BLAS. */
#pragma once
#include "ampc_plan.h"

/* An operand or result that is not read or written in place: a panel of it in f32 */
typedef struct GemmRoom {
  bool used;
  int64_t ld, bytes; /* of one panel */
} GemmRoom;

typedef struct GemmTiling {
  int64_t mt, nt, kt; /* largest panel of each axis */
  int64_t entries;    /* batch entries that are worked on together */
  GemmRoom a, b, c;
  int64_t bytes; /* of one batch entry */
} GemmTiling;

GemmTiling ampc_gemm_tiling(const ampc_gemm *g, bool real64);
