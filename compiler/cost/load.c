/* From the commands of libraries to products: sizes, types, alignment. */
#include "load.h"
#include "compiler/command/attention.h"
#include "runtime/plan/attention_sizes.h"
#include "runtime/plan/conv_sizes.h"

/* ---- products ---- */

bool rows_aligned(const Compile *c, ampc_dtype type, int64_t elements)
{
  return elements * ir_dtype_size(c, type) % TENSOR_ALIGNMENT == 0;
}

ProductLoad gemm_load(const Compile *c, const ampc_gemm *d, double bytes)
{
  bool aligned = rows_aligned(c, d->a_type, d->lda) && rows_aligned(c, d->b_type, d->ldb) &&
                 rows_aligned(c, d->c_type, d->ldc) && rows_aligned(c, d->a_type, d->stride_a) &&
                 rows_aligned(c, d->b_type, d->stride_b);
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
    return p->type == AMPC_F32 && !p->tf32 ? "f32 is not for tensor cores"
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

bool attention_by_library(Compile *c, uint32_t group, ampc_attention *out)
{
  char why[AMPC_WHY_ROOM];
  return attention_for_library(c, group, out) &&
         !ampc_attention_against(out, (ampc_cudnn){0, target_capability(c)}, why);
}

ProductLoad attention_load(const ampc_attention *a, double bytes)
{
  const double once = (double)(a->d + a->e);
  return (ProductLoad){.m = (double)a->l,
                       .n = (double)a->s * (a->causal ? 0.5 : 1),
                       .k = a->backward ? once + 2 * (double)a->d + (double)a->e : once,
                       .batch = (double)(a->n * a->heads),
                       .bytes = bytes,
                       .type = a->type,
                       .aligned = true};
}

/* Forward two products over the scores, backward five, of half the scores where it is causal; and
 * what backward writes of the scores, which it reads again. Of the rate of a product comes out at
 * best about 0.6: flash attention is given as 50 to 73 % of a GPU's peak (Dao, FlashAttention-2,
 * 2023, on an A100), a product here as 80 %. Dropout draws its mask before that: so many
 * instructions a score. */
AttentionCost attention_cost(const Gpu *g, const ampc_attention *a, double bytes)
{
  const double reached = 0.6, draw = 110;
  const double scores = (double)(ampc_attention_scores(a) + ampc_attention_kept(a));
  AttentionCost out = {.nodes = a->p > 0 ? 2 : 1, .load = attention_load(a, bytes + 2 * scores)};
  ProductLoad slow = out.load;
  slow.k /= reached;
  out.cost = gpu_product_cost(g, &slow);
  out.cost.roof_us = gpu_product_cost(g, &out.load).roof_us;
  if (a->p == 0) return out;
  double draws = out.load.m * out.load.n * out.load.batch * draw /
                 ((double)g->lanes_int * g->multiprocessors * g->mhz);
  if (draws > out.cost.us) out.cost.bound = BOUND_issue;
  out.cost.us += draws;
  out.cost.issue_us = draws;
  return out;
}
