/* Predicts the time of a kernel on a GPU from the counts of a walk: Note [roofs]. */
#pragma once
#include "compiler/cost/gpu.h"
#include "walk.h"

typedef struct KernelLoad { /* what an own kernel must do */
  uint32_t grid, block;
  int registers, shared; /* registers: per thread, 0: unknown; shared: bytes per block */
  double bytes;          /* bytes of operands, each once */
  const WalkCounts *counts;
} KernelLoad;
Cost gpu_kernel_cost(const Gpu *g, const KernelLoad *k);
