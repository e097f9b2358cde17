/* Predicts the time of a kernel on a GPU from the counts of a walk: Note [roofs]. */
#pragma once
#include "compiler/cost/gpu.h"
#include "walk.h"

typedef struct KernelLoad { /* of an own kernel */
  uint32_t grid, block;
  int registers, shared; /* per thread; bytes per block; registers 0: unknown */
  double bytes;          /* of operands, each once */
  const WalkCounts *counts;
} KernelLoad;
Cost gpu_kernel_cost(const Gpu *g, const KernelLoad *k);
