/* How the CPU divides a product into panels. Only arithmetic on sizes, so that the compiler can
 * plan the workspace without a BLAS. */
#pragma once
#include "ampc_plan.h"

/* The f32 panels of an operand or result that is not read or written in place. */
typedef struct GemmRoom {
  bool used;
  int64_t ld, bytes; /* ld: leading dimension; bytes: size of one panel */
} GemmRoom;

typedef struct GemmTiling {
  int64_t mt, nt, kt; /* largest size of a panel along each axis */
  int64_t entries;    /* batch entries that are computed together */
  GemmRoom a, b, c;
  int64_t bytes; /* panels of one batch entry */
} GemmTiling;

GemmTiling ampc_gemm_tiling(const ampc_gemm *g, bool real64);
