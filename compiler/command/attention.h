/* Attention as kernels: how operands lie, how the work is cut.
 *
 * Note [attention]
 * No matrix of scores is ever in memory. A block has a tile of `lanes` queries (backward: of keys)
 * and walks the keys (the queries) in steps of `rows`: it makes the scores of that step, and what
 * they are good for, before the next one. Forward keeps the greatest score and the sum of
 * exponentials of each query, and rescales what it has summed when a greater one comes (online
 * softmax: Dao et al., FlashAttention, 2022). What backward needs of them is one number a query,
 * the logarithm of that sum: weights are made again from scores, and the gradient of softmax needs
 * `off`, the sum of dy y of a query, and nothing else of its row:
 *   weights w = exp(scale q k - sums)   dv = w^T dy   dw = dy v^T
 *   dscores = w (dw - off)              dq = scale dscores k   dk = scale dscores^T q
 * The gradient of the queries is a sum over all keys, those of keys and values are sums over all
 * queries: no block can have both. On CUDA some blocks of a launch have tiles of keys, the others
 * tiles of queries, and both make the scores. On the CPU one thread has all tiles of a head one
 * after the other, so the sums of the queries lie in memory, each tile of keys adds to them in its
 * turn, and the scores are made once. Sums are f32; so are there the results of backward, which a
 * cast rounds, while on CUDA a tile has them whole and rounds them (`rounded`). */
#pragma once
#include "walk.h"

/* The nodes of the group that give a result: the gradients of q, k and v, which `of` tells; forward
 * the values, 0, and the sums, 1. 0: the group has no such node. */
Value attention_result(const Graph *g, const Group *p, int64_t of);
bool attention_is_backward(const Node *n);

/* What a group of attention computes, whoever does: sizes, type, scale and dropout, without
 * arguments. False: it is none. */
bool attention_problem(Compile *c, uint32_t group, ampc_attention *out);

/* access_through of an input. False as well: of a tensor that is not the mask, neighbours along the
 * last axis lie apart. */
bool attention_access(const Graph *g, const Node *n, uint32_t input, Access *out);
