/* What gpu.c finds out and gpu_print.c shows. */
#pragma once
#include "inspect.h"
#include "runner/cost/kernel.h"

typedef struct GpuRow { /* of a command; the launches of a convolution by columns are added up */
  const CommandRow *row;
  int nodes;          /* of the graph */
  bool counted;       /* a kernel of ours is in it */
  WalkCounts counts;  /* of all its launches */
  double bytes;       /* of operands, each once; columns too */
  Cost cost;          /* us: without the nodes */
  double us;          /* with them */
  double measured;    /* us; 0: not known */
  const char *tensor; /* of a product: NULL, or why it is not for tensor cores */
  const char *own;    /* of a convolution by our own kernels: why; of tiles by a library: which */
} GpuRow;

typedef struct GpuBlock { /* sums; measured 0: not of all commands */
  uint32_t commands;
  int nodes;
  double bytes, unavoidable, instructions, us, measured;
} GpuBlock;

typedef struct GpuReport {
  const Gpu *gpu;
  GpuRow *rows; /* of Inspection.rows */
  bool no_cudnn, measured;
} GpuReport;

GpuBlock gpu_block(const Inspection *in, const GpuReport *r, uint16_t block);
/* Bytes that a step moves however its kernels are joined, at most the `moved` ones that it does:
 * see Note [unavoidable bytes]. */
double gpu_unavoidable(const Inspection *in, uint16_t block, double moved);
int gpu_print_table(const Inspection *in, const GpuReport *r);
int gpu_print_json(const Inspection *in, const GpuReport *r);
