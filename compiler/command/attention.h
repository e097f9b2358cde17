/* Attention kernels: the strides of operands, and how the work is divided.
 *
 * Note [attention]
 * The whole matrix of scores is never in memory. A block has a tile of `lanes` queries and walks
 * the keys in steps of `rows`. It computes the scores of one step and uses them before it computes
 * the next ones. Backward also has tiles of keys, which walk the queries. Forward keeps the largest
 * score and the sum of exponentials of each query. When a larger score comes, it rescales its sums
 * (online softmax: Dao et al., FlashAttention, 2022). Backward needs only one number for each
 * query: `sums`, the logarithm of that sum. It recomputes the weights from the scores. The gradient
 * of softmax needs one more number for each query, `off`, the sum of dy y:
 *   weights w = exp(scale q k - sums)   dv = w^T dy   dw = dy v^T
 *   dscores = w (dw - off)              dq = scale dscores k   dk = scale dscores^T q
 * The gradient of the queries is a sum over all keys; the gradients of keys and values are sums
 * over all queries. So one block cannot compute both. On CUDA some blocks of a launch have tiles of
 * keys and the others tiles of queries, and both compute the scores. On the CPU one thread computes
 * all tiles of a head in sequence. There the sums of the queries are in memory, each tile of keys
 * adds to them in turn, and the scores are computed once. All sums are f32. On the CPU the results
 * of backward are f32 too, and a cast rounds them. On CUDA a tile has complete sums and rounds them
 * (`rounded`).
 *
 * Several heads of queries may share one head of keys and values (grouped-query attention). In
 * backward a tile of keys walks the queries of all these heads, one head after the other. So it
 * sums dk and dv over the whole group.
 *
 * Note [tensor cores]
 * From sm_80 on, 16-bit operands are multiplied on tensor cores (templates/attention_tensor.cu,
 * attention_backward_tensor.cu), if heads have at most 128 features. A block has four warps. Each
 * warp computes 16 or 32 rows of the tile and keeps their scores and sums in registers. Scores and
 * their exponentials are f32. Weights and dscores are rounded to 16 bits before they are
 * multiplied, as in FlashAttention. Rows are permuted in shared memory (TENSOR_ROW, TENSOR_COLUMN
 * in tensor_cuda.cuh), so that a lane has four adjacent keys of a query. Dropout then needs one
 * call of Philox for these four. While a step is used, the next one is loaded into registers. */
#pragma once
#include "walk.h"

/* Returns the group's node of result `of`; 0 if the group has no such node. In backward, results 0,
 * 1 and 2 are the gradients of q, k and v. In forward, 0 is the values and 1 the sums. */
Value attention_result(const Graph *g, const Group *p, int64_t of);
bool attention_is_backward(const Node *n);
Value attention_position(const Node *n); /* of query 0 among the keys; 0: it is 0 */

/* Finds the access_through() of an input. Also returns false if elements along the last axis are
 * not adjacent in memory, except for the mask
 * and for the keys of a decoder. */
bool attention_access(const Graph *g, const Node *n, uint32_t input, Access *out);
