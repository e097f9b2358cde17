/* What cuDNN's attention can compute, and the bytes that it needs in addition to its results. */
#pragma once
#include "ampc_plan.h"
#include "types.h"

/* A version of cuDNN (91501 for 9.15.1) and the GPU's capability (90 for sm_90); 0: unknown. */
typedef struct ampc_cudnn {
  int version, capability;
} ampc_cudnn;

/* True if AMPC_ATTENTION_F32 is set: own kernels multiply in f32, not on tensor cores. For
 * comparisons, and for the mock of NVIDIA's libraries, whose blocks have one thread. */
bool ampc_attention_in_f32(void);

/* Fails if the environment variable AMPC_ATTENTION has an unknown value. It chooses who computes
 * attention with dropout or a mask. A plan does not depend on it: the device decides for each
 * launch. */
ampc_status ampc_attention_check(void);
/* Whether own kernels compute this attention if AMPC_ATTENTION is not set, wherever cuDNN could. */
bool ampc_attention_is_own(const ampc_attention *a);

/* Returns `why`, filled with the reason why this version of cuDNN must not compute the attention.
 * Returns NULL if no such reason is known; cuDNN's engines may still refuse. */
const char *ampc_attention_against(const ampc_attention *a, ampc_cudnn with,
                                   char why[AMPC_WHY_ROOM]);

/* Whether cuDNN of this version needs the numbers of queries and of keys of each sequence, as i32.
 */
bool ampc_attention_has_lengths(const ampc_attention *a, int version);
/* Returns the bytes of each of the two tensors; 0 if no version needs them. */
int64_t ampc_attention_lengths(const ampc_attention *a);
bool ampc_attention_has_kept(const ampc_attention *a);  /* some weights are dropped or masked */
int64_t ampc_attention_scores(const ampc_attention *a); /* bytes of the scores; forward: 0 */
/* Returns the type of the factors that keep or drop weights. f32: they include dropout's 1 / (1 -
 * p); otherwise they are 1 or 0. */
ampc_dtype ampc_attention_kept_type(const ampc_attention *a);
int64_t ampc_attention_kept(const ampc_attention *a); /* bytes of these factors */
int64_t ampc_attention_bias(const ampc_attention *a); /* bytes of the bias of scores */
/* Writes the sizes of the bias: those of [n, heads, l, s], but 1 along axes on which the mask does
 * not depend. The factors have these sizes, too; with dropout, all four. */
void ampc_attention_mask_dims(const ampc_attention *a, int64_t out[4]);
