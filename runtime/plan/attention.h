/* What cuDNN's attention can compute, and the bytes that it needs in addition to its results. */
#pragma once
#include "ampc_plan.h"
#include "toolkit.h"

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
/* Returns the bytes of the factors that keep or drop weights. */
int64_t ampc_attention_kept(const ampc_attention *a);
int64_t ampc_attention_bias(const ampc_attention *a); /* bytes of the bias of scores */
/* Writes the sizes of the bias: those of [n, heads, l, s], but 1 along axes on which the mask does
 * not depend. The factors have these sizes, too; with dropout, all four. */
void ampc_attention_mask_dims(const ampc_attention *a, int64_t out[4]);
