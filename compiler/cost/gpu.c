/* GPUs by name, and matrix products on them: Note [products]. */
#include "gpu.h"
#include <ctype.h>
#include <math.h>
#include <string.h>
#include "runtime/plan/types.h"

static const Gpu gpus[] = {
#define GPU(name, model, arch, ...) {#name, model, #arch, __VA_ARGS__, NULL},
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

/* Whether the device's name has the GPU's as whole words: "RTX 4090" has rtx4090, "GH200" lacks
 * h200. */
static bool is_named(const char *device, const char *gpu)
{
  for (const char *from = device; *from; from++) {
    const char *at = from, *wanted = gpu;
    if (from > device && isalnum((unsigned char)from[-1])) continue;
    for (; *at && *wanted; at++) {
      if (tolower((unsigned char)*at) == *wanted)
        wanted++;
      else if (*at != ' ')
        break;
    }
    if (!*wanted && !isalnum((unsigned char)*at)) return true;
  }
  return false;
}

const Gpu *gpu_of_device(const char *device)
{
  for (int i = 0; i < GPUS && !strcasestr(device, "laptop"); i++)
    if (is_named(device, gpus[i].name)) return &gpus[i];
  return NULL;
}

const char *gpu_names(Arena *arena)
{
  Text t = text_new(arena);
  for (int i = 0; i < GPUS; i++) text_printf(&t, "%s%s", i ? ", " : "", gpus[i].name);
  return t.at;
}

void cost_choose(Cost *c)
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

/* ---- products ---- */

bool gpu_has_tensor(const Gpu *g, const ProductLoad *p)
{
  int needed = ampc_type_of(p->type)->capability;
  bool narrow = ampc_is_narrow(p->type) && ampc_target_capability(g->arch) >= needed;
  return narrow || (p->type == AMPC_F32 && p->tf32 && g->tensor_tf32 > 0);
}

double gpu_peak(const Gpu *g, const ProductLoad *p)
{
  if (p && gpu_has_tensor(g, p)) return p->type == AMPC_F32 ? g->tensor_tf32 : g->tensor16;
  return 2.0 * g->lanes_f32 * g->multiprocessors * g->mhz / 1e6;
}

/* Note [products]
 * A multiprocessor computes a tile of the result of 64 x 64 or more. If there are fewer tiles than
 * multiprocessors, k is cut into parts of at least 256. The latency is at least two loads from DRAM
 * and one load from L2 for each 128 elements of k: loads are issued ahead, so four steps of 32 wait
 * once.
 *
 * A product reaches a fraction of each peak, `tensor` and `dram`. `start` is the time in which a
 * kernel begins and ends. `lead` models the first and last steps of a tile as so many further
 * elements of k. All four are fitted to measurements on an H200 with cuBLASLt 13.1 and cuDNN 9.14
 * (bench/results/gpu-2026-11-26-2.md). Products on tensor cores that are not `aligned`
 * (ProductLoad) run at 0.15 of this rate. */
typedef struct Reached { /* tensor, dram: fractions of the peaks; start: us */
  double tensor, dram, lead, start;
} Reached;

static const Reached reached_by[] = {[LOAD_product] = {0.83, 1, 196, 2.5},
                                     [LOAD_convolution] = {0.67, 0.8, 0, 4.5},
                                     [LOAD_weight_gradient] = {0.45, 0.5, 0, 4.5},
                                     [LOAD_attention] = {1, 1, 0, 2.5}};

Cost gpu_product_cost(const Gpu *g, const ProductLoad *p)
{
  const double tile = 64, step = 32, part = 256, unaligned = 0.15;
  const Reached reached = reached_by[p->kind];
  double cycle = 1.0 / g->mhz, flops = 2 * p->m * p->n * p->k * p->batch;
  double peak = gpu_peak(g, p);
  double rate = peak * reached.tensor * (p->aligned || !gpu_has_tensor(g, p) ? 1 : unaligned);
  double tiles = ceil(p->m / tile) * ceil(p->n / tile) * p->batch;
  double cuts = fmax(1, fmin(floor(g->multiprocessors / tiles), floor(p->k / part)));
  double busy = fmin(1, tiles * cuts / g->multiprocessors);
  Cost c = {.in_flight = fmin(tiles * cuts, g->multiprocessors) * 128};
  c.l2_bytes = p->bytes;
  c.dram_us = reached.start + p->bytes / (reached.dram * g->dram * 1e3);
  c.tensor_us = reached.start + flops * (1 + reached.lead / p->k) / (rate * busy * 1e6);
  c.latency_us = (2 * g->latency_dram + ceil(p->k / cuts / step) * g->latency_l2 / 4) * cycle;
  if (cuts > 1) c.latency_us += g->latency_dram * cycle;
  c.roof_us = fmax(p->bytes / (g->dram * 1e3), flops / (peak * 1e6));
  cost_choose(&c);
  return c;
}
