/* From counts to microseconds.
 *
 * Note [roofs]
 * A kernel takes as long as the slowest of: its operands, each once, from DRAM; its sectors from
 * L2; its instructions, by the unit that they are for; its longest warp, as often as the grid fills
 * the GPU. What a block reads again is in L1 where the blocks of a multiprocessor have room for it,
 * else in L2 where its operands fit into that, else it comes from DRAM again. What the command
 * before left in L2 is not counted on. A multiprocessor that has no block does nothing. Clocks are
 * those of the data sheet. */
#include "gpu.h"
#include <math.h>
#include <string.h>

enum { SCHEDULERS = 4, WARP = 32, L2_BYTES_A_CYCLE = 64, SECTOR_BYTES = 32 };

static const Gpu gpus[] = {
#define GPU(name, model, arch, ...) {#name, model, #arch, __VA_ARGS__},
#include "gpus.def"
};
enum { GPUS = sizeof gpus / sizeof *gpus };

const char *const bound_names[] = {[BOUND_dram] = "memory",
                                   [BOUND_l2] = "L2",
                                   [BOUND_issue] = "issue",
                                   [BOUND_latency] = "latency",
                                   [BOUND_tensor] = "tensor"};

const Gpu *gpu_find(const char *name)
{
  for (int i = 0; i < GPUS; i++)
    if (strcmp(gpus[i].name, name) == 0) return &gpus[i];
  return NULL;
}

const char *gpu_names(Arena *arena)
{
  Text t;
  text_init(&t, arena);
  for (int i = 0; i < GPUS; i++) text_printf(&t, "%s%s", i ? ", " : "", gpus[i].name);
  return t.at;
}

/* The greatest of what a command takes for each resource. */
static void choose(Cost *c)
{
  const double of[] = {[BOUND_dram] = c->dram_us,
                       [BOUND_l2] = c->l2_us,
                       [BOUND_issue] = c->issue_us,
                       [BOUND_latency] = c->latency_us,
                       [BOUND_tensor] = c->tensor_us};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++)
    if (of[i] > of[c->bound]) c->bound = (Bound)i;
  c->us = of[c->bound];
}

/* ---- kernels ---- */

/* Blocks that a multiprocessor holds at a time. */
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

/* Cycles of the busiest unit of the multiprocessors that have work. */
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
  double once = c->sectors_once * SECTOR_BYTES, all = c->sectors_read * SECTOR_BYTES;
  bool in_l1 = once / k->grid * here < (g->l1_kb * 1024 - here * k->shared);
  Cost cost = {.in_flight = fmin(k->grid, full) * k->block};
  cost.l2_bytes = (in_l1 ? once : all) + c->sectors_written * SECTOR_BYTES;
  double dram = k->bytes;
  if (dram > g->l2_mb * 1e6 && cost.l2_bytes > dram) dram = cost.l2_bytes;
  cost.dram_us = dram / (g->dram * 1e3);
  cost.l2_us = fmax(cost.l2_bytes / (g->l2 * 1e3), cost.l2_bytes / L2_BYTES_A_CYCLE / busy * cycle);
  cost.issue_us = issue_cycles(g, c, busy) * cycle;
  cost.latency_us = c->longest * fmax(1, k->grid / full) * cycle;
  cost.roof_us = k->bytes / (g->dram * 1e3);
  choose(&cost);
  return cost;
}

/* ---- products ---- */

bool gpu_has_tensor(const Gpu *g, const ProductLoad *p)
{
  bool half = p->type == AMPC_F16 || (p->type == AMPC_BF16 && g->tensor_tf32 > 0);
  return half || (p->type == AMPC_F32 && p->tf32 && g->tensor_tf32 > 0);
}

/* Note [products]
 * A multiprocessor computes a tile of 64 x 64 of the result, or more; where tiles are few, k is cut
 * into parts of no less than 256. Of the peak 0.8 is reached, an estimate. Rows
 * that do not begin at multiples of 16 bytes are loaded element by element: a quarter of that. The
 * shortest takes two loads from DRAM, and a load from L2 for four steps of 32 of k, which are begun
 * ahead. */
Cost gpu_product_cost(const Gpu *g, const ProductLoad *p)
{
  const double tile = 64, step = 32, part = 256, reached = 0.8;
  double cycle = 1.0 / g->mhz, flops = 2 * p->m * p->n * p->k * p->batch;
  double peak = p->type == AMPC_F32 ? g->tensor_tf32 : g->tensor16;
  if (!gpu_has_tensor(g, p)) peak = 2.0 * g->lanes_f32 * g->multiprocessors * g->mhz / 1e6;
  double rate = peak * reached * (p->aligned || !gpu_has_tensor(g, p) ? 1 : 0.25);
  double tiles = ceil(p->m / tile) * ceil(p->n / tile) * p->batch;
  double cuts = fmax(1, fmin(floor(g->multiprocessors / tiles), floor(p->k / part)));
  double busy = fmin(1, tiles * cuts / g->multiprocessors);
  Cost c = {.in_flight = fmin(tiles * cuts, g->multiprocessors) * 128};
  c.l2_bytes = p->bytes;
  c.dram_us = p->bytes / (g->dram * 1e3);
  c.tensor_us = flops / (rate * busy * 1e6);
  c.latency_us = (2 * g->latency_dram + ceil(p->k / cuts / step) * g->latency_l2 / 4) * cycle;
  if (cuts > 1) c.latency_us += g->latency_dram * cycle;
  c.roof_us = fmax(c.dram_us, flops / (peak * 1e6));
  choose(&c);
  return c;
}
