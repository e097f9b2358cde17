/* Turns the counts of a walk into microseconds.
 *
 * Note [roofs]
 * A kernel takes as long as the slowest of five parts: reading and writing its operands once in
 * DRAM; moving its sectors between L2 and the multiprocessors; issuing its instructions, each on
 * its unit; multiplying on tensor cores, at the rate of mma.sync; and the latency of its longest
 * warp, or that of a block's longest warp times the number of times that the grid fills the GPU.
 *
 * If a block reads data again, they are in L1 if the data of all blocks of a multiprocessor fit
 * there. Else they are in L2 if the operands of the kernel fit into L2, else they come from DRAM
 * again. No data of the previous command are assumed in L2. Multiprocessors without a block are
 * idle. Clock rates are those of the data sheet. */
#include "kernel.h"
#include <math.h>

enum { SCHEDULERS = 4, WARP = 32, L2_BYTES_A_CYCLE = 64, SECTOR_BYTES = 32 };
enum { MMA_FLOPS = 2 * 16 * 8 * 16 };

/* Returns how many blocks are resident on a multiprocessor at the same time. */
static double resident_blocks(const Gpu *g, const KernelLoad *k)
{
  uint32_t warps = (k->block + WARP - 1) / WARP;
  double most = floor((double)g->threads / (warps * WARP));
  if (k->registers > 0) {
    double of_warp = ceil(k->registers * WARP / 256.0) * 256;
    most = fmin(most, floor(g->registers / (of_warp * warps)));
  }
  if (k->shared > 0) most = fmin(most, floor((g->shared_kb - 1) * 1024.0 / (k->shared + 1024)));
  return fmax(1, fmin(most, g->blocks));
}

/* Returns the cycles of the busiest unit, on the `busy` multiprocessors that have blocks. */
static double issue_cycles(const Gpu *g, const WalkCounts *c, double busy)
{
  const double lanes[PIPE_COUNT] = {
      [PIPE_fma] = g->lanes_f32, [PIPE_int] = g->lanes_int, [PIPE_xu] = g->lanes_xu,
      [PIPE_f64] = g->lanes_f64, [PIPE_lsu] = WARP,         [PIPE_branch] = SCHEDULERS * WARP / 2};
  double cycles = c->slots / SCHEDULERS;
  for (int i = 1; i < PIPE_COUNT; i++)
    if (lanes[i] > 0) cycles = fmax(cycles, c->pipe[i] * WARP / lanes[i]);
  return cycles / busy;
}

Cost gpu_kernel_cost(const Gpu *g, const KernelLoad *k)
{
  const WalkCounts *c = k->counts;
  double resident = resident_blocks(g, k), full = g->multiprocessors * resident;
  double busy = fmin(g->multiprocessors, k->grid), cycle = 1.0 / g->mhz; /* us */
  double here = fmin(resident, ceil(k->grid / (double)g->multiprocessors));
  double tensor_us = c->pipe[PIPE_tensor] * MMA_FLOPS / (g->tensor16 * 1e6); /* at the peak */
  double once = c->sectors_once * SECTOR_BYTES, all = c->sectors_read * SECTOR_BYTES;
  bool in_l1 = once / k->grid * here < (g->l1_kb * 1024 - here * k->shared);
  Cost cost = {.in_flight = fmin(k->grid, full) * k->block};
  cost.l2_bytes = (in_l1 ? once : all) + c->sectors_written * SECTOR_BYTES;
  double dram = k->bytes;
  if (dram > g->l2_mb * 1e6 && cost.l2_bytes > dram) dram = cost.l2_bytes;
  cost.dram_us = dram / (g->dram * 1e3);
  cost.l2_us = fmax(cost.l2_bytes / (g->l2 * 1e3), cost.l2_bytes / L2_BYTES_A_CYCLE / busy * cycle);
  cost.issue_us = issue_cycles(g, c, busy) * cycle;
  cost.tensor_us = tensor_us / g->mma * g->multiprocessors / busy;
  cost.latency_us = fmax(c->longest, c->mean * k->grid / full) * cycle;
  cost.roof_us = fmax(k->bytes / (g->dram * 1e3), tensor_us);
  cost_choose(&cost);
  return cost;
}
