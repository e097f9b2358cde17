/* What cuDNN's attention can do, and the bytes that it writes beside its results. */
#pragma once
#include "ampc_plan.h"
#include "toolkit.h"

/* Returns `why`, with the reason why no engine of that cuDNN may compute the attention. NULL: no
 * reason is known; the engines may still refuse it. */
const char *ampc_attention_against(const ampc_attention *a, ampc_cudnn with,
                                   char why[AMPC_WHY_ROOM]);

bool ampc_attention_has_kept(const ampc_attention *a);  /* some weights are dropped, or masked */
int64_t ampc_attention_scores(const ampc_attention *a); /* bytes of the scores; forward none */
int64_t ampc_attention_kept(const ampc_attention *a);   /* of what says which weights are kept */
int64_t ampc_attention_bias(const ampc_attention *a);   /* and of what is added to scores */
/* Of these the sizes [n, heads, l, s], 1 where the mask is the same for all; of the first one all
 * of them where there is dropout. */
void ampc_attention_mask_dims(const ampc_attention *a, int64_t out[4]);
