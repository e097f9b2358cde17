/* The bytes that cuDNN's attention writes beside its results. They depend on the problem alone, so
 * costs can be told without cuDNN. See Note [attention by cuDNN] in
 * runtime/cuda/cudnn_attention.c. */
#include "attention_sizes.h"

enum { QUERY_TILE = 64, KEY_TILE = 128, SCORE_BYTES = 2 };

bool ampc_attention_has_kept(const ampc_attention *a)
{
  return a->p > 0 || a->mask.argument;
}

int64_t ampc_attention_scores(const ampc_attention *a)
{
  if (!a->backward) return 0;
  int64_t l = ampc_round_up(a->l, QUERY_TILE), s = ampc_round_up(a->s, KEY_TILE);
  return a->n * a->heads * l * s * SCORE_BYTES;
}

void ampc_attention_mask_dims(const ampc_attention *a, int64_t out[4])
{
  const int64_t all[] = {a->n, a->heads, a->l, a->s};
  for (int i = 0; i < 4; i++) out[i] = a->mask.stride[i] ? all[i] : 1;
}

static int64_t mask_elements(const ampc_attention *a)
{
  int64_t dim[4];
  ampc_attention_mask_dims(a, dim);
  return dim[0] * dim[1] * dim[2] * dim[3];
}

int64_t ampc_attention_kept(const ampc_attention *a)
{
  int64_t n = a->p > 0 ? a->n * a->heads * a->l * a->s : mask_elements(a);
  return ampc_attention_has_kept(a) ? ampc_round_up(n * SCORE_BYTES, AMPC_CUDA_ALIGN) : 0;
}

int64_t ampc_attention_bias(const ampc_attention *a)
{
  if (!a->mask.argument) return 0;
  return ampc_round_up(mask_elements(a) * (int64_t)sizeof(float), AMPC_CUDA_ALIGN);
}
