/* Attention as cuDNN's graph: cudnn_attention.c. */
#pragma once
#include "cudnn_graph.h"

/* What speaks against all of its engines; NULL: nothing, or only they know. */
const char *dnn_against_attention(const ampc_attention *a);

/* `a` with so few images, or so few heads of one image, that what backward writes beside its
 * results is no more than `limit` bytes: all of `a` is calls of that, one after the other. */
ampc_attention dnn_attention_part(const ampc_attention *a, int64_t limit);

DnnProblem dnn_attention_problem(const ampc_attention *a);

/* The numbers that a call is given: they must live until it has been made. */
typedef struct DnnAttentionNumbers {
  float scale, one, lowest;
} DnnAttentionNumbers;
/* `off`: room for as many f32 as there are sums, of backward alone. */
DnnOperands dnn_attention_operands(const DnnApi *api, const ampc_attention *a,
                                   const ampc_attention_places *at, void *off,
                                   DnnAttentionNumbers *numbers);
