/* What cuDNN's attention can compute, and the bytes that it needs in addition to its results. */
#pragma once
#include "ampc_plan.h"
#include "toolkit.h"

/* Returns `why`, filled with the reason why this version of cuDNN must not compute the attention.
 * NULL: no reason is known; its engines may still refuse. */
const char *ampc_attention_against(const ampc_attention *a, ampc_cudnn with,
                                   char why[AMPC_WHY_ROOM]);

bool ampc_attention_has_kept(const ampc_attention *a);  /* some weights are dropped or masked */
int64_t ampc_attention_scores(const ampc_attention *a); /* bytes of the scores; forward: 0 */
int64_t ampc_attention_kept(const ampc_attention *a);   /* of the factors that keep or drop
                                                           weights */
int64_t ampc_attention_bias(const ampc_attention *a);   /* of the bias that is added to scores */
/* The sizes [n, heads, l, s] of both arrays; 1 along axes where the mask is the same. With dropout
 * the first array has all sizes. */
void ampc_attention_mask_dims(const ampc_attention *a, int64_t out[4]);
