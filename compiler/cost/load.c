/* Library commands as products: sizes, types, alignment. */
#include "load.h"
#include "runtime/plan/attention.h"
#include "runtime/plan/conv_sizes.h"

/* ---- products ---- */

bool rows_aligned(const Compile *c, ampc_dtype type, int64_t elements)
{
  return elements * ir_dtype_size(c, type) % TENSOR_ALIGNMENT == 0;
}

/* If k is the contiguous axis of an operand, k elements must be a multiple of 16 bytes, or operands
 * have room for more terms. An aligned leading dimension alone does not help. If k is the other
 * axis, an aligned leading dimension suffices: Note [odd sizes] in runtime/cuda/gemm.c. */
static bool rows_whole(const Compile *c, const ampc_gemm *d)
{
  bool sums_rows = !d->trans_a || d->trans_b;
  return !sums_rows || rows_aligned(c, d->a_type, d->k + d->more_k);
}

ProductLoad gemm_load(const Compile *c, const ampc_gemm *d, double bytes)
{
  bool aligned = rows_aligned(c, d->a_type, d->lda) && rows_aligned(c, d->b_type, d->ldb) &&
                 rows_aligned(c, d->c_type, d->ldc) && rows_aligned(c, d->a_type, d->stride_a) &&
                 rows_aligned(c, d->b_type, d->stride_b) && rows_whole(c, d);
  return (ProductLoad){.m = (double)d->m,
                       .n = (double)d->n,
                       .k = (double)d->k,
                       .batch = (double)d->batch,
                       .bytes = bytes,
                       .type = d->a_type,
                       .tf32 = d->tf32,
                       .aligned = aligned};
}

double load_flops(const ProductLoad *p)
{
  return 2 * p->m * p->n * p->k * p->batch;
}

const char *tensor_against(const Gpu *g, const ProductLoad *p)
{
  if (!gpu_has_tensor(g, p))
    return p->type == AMPC_F32 && !p->tf32 ? "tensor cores do not compute f32"
                                           : "this GPU has no tensor cores for the type";
  return p->aligned ? NULL : "rows are no multiple of 16 bytes";
}

/* ---- convolutions ---- */

ProductLoad conv_load(const Compile *c, const ampc_conv *d, double bytes)
{
  double pixels = (double)(d->n * conv_out_pixels(d)), k = (double)(d->k / d->groups);
  double depth = (double)(d->c / d->groups * conv_taps(d));
  ampc_dtype type = d->kind == AMPC_CONV_FORWARD ? d->w_type : d->y_type;
  ProductLoad p = {.batch = (double)d->groups, .bytes = bytes, .type = type, .tf32 = d->tf32};
  p.kind = d->kind == AMPC_CONV_WEIGHT ? LOAD_weight_gradient : LOAD_convolution;
  p.aligned = rows_aligned(c, type, d->c / d->groups) && rows_aligned(c, type, d->k / d->groups);
  p.m = d->kind == AMPC_CONV_WEIGHT ? k : pixels;
  p.n = d->kind == AMPC_CONV_FORWARD ? k : depth;
  p.k = d->kind == AMPC_CONV_WEIGHT ? pixels : d->kind == AMPC_CONV_DATA ? k : depth;
  return p;
}

const char *conv_against(const Compile *c, const ampc_conv *d)
{
  bool half = d->x_type != AMPC_F32;
  if (d->kind != AMPC_CONV_WEIGHT || !half) return NULL;
  if (d->groups > 1) return "own kernels: cuDNN has no engine for groups in 16 bits";
  if (rows_aligned(c, d->x_type, d->c) && rows_aligned(c, d->y_type, d->k)) return NULL;
  return "own kernels: cuDNN has no engine for odd channels in 16 bits";
}

/* ---- attention ---- */

/* Attention computes two products over the scores in forward and five in backward. Causal attention
 * computes half of the scores. ampc's kernel computes the scores of backward twice. The library
 * writes the scores to memory and reads them again. */
bool tile_load(Compile *c, uint32_t group, double bytes, TileLoad *out)
{
  char known[AMPC_WHY_ROOM];
  const Command *command = command_of(c->graph, group);
  const ampc_attention *a = command->attention, *asked = command->library;
  if (!a) return false;
  const double once = (double)(a->d + a->e), l = (double)a->l;
  const double s = (double)a->s * (a->causal ? 0.5 : 1), heads = (double)(a->n * a->heads);
  const double k = a->backward ? once + 2 * (double)a->d + (double)a->e : once;
  *out = (TileLoad){.load = {l, s, k, heads, bytes, a->type, .aligned = true},
                    .again = a->backward ? 7.0 / 5 : 1,
                    .draws = a->p > 0 ? l * s * heads : 0,
                    .tensor = command->whole.tiles->tensor,
                    .by = "own kernels: no library computes this kind of attention",
                    .nodes = 1};
  if (!asked) return true;
  if (ampc_attention_against(asked, (ampc_cudnn){0, target_capability(c)}, known)) {
    out->by = arena_printf(c->arena, "own kernels: %s", known);
    return true;
  }
  out->library = true;
  out->by = "attention by cuDNN";
  out->nodes += a->p > 0;
  out->load.bytes += 2 * (double)(ampc_attention_scores(asked) + ampc_attention_kept(asked));
  return true;
}

bool load_is_spared(Compile *c, uint32_t group)
{
  TileLoad next;
  return command_of(c->graph, group)->deferred && tile_load(c, group + 1, 0, &next) && next.library;
}

/* Returns the part of the peak that attention reaches. Where mma.sync reaches the peak, it is that
 * of flash attention on an A100: 50 to 73 % (Dao, FlashAttention-2, 2023). cuDNN 9.14 reached 26 %
 * in forward and 19 % in backward on an H200, with heads of 64 and 1,024 keys
 * (bench/results/gpu-2026-11-26-2.md). */
static double attention_rate(const Gpu *g, const TileLoad *t)
{
  if (g->mma == 1) return 0.6;
  return t->again > 1 ? 0.19 : 0.26;
}

/* Dropout first generates its mask, with `draw` instructions for each score: fitted to the same
 * measurements. */
Cost tile_cost(const Gpu *g, const TileLoad *t)
{
  const double draw = 75;
  ProductLoad slow = t->load;
  slow.kind = LOAD_attention;
  slow.k /= attention_rate(g, t);
  Cost out = gpu_product_cost(g, &slow);
  out.roof_us = gpu_product_cost(g, &t->load).roof_us;
  if (t->draws == 0) return out;
  double draws = t->draws * draw / ((double)g->lanes_int * g->multiprocessors * g->mhz);
  if (draws > out.us) out.bound = BOUND_issue;
  out.us += draws;
  out.issue_us = draws;
  return out;
}
