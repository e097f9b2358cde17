/* Attention, and the gradients of its operands, as cuDNN's graph of operations.
 *
 * Note [attention by cuDNN]
 * cuDNN's engines recognize one graph of forward and one of backward by their operations. They
 * compute each as one kernel that keeps no scores in memory (flash attention, like our own:
 * Note [attention] in compiler/command/attention.h). Values between operations are f32, except
 * operands of a product: the weights and the gradient of the scores are rounded to the type of the
 * operands.
 *   forward    scores = scale q k^T, masked;  most = max scores;  e = exp(scores - most)
 *              sum = sum of e;  sums = most + log sum;  y = (e / sum) v
 *   backward   off = sum of dy y;  w = exp(scale q k^T - sums), masked;  dv = w^T dy
 *              dscores = scale w (dy v^T - off);  dk = dscores^T q;  dq = dscores k
 * With dropout, the weights are multiplied by its mask and divided by 1 - p before the product. The
 * mask is a tensor of ones and zeros in the type of the operands. A mask of the job becomes two
 * tensors: very low numbers that are added to the scores, and a factor like that of dropout. With
 * the factor, a query that attends to no key has result 0 and adds nothing to gradients. Causal:
 * two indices are compared, and scores of keys after the query become the lowest number. `sums` is
 * always requested: without it the graph differs, and cuDNN 9.19 does not recognize it. Operations
 * without effect, like the factor 1 of `off`, must not be omitted. Some versions read keys beyond
 * the last one in backward, unless the graph has a padding mask (ampc_attention_has_lengths): two
 * tensors with the numbers of queries and of keys of each sequence, with which indices are
 * compared. All sequences have the same numbers here; the mask only prevents these reads.
 *
 * dq is written in the type of q. For dq in f32, the engine lets blocks of keys add to it in an
 * order that changes from run to run. For 16 bits, it writes dscores to memory, 2 bytes per score,
 * and sums dq from there, with the same bits each time. The price is this memory, so
 * dnn_attention_part divides the problem.
 *
 * Note [graphs of backward]
 * cuDNN 9.14 and 9.19 computed wrong gradients with dropout or a mask on an H200
 * (bench/results/gpu-2026-11-27-2.md). The graph was that of NVIDIA's front end:
 *   dscores = scale w (kept (dy v^T) - (1 - p) off) / (1 - p)
 * It is legal, but NVIDIA tests it only with dropout of cuDNN's own. Two causes fit what was seen.
 * The engine drops the factor 1 - p of `off`: the plan does not contain this number. And it reads a
 * mask wrongly whose axis of queries has size 1: its code then differs from that for full rows.
 * Until a GPU confirms one of two other graphs, own kernels compute these gradients, and
 * AMPC_ATTENTION chooses a graph for measuring. In both, no factor belongs to `off`, and a mask has
 * as many queries as the scores, with stride 0 if they share a row.
 *   r1r2   dscores = scale w (kept / (1 - p) (dy v^T) - off)
 *   r2b    the same, but `kept` is f32 and includes 1 / (1 - p), so no operation divides */
#include "cudnn_attention.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

/* Numbers of the tensors. OFF is in memory between two operations of backward. Tensors from
 * FIRST_NOWHERE on are not in memory. */
enum {
  Q = 1,
  K,
  V,
  Y,
  SUMS,
  DY,
  OFF,
  DQ,
  DK,
  DV,
  SCALE,
  ONE,
  LOWEST,
  KEPT,
  KEPT_SCALE,
  BIAS,
  QUERIES,
  KEYS,
  FIRST_NOWHERE
};
enum { MOST_OPERATIONS = 34 };

typedef struct Build {
  DnnObjects *o;
  const ampc_attention *a;
  DnnDescriptor operations[MOST_OPERATIONS], kept;
  int64_t n, next;               /* n: operations; next: number of the next tensor without memory */
  DnnSizes scores, turned, rows; /* [n, heads, l, s]; [n, heads, s, l]; one number per query */
} Build;

/* ---- tensors ---- */

static DnnSizes sizes(int64_t n, int64_t heads, int64_t rows, int64_t columns)
{
  return (DnnSizes){
      4, {n, heads, rows, columns}, {heads * rows * columns, rows * columns, columns, 1}};
}

/* Returns an operand's sizes [n, rows, heads, columns]; `stride`: of sequences, rows and heads. */
static DnnSizes lying(const ampc_attention *a, int64_t rows, int64_t columns, const int64_t *stride)
{
  return (DnnSizes){4, {a->n, a->heads, rows, columns}, {stride[0], stride[2], stride[1], 1}};
}

static DnnSizes swapped(DnnSizes s)
{
  int64_t dim = s.dim[2], stride = s.stride[2];
  s.dim[2] = s.dim[3], s.stride[2] = s.stride[3];
  s.dim[3] = dim, s.stride[3] = stride;
  return s;
}

static DnnDescriptor in_memory(Build *b, int64_t number, ampc_dtype type, DnnSizes s)
{
  return dnn_tensor(b->o, number, dnn_type_of(type), &s, DNN_IN_MEMORY);
}

static DnnDescriptor between(Build *b, int32_t type, const DnnSizes *s)
{
  return dnn_tensor(b->o, b->next++, type, s, DNN_NOWHERE);
}

static DnnDescriptor number(Build *b, int64_t which)
{
  DnnSizes one = sizes(1, 1, 1, 1);
  return dnn_tensor(b->o, which, CUDNN_DATA_FLOAT, &one, DNN_NUMBER);
}

static DnnSizes mask_sizes(const ampc_attention *a)
{
  int64_t dim[4];
  ampc_attention_mask_dims(a, dim);
  DnnSizes s = sizes(dim[0], dim[1], dim[2], dim[3]);
  if (a->backward && dim[2] == 1) s.dim[2] = a->l, s.stride[2] = 0;
  return s;
}

/* ---- operations ---- */

static DnnDescriptor add(Build *b, DnnDescriptor operation)
{
  return b->operations[b->n++] = operation;
}

/* Add an elementwise operation: point() writes `out`; pointed() returns a tensor without memory. */
static void point(Build *b, int32_t mode, DnnDescriptor x, DnnDescriptor y, DnnDescriptor out)
{
  DnnPointwise p = {.mode = mode, .type = CUDNN_DATA_FLOAT, .x = x, .b = y, .y = out};
  add(b, dnn_pointwise(b->o, &p));
}

static DnnDescriptor pointed(Build *b, int32_t mode, DnnDescriptor x, DnnDescriptor y,
                             const DnnSizes *s)
{
  DnnDescriptor out = between(b, CUDNN_DATA_FLOAT, s);
  point(b, mode, x, y, out);
  return out;
}

typedef struct Operand { /* an operand of an operation, and its attribute */
  DnnAttribute attribute;
  DnnDescriptor descriptor;
} Operand;

/* Adds an operation of this kind; `what` is for messages. */
static void operate(Build *b, DnnKind kind, const char *what, uint32_t n, const Operand *operands)
{
  DnnDescriptor d = dnn_make(b->o, kind, what);
  for (uint32_t i = 0; i < n; i++)
    dnn_set_descriptor(b->o, d, operands[i].attribute, operands[i].descriptor);
  dnn_finalize(b->o, d);
  add(b, d);
}

static void multiply(Build *b, DnnDescriptor x, DnnDescriptor y, DnnDescriptor out)
{
  DnnDescriptor how = dnn_make(b->o, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "product");
  dnn_set_number(b->o, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  dnn_finalize(b->o, how);
  operate(b, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "product", 4,
          (Operand[]){{CUDNN_ATTR_OPERATION_MATMUL_ADESC, x},
                      {CUDNN_ATTR_OPERATION_MATMUL_BDESC, y},
                      {CUDNN_ATTR_OPERATION_MATMUL_CDESC, out},
                      {CUDNN_ATTR_OPERATION_MATMUL_DESC, how}});
}

/* Reduces the last axis to one number per query. */
static DnnDescriptor reduced(Build *b, int32_t operator, DnnDescriptor x)
{
  DnnDescriptor out = between(b, CUDNN_DATA_FLOAT, &b->rows);
  DnnDescriptor how = dnn_make(b->o, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
  dnn_set_number(b->o, how, CUDNN_ATTR_REDUCTION_OPERATOR,
                 CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, operator);
  dnn_set_number(b->o, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  dnn_finalize(b->o, how);
  operate(b, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction", 3,
          (Operand[]){{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x},
                      {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, out},
                      {CUDNN_ATTR_OPERATION_REDUCTION_DESC, how}});
  return out;
}

/* Returns x with its last two axes swapped, in the type of a product's operands. */
static DnnDescriptor reshaped(Build *b, DnnDescriptor x, const DnnSizes *s)
{
  DnnDescriptor out = between(b, dnn_type_of(b->a->type), s);
  operate(b, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape", 2,
          (Operand[]){{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x},
                      {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, out}});
  return out;
}

/* ---- the mask ---- */

/* Returns the index of each score's query (axis 2) or key (axis 3). */
static DnnDescriptor index_of(Build *b, DnnDescriptor scores, int64_t axis)
{
  DnnPointwise p = {.mode = CUDNN_POINTWISE_GEN_INDEX,
                    .type = CUDNN_DATA_FLOAT,
                    .axis = axis,
                    .x = scores,
                    .y = between(b, CUDNN_DATA_INT32, &b->scores)};
  add(b, dnn_pointwise(b->o, &p));
  return p.y;
}

static DnnDescriptor compared(Build *b, int32_t mode, DnnDescriptor x, DnnDescriptor y)
{
  DnnPointwise p = {.mode = mode, .type = CUDNN_DATA_BOOLEAN, .x = x, .b = y};
  p.y = between(b, CUDNN_DATA_BOOLEAN, &b->scores);
  add(b, dnn_pointwise(b->o, &p));
  return p.y;
}

/* Returns the scores, where `seen` is false the lowest number. */
static DnnDescriptor selected(Build *b, DnnDescriptor scores, DnnDescriptor seen)
{
  DnnPointwise p = {.mode = CUDNN_POINTWISE_BINARY_SELECT,
                    .type = CUDNN_DATA_FLOAT,
                    .x = scores,
                    .b = number(b, LOWEST),
                    .t = seen,
                    .y = between(b, CUDNN_DATA_FLOAT, &b->scores)};
  add(b, dnn_pointwise(b->o, &p));
  return p.y;
}

static DnnDescriptor masked(Build *b, DnnDescriptor scores)
{
  if (!b->a->causal) return scores;
  DnnDescriptor query = index_of(b, scores, 2), key = index_of(b, scores, 3);
  return selected(b, scores, compared(b, CUDNN_POINTWISE_CMP_GE, query, key));
}

/* Returns whether each score's index along the axis is below the length of its sequence. */
static DnnDescriptor within(Build *b, DnnDescriptor scores, int64_t axis, int64_t length)
{
  DnnSizes each = {4, {b->a->n, 1, 1, 1}, {1, 1, 1, 1}};
  DnnDescriptor index = index_of(b, scores, axis);
  DnnDescriptor lengths = dnn_tensor(b->o, length, CUDNN_DATA_INT32, &each, DNN_IN_MEMORY);
  return compared(b, CUDNN_POINTWISE_CMP_LT, index, lengths);
}

static DnnDescriptor cut_to_lengths(Build *b, DnnDescriptor scores)
{
  if (!ampc_attention_has_lengths(b->a, (int)b->o->api->cudnnGetVersion())) return scores;
  DnnDescriptor query = within(b, scores, 2, QUERIES), key = within(b, scores, 3, KEYS);
  return selected(b, scores, compared(b, CUDNN_POINTWISE_LOGICAL_AND, query, key));
}

/* ---- the graphs ---- */

static DnnDescriptor scaled_scores(Build *b, DnnDescriptor q, DnnDescriptor k)
{
  DnnDescriptor scores = between(b, CUDNN_DATA_FLOAT, &b->scores);
  multiply(b, q, k, scores);
  scores = pointed(b, CUDNN_POINTWISE_MUL, scores, number(b, SCALE), &b->scores);
  if (!b->a->mask.argument) return scores;
  DnnDescriptor bias = in_memory(b, BIAS, AMPC_F32, mask_sizes(b->a));
  return pointed(b, CUDNN_POINTWISE_ADD, scores, bias, &b->scores);
}

/* Returns the tensor `sums`. For some of the heads it can begin at any address. */
static DnnDescriptor sums_in_memory(Build *b)
{
  const ampc_attention *a = b->a;
  const int64_t *stride = a->sums.stride;
  DnnSizes s = {4, {a->n, a->heads, a->l, 1}, {stride[0], stride[2], stride[1], 1}};
  return dnn_tensor(b->o, SUMS, CUDNN_DATA_FLOAT, &s, DNN_NUMBERS);
}

/* Multiplies x by the factor of mask and dropout. */
static DnnDescriptor kept(Build *b, DnnDescriptor x)
{
  const ampc_attention *a = b->a;
  DnnSizes s = a->p > 0 ? b->scores : mask_sizes(a);
  if (!b->kept) b->kept = in_memory(b, KEPT, ampc_attention_kept_type(a), s);
  return pointed(b, CUDNN_POINTWISE_MUL, x, b->kept, &b->scores);
}

/* Whether an operation multiplies by 1 / (1 - p): the factors do not include it. */
static bool is_scaled(const ampc_attention *a)
{
  return ampc_attention_has_kept(a) && ampc_attention_kept_type(a) != AMPC_F32;
}

static void forward(Build *b, DnnDescriptor q, DnnDescriptor k)
{
  const ampc_attention *a = b->a;
  DnnDescriptor v = in_memory(b, V, a->type, lying(a, a->s, a->e, a->v.stride));
  DnnDescriptor y = in_memory(b, Y, a->type, lying(a, a->l, a->e, a->y.stride));
  DnnDescriptor sums = sums_in_memory(b);
  DnnDescriptor scores = masked(b, scaled_scores(b, q, k));
  DnnDescriptor most = reduced(b, CUDNN_REDUCE_TENSOR_MAX, scores);
  DnnDescriptor less = pointed(b, CUDNN_POINTWISE_SUB, scores, most, &b->scores);
  DnnDescriptor e = pointed(b, CUDNN_POINTWISE_EXP, less, NULL, &b->scores);
  DnnDescriptor sum = reduced(b, CUDNN_REDUCE_TENSOR_ADD, e);
  point(b, CUDNN_POINTWISE_ADD, most, pointed(b, CUDNN_POINTWISE_LOG, sum, NULL, &b->rows), sums);
  DnnDescriptor weights = between(b, dnn_type_of(a->type), &b->scores);
  if (ampc_attention_has_kept(a))
    point(b, CUDNN_POINTWISE_MUL, kept(b, pointed(b, CUDNN_POINTWISE_DIV, e, sum, &b->scores)),
          number(b, KEPT_SCALE), weights);
  else
    point(b, CUDNN_POINTWISE_DIV, e, sum, weights);
  multiply(b, weights, v, y);
}

static DnnDescriptor sums_of_slopes(Build *b, DnnDescriptor dy)
{
  const ampc_attention *a = b->a;
  DnnSizes lines = sizes(a->n, a->heads, a->l, a->e);
  DnnDescriptor y = in_memory(b, Y, a->type, lying(a, a->l, a->e, a->y.stride));
  DnnDescriptor off = in_memory(b, OFF, AMPC_F32, b->rows);
  DnnDescriptor sum =
      reduced(b, CUDNN_REDUCE_TENSOR_ADD, pointed(b, CUDNN_POINTWISE_MUL, dy, y, &lines));
  point(b, CUDNN_POINTWISE_MUL, sum, number(b, ONE), off);
  return off;
}

static void backward(Build *b, DnnDescriptor q, DnnDescriptor k)
{
  const ampc_attention *a = b->a;
  DnnSizes keys = lying(a, a->s, a->d, a->k.stride);
  DnnDescriptor v = in_memory(b, V, a->type, swapped(lying(a, a->s, a->e, a->v.stride)));
  DnnDescriptor dy = in_memory(b, DY, a->type, lying(a, a->l, a->e, a->dy.stride));
  DnnDescriptor sums = sums_in_memory(b);
  DnnDescriptor dq = in_memory(b, DQ, a->type, lying(a, a->l, a->d, a->dq.stride));
  DnnDescriptor dk = in_memory(b, DK, a->type, lying(a, a->s, a->d, a->dk.stride));
  DnnDescriptor dv = in_memory(b, DV, a->type, lying(a, a->s, a->e, a->dv.stride));
  DnnDescriptor off = sums_of_slopes(b, dy);
  DnnDescriptor scores = cut_to_lengths(b, scaled_scores(b, q, k));
  DnnDescriptor less = pointed(b, CUDNN_POINTWISE_SUB, scores, sums, &b->scores);
  DnnDescriptor weights = pointed(b, CUDNN_POINTWISE_EXP, masked(b, less), NULL, &b->scores);
  DnnDescriptor taken = weights, slope = between(b, CUDNN_DATA_FLOAT, &b->scores);
  if (ampc_attention_has_kept(a)) taken = kept(b, weights);
  if (is_scaled(a))
    taken = pointed(b, CUDNN_POINTWISE_MUL, taken, number(b, KEPT_SCALE), &b->scores);
  multiply(b, reshaped(b, taken, &b->turned), dy, dv);
  multiply(b, dy, v, slope);
  if (ampc_attention_has_kept(a)) slope = kept(b, slope);
  if (a->p > 0 && is_scaled(a))
    slope = pointed(b, CUDNN_POINTWISE_MUL, slope, number(b, KEPT_SCALE), &b->scores);
  slope = pointed(b, CUDNN_POINTWISE_SUB, slope, off, &b->scores);
  slope = pointed(b, CUDNN_POINTWISE_MUL, slope, weights, &b->scores);
  slope = pointed(b, CUDNN_POINTWISE_MUL, slope, number(b, SCALE), &b->scores);
  multiply(b, reshaped(b, slope, &b->turned), q, dk);
  multiply(b, slope, reshaped(b, k, &keys), dq);
}

static DnnDescriptor graph(DnnObjects *o, DnnHandle handle, const void *what, DnnForm form)
{
  const ampc_attention *a = what;
  Build b = {.o = o, .a = a, .next = FIRST_NOWHERE};
  (void)form;
  b.scores = sizes(a->n, a->heads, a->l, a->s);
  b.turned = swapped(b.scores);
  b.rows = sizes(a->n, a->heads, a->l, 1);
  DnnDescriptor q = in_memory(&b, Q, a->type, lying(a, a->l, a->d, a->q.stride));
  DnnDescriptor k = in_memory(&b, K, a->type, swapped(lying(a, a->s, a->d, a->k.stride)));
  if (a->backward)
    backward(&b, q, k);
  else
    forward(&b, q, k);
  return dnn_graph_of(o, handle, b.n, b.operations);
}

/* ---- the problem ---- */

int64_t dnn_scores_limit = (int64_t)512 << 20;

static int64_t bytes_beside(const ampc_attention *a)
{
  return ampc_attention_scores(a) + ampc_attention_kept(a) + ampc_attention_bias(a);
}

static int64_t next_lower_divisor(int64_t n, int64_t of)
{
  do n--;
  while (of % n);
  return n;
}

ampc_attention dnn_attention_part(const ampc_attention *a, int64_t limit)
{
  ampc_attention part = *a;
  while (part.n > 1 && bytes_beside(&part) > limit) part.n = next_lower_divisor(part.n, a->n);
  while (part.heads > 1 && bytes_beside(&part) > limit)
    part.heads = next_lower_divisor(part.heads, a->heads);
  return part;
}

static size_t put_strides(char *out, size_t at, const char *name, const int64_t *stride)
{
  return at + (size_t)snprintf(out + at, DNN_PROBLEM_ROOM - at, " %s %lld %lld %lld", name,
                               (long long)stride[0], (long long)stride[1], (long long)stride[2]);
}

static const char *against(const void *what, ampc_cudnn with, char why[AMPC_WHY_ROOM])
{
  return ampc_attention_against(what, with, why);
}

DnnProblem dnn_attention_problem(const ampc_attention *a)
{
  DnnProblem p = {.what = a, .graph = graph, .against = against, .forms = {[DNN_DIRECT] = true}};
  size_t at = (size_t)snprintf(p.words, sizeof p.words,
                               "attention%s%s%s, %s, of %lld x %lld heads, queries %lld x %lld, "
                               "values %lld x %lld",
                               a->backward ? "'s gradients" : "", a->causal ? ", causal" : "",
                               a->p > 0 ? ", dropout" : "", ampc_dtype_name(a->type),
                               (long long)a->n, (long long)a->heads, (long long)a->l,
                               (long long)a->d, (long long)a->s, (long long)a->e);
  int64_t mask[4];
  ampc_attention_mask_dims(a, mask);
  if (a->mask.argument)
    at += (size_t)snprintf(p.words + at, DNN_PROBLEM_ROOM - at, ", mask %lldx%lldx%lldx%lld",
                           (long long)mask[0], (long long)mask[1], (long long)mask[2],
                           (long long)mask[3]);
  if (a->backward && ampc_attention_has_kept(a)) /* two graphs: Note [graphs of backward] */
    at += (size_t)snprintf(p.words + at, DNN_PROBLEM_ROOM - at, ", factors %s",
                           ampc_dtype_name(ampc_attention_kept_type(a)));
  at += (size_t)snprintf(p.words + at, DNN_PROBLEM_ROOM - at, ", strides");
  at = put_strides(p.words, at, "q", a->q.stride);
  at = put_strides(p.words, at, "k", a->k.stride);
  at = put_strides(p.words, at, "v", a->v.stride);
  at = put_strides(p.words, at, "y", a->y.stride);
  at = put_strides(p.words, at, "sums", a->sums.stride);
  if (!a->backward) return p;
  at = put_strides(p.words, at, "dy", a->dy.stride);
  at = put_strides(p.words, at, "dq", a->dq.stride);
  at = put_strides(p.words, at, "dk", a->dk.stride);
  put_strides(p.words, at, "dv", a->dv.stride);
  return p;
}

DnnOperands dnn_attention_operands(const DnnApi *api, const ampc_attention *a,
                                   const DnnAttentionPlaces *at, void *off,
                                   DnnAttentionNumbers *numbers)
{
  enum { LOWEST_IS_INFINITE = 91000 }; /* cuDNN before 9.10 needs a finite one */
  bool infinite = api->cudnnGetVersion() >= LOWEST_IS_INFINITE;
  DnnOperands o = {.number = {Q, K, V, Y, SUMS, SCALE}, .n = 6};
  *numbers = (DnnAttentionNumbers){(float)a->scale, 1, infinite ? -INFINITY : -FLT_MAX,
                                   (float)(1 / (1 - a->p))};
  const void *places[] = {at->q, at->k, at->v, at->y, at->sums, &numbers->scale};
  for (uint32_t i = 0; i < o.n; i++) o.place[i] = (void *)(uintptr_t)places[i];
  bool lengths = ampc_attention_has_lengths(a, (int)api->cudnnGetVersion());
  if (a->causal || lengths) dnn_add_operand(&o, LOWEST, &numbers->lowest);
  if (lengths) {
    dnn_add_operand(&o, QUERIES, at->queries);
    dnn_add_operand(&o, KEYS, at->keys);
  }
  if (ampc_attention_has_kept(a)) dnn_add_operand(&o, KEPT, at->kept);
  if (is_scaled(a)) dnn_add_operand(&o, KEPT_SCALE, &numbers->kept);
  if (a->mask.argument) dnn_add_operand(&o, BIAS, at->bias);
  if (!a->backward) return o;
  dnn_add_operand(&o, DY, at->dy);
  dnn_add_operand(&o, OFF, off);
  dnn_add_operand(&o, ONE, &numbers->one);
  dnn_add_operand(&o, DQ, at->dq);
  dnn_add_operand(&o, DK, at->dk);
  dnn_add_operand(&o, DV, at->dv);
  return o;
}
