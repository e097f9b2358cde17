/* From what was counted of a kernel to microseconds on a GPU: Note [roofs]. */
#pragma once
#include "compiler/cost/gpu.h"
#include "walk.h"

typedef struct KernelLoad { /* of a kernel of ours */
  uint32_t grid, block;
  int registers, shared; /* of a thread and a block; registers 0: not known */
  double bytes;          /* of operands, each once */
  const WalkCounts *counts;
} KernelLoad;
Cost gpu_kernel_cost(const Gpu *g, const KernelLoad *k);
