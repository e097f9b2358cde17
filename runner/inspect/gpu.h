/* The predictions that gpu.c computes and gpu_print.c prints. */
#pragma once
#include "inspect.h"
#include "runner/cost/kernel.h"

typedef struct GpuRow { /* a command: the sum of all its launches */
  const CommandRow *row;
  int nodes;          /* nodes of the CUDA graph */
  bool counted;       /* `counts` is valid: an own kernel runs */
  WalkCounts counts;  /* counts of all its launches */
  double bytes;       /* bytes of operands and columns, each once */
  Cost cost;          /* predicted cost, without the cost of graph nodes */
  double us;          /* predicted time, with graph nodes */
  double measured;    /* measured time, us; 0: unknown */
  const char *tensor; /* why a product cannot use tensor cores, or NULL */
  const char *own;    /* why no library, which one for tiles, why no launch, or NULL */
} GpuRow;

typedef struct GpuBlock { /* sums; measured 0: some command was not measured */
  uint32_t commands;
  int nodes;
  double bytes, unavoidable, instructions, us, measured;
} GpuBlock;

typedef struct GpuReport {
  const Gpu *gpu;
  GpuRow *rows; /* one per row of Inspection.rows */
  bool no_cudnn, measured;
} GpuReport;

GpuBlock gpu_block(const Inspection *in, const GpuReport *r, uint16_t block);
/* Returns the bytes that a step must move however its kernels are fused; at most `moved`, the bytes
 * that the step does move. See Note [unavoidable bytes]. */
double gpu_unavoidable(const Inspection *in, uint16_t block, double moved);
int gpu_print_table(const Inspection *in, const GpuReport *r);
int gpu_print_json(const Inspection *in, const GpuReport *r);
