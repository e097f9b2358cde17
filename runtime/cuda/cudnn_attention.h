/* Attention as cuDNN's graph: cudnn_attention.c. */
#pragma once
#include "cudnn_graph.h"
#include "runtime/plan/attention.h"

/* What backward may write of the scores: a layer of GPT-2 at a batch of 16 needs 384 MiB; and what
 * an engine asks for beside that. */
enum { DNN_SCORES_LIMIT = 512 * 1024 * 1024, DNN_ENGINE_ROOM = 1024 * 1024 };

/* `a` with so few images, or so few heads of one image, that what is written beside the results,
 * the mask of dropout and what backward writes of the scores, is no more than `limit` bytes: all of
 * `a` is calls of that, one after the other. */
ampc_attention dnn_attention_part(const ampc_attention *a, int64_t limit);

DnnProblem dnn_attention_problem(const ampc_attention *a);

/* Where operands of a call lie; `kept` and `bias` are made of the
 * mask and dropout, where there are any; `dy` and the
 * gradients are backward's. Forward `sums` may be NULL, where nobody wants them. */
typedef struct DnnAttentionPlaces {
  const void *q, *k, *v;
  void *y, *sums;
  const void *dy;
  void *dq, *dk, *dv;
  const void *kept, *bias;
} DnnAttentionPlaces;
/* The numbers that a call is given: they must live until it has been made. */
typedef struct DnnAttentionNumbers {
  float scale, share, lowest, kept; /* share: of the weights that dropout keeps */
} DnnAttentionNumbers;
/* `off`: room for as many f32 as there are sums, of backward alone. */
DnnOperands dnn_attention_operands(const DnnApi *api, const ampc_attention *a,
                                   const DnnAttentionPlaces *at, void *off,
                                   DnnAttentionNumbers *numbers);
