/* Attention as cuDNN's graph: cudnn_attention.c. */
#pragma once
#include "cudnn_graph.h"
#include "runtime/plan/attention.h"

/* Bytes. SCORES_LIMIT: the limit of the scratch for scores; a layer of GPT-2 at batch 16 needs
 * 384 MiB in backward. ENGINE_ROOM: the workspace that an engine may request in addition. */
enum { DNN_ENGINE_ROOM = 1024 * 1024 };
extern int64_t
    dnn_scores_limit; /* bytes of scores, masks and bias in memory at once; tests lower it */

/* Returns the part of `a` that one call computes: all of it, or fewer sequences, or fewer heads of
 * one sequence. So the call's scratch is at most `limit` bytes: the tensors of mask and dropout,
 * and the scores that backward writes. */
ampc_attention dnn_attention_part(const ampc_attention *a, int64_t limit);

DnnProblem dnn_attention_problem(const ampc_attention *a);

/* The addresses of a call's operands. `kept` and `bias` are computed from the mask and dropout if
 * there are any; `queries` and `keys` hold the lengths of each sequence
 * (ampc_attention_has_lengths). `dy` and the gradients are for backward only. In forward, `sums`
 * may be NULL if they are not needed. */
typedef struct DnnAttentionPlaces {
  const void *q, *k, *v;
  void *y, *sums;
  const void *dy;
  void *dq, *dk, *dv;
  const void *kept, *bias, *queries, *keys;
} DnnAttentionPlaces;
/* Numbers that a call reads by address. They must stay valid until the call returns. */
typedef struct DnnAttentionNumbers {
  float scale, one, lowest, kept; /* kept: 1 / (1 - p), dropout's factor */
} DnnAttentionNumbers;
/* Returns a call's operands. `off`: space for as many f32 as there are sums; for backward. */
DnnOperands dnn_attention_operands(const DnnApi *api, const ampc_attention *a,
                                   const DnnAttentionPlaces *at, void *off,
                                   DnnAttentionNumbers *numbers);
