/* Suite: random graphs of images, many of whose axes have size 1, with their gradients. Where an
 * axis has size 1, several layouts store the same bytes, and pass layout has the most choices.
 *
 * Each graph is built twice. The first is left as it is: pass layout stores the values that
 * convolutions, pools and channel norms compute channels last. The second is `plain`: every step's
 * result is flattened and negated twice, so that every node, in backward too, gets its inputs in
 * the order of the language. Both must have the same values and gradients. They are computed in
 * doubles, so that another order of sums is negligible compared with a mistake. */
#include "graph.h"
#include <math.h>
#include <string.h>

enum { GRAPHS = 8, STEPS = 10, GRAPHS_AT_ONCE = 12, MAX_OUTPUTS = STEPS + 2, MOST_ELEMENTS = 400 };

typedef struct Images {
  Built *b;
  Cursor at;
  Arena *a;
  uint64_t random;
  bool plain;
  VEC(Value) values;
  VEC(Tensor) sources; /* the inputs of the graph */
  VEC(Value) wanted;   /* sources whose gradients are outputs */
  uint32_t first_source, outputs[MAX_OUTPUTS], n_outputs;
} Images;

static uint64_t pick(Images *g, uint64_t n)
{
  return number_random(&g->random) % n;
}

static Value source(Images *g, uint32_t rank, const int64_t *dim)
{
  Tensor t = tensor_like(g->a, AMPC_F32, rank, dim);
  tensor_fill(&t, 'n', &g->random);
  Value v = built_source(g->b, &t);
  vec_push(g->a, &g->sources, t);
  vec_push(g->a, &g->wanted, v);
  return v;
}

/* Returns a copy of the node, because nodes move in memory when others are appended. */
static Node node(Images *g, Value v)
{
  return *ir_node(g->b->c->graph, v);
}

static Value append(Images *g, OpKind op, Value x, const NamedAttr *attrs)
{
  return ir_append(g->b->c, &g->at, op, &x, 1, attrs);
}

static Value negated_flat(Images *g, Value x)
{
  Node n = node(g, x);
  int64_t flat = ir_elements(&n);
  Value v = ir_unary(g->b->c, &g->at, OP_neg, ir_reshape(g->b->c, &g->at, x, &flat, 1));
  return ir_reshape(g->b->c, &g->at, v, n.dim, n.rank);
}

static Value settle(Images *g, Value x)
{
  return g->plain ? negated_flat(g, negated_flat(g, x)) : x;
}

/* Picks a value of the graph. Recent values are picked more often, so that chains grow long. */
static Value pick_value(Images *g)
{
  uint32_t n = g->values.n, back = (uint32_t)pick(g, pick(g, 3) ? (n < 3 ? n : 3) : n);
  return g->values.at[n - 1 - back];
}

/* Picks the size of an axis. Almost half of the axes have one element. */
static int64_t pick_size(Images *g)
{
  static const int64_t sizes[] = {1, 1, 1, 2, 3, 4, 5};
  return sizes[pick(g, sizeof sizes / sizeof *sizes)];
}

/* ---- steps: each returns a new value, or x if the step does not apply ---- */

static Value unary_step(Images *g, Value x)
{
  static const OpKind ops[] = {OP_tanh, OP_sigmoid, OP_sin, OP_neg, OP_silu};
  return ir_unary(g->b->c, &g->at, ops[pick(g, sizeof ops / sizeof *ops)], x);
}

static bool broadcast(const Node *a, const Node *b)
{
  for (uint32_t i = 0; i < a->rank && i < b->rank; i++) {
    int64_t x = a->dim[a->rank - 1 - i], y = b->dim[b->rank - 1 - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

/* Combines x with a value that broadcasts, or with a new operand of fewer axes, some of size 1. */
static Value binary_step(Images *g, Value x)
{
  static const OpKind ops[] = {OP_add, OP_sub, OP_mul, OP_maximum};
  OpKind op = ops[pick(g, sizeof ops / sizeof *ops)];
  Node n = node(g, x);
  Value y = pick_value(g);
  Node m = node(g, y);
  if (pick(g, 2) || !broadcast(&n, &m)) {
    uint32_t rank = n.rank ? 1 + (uint32_t)pick(g, n.rank) : 0;
    int64_t dim[MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) dim[i] = pick(g, 3) ? n.dim[n.rank - rank + i] : 1;
    y = source(g, rank, dim);
  }
  return pick(g, 2) ? ir_binary(g->b->c, &g->at, op, x, y) : ir_binary(g->b->c, &g->at, op, y, x);
}

static Value reduce_step(Images *g, Value x)
{
  static const OpKind ops[] = {OP_sum, OP_mean, OP_amax};
  uint32_t rank = node(g, x).rank;
  OpKind op = ops[pick(g, sizeof ops / sizeof *ops)];
  uint64_t mask = rank ? 1 + pick(g, (1ull << rank) - 1) : 0;
  return ir_reduce(g->b->c, &g->at, op, x, mask, pick(g, 2));
}

/* Applies an op to rows along any axis. An op with one result per row drops or keeps the axis. */
static Value row_step(Images *g, Value x)
{
  static const OpKind ops[] = {OP_softmax, OP_log_softmax, OP_logsumexp, OP_row_var, OP_argmax};
  Node n = node(g, x);
  if (!n.rank) return x;
  NamedAttr dim = {"dim", {.i = (int64_t)pick(g, n.rank)}};
  NamedAttr keepdim = {"keepdim", {.i = (int64_t)pick(g, 2)}};
  OpKind op = ops[pick(g, sizeof ops / sizeof *ops)];
  if (op == OP_row_var)
    return append(g, op, x, (const NamedAttr[]){dim, {"correction", {.f = 0}}, {0}});
  bool drops = op == OP_logsumexp || op == OP_argmax;
  x = append(g, op, x, (const NamedAttr[]){dim, drops ? keepdim : (NamedAttr){0}, {0}});
  return ir_cast(g->b->c, &g->at, x, AMPC_F32);
}

/* Selects each element from two values by a condition. */
static Value choice_step(Images *g, Value x)
{
  Compile *c = g->b->c;
  Node n = node(g, x), m;
  Value y = pick_value(g), zero = ir_number(c, &g->at, 0);
  m = node(g, y);
  if (!broadcast(&n, &m)) y = zero;
  Value condition = ir_binary(c, &g->at, OP_lt, x, y);
  return ir_append(c, &g->at, OP_where, (Value[]){condition, y, x}, 3, NULL);
}

/* Applies a linear layer; the last axis is its features. */
static Value linear_step(Images *g, Value x)
{
  Node n = node(g, x);
  if (!n.rank) return x;
  int64_t out = pick_size(g);
  Value w = source(g, 2, (int64_t[]){out, n.dim[n.rank - 1]}), bias = source(g, 1, &out);
  x = ir_append(g->b->c, &g->at, OP_linear, (Value[]){x, w, bias}, 3, NULL);
  return ir_unary(g->b->c, &g->at, OP_tanh, x);
}

/* Normalizes x over all but the leading axes, as group norm does. */
static Value group_step(Images *g, Value x)
{
  Compile *c = g->b->c;
  Node n = node(g, x);
  if (n.rank < 3) return x;
  int64_t rows[] = {n.dim[0] * n.dim[1], ir_elements(&n) / (n.dim[0] * n.dim[1])};
  bool split = pick(g, 2);
  int64_t groups[] = {n.dim[0], n.dim[1], rows[1]};
  x = ir_reshape(c, &g->at, x, split ? groups : rows, split ? 3 : 2);
  Value in[3] = {x, {0}, {0}};
  x = ir_append(c, &g->at, OP_layer_norm, in, 3, ATTRS({"dim", {.i = split ? 2 : 1}}));
  return ir_reshape(c, &g->at, x, n.dim, n.rank);
}

static Value move_step(Images *g, Value x)
{
  Node n = node(g, x);
  uint32_t axes[MAX_RANK];
  if (!n.rank) return x;
  int64_t axis = (int64_t)pick(g, n.rank), start = (int64_t)pick(g, (uint64_t)n.dim[axis]);
  const NamedAttr *dim = ATTRS({"dim", {.i = axis}});
  switch (pick(g, 6)) {
  case 0:
    return append(g, OP_transpose, x,
                  ATTRS({"dim0", {.i = axis}}, {"dim1", {.i = (int64_t)pick(g, n.rank)}}));
  case 1:
    return append(
        g, OP_slice, x,
        ATTRS({"dim", {.i = axis}}, {"start", {.i = start}}, {"stop", {.i = n.dim[axis]}}));
  case 2:
    return append(g, OP_pad, x,
                  ATTRS({"dim", {.i = axis}}, {"before", {.i = 1}}, {"after", {.i = 0}}));
  case 3:
    return append(g, OP_flip_axis, x, dim);
  case 4:
    return ir_append(g->b->c, &g->at, OP_cat, (Value[]){x, x}, 2, dim);
  default:
    for (uint32_t i = 0; i < n.rank; i++) axes[i] = i;
    for (uint32_t i = n.rank; i > 1; i--) {
      uint32_t k = (uint32_t)pick(g, i), last = axes[i - 1];
      axes[i - 1] = axes[k];
      axes[k] = last;
    }
    return append(g, OP_permute, x, ir_axis_attrs(g->b->c, axes, n.rank));
  }
}

/* Inserts an axis of size 1, removes one, or merges two neighbouring axes. */
static Value view_step(Images *g, Value x)
{
  Node n = node(g, x);
  int64_t dim[MAX_RANK + 1];
  uint32_t rank = 0, at = (uint32_t)pick(g, n.rank + 1u);
  bool joins = pick(g, 2);
  for (uint32_t i = 0; i < n.rank; i++) {
    if (i == at && !joins) dim[rank++] = 1;
    bool gone = joins && i == at && (n.dim[i] == 1 || rank > 0);
    if (gone && rank > 0)
      dim[rank - 1] *= n.dim[i];
    else if (!gone)
      dim[rank++] = n.dim[i];
  }
  if (at == n.rank && !joins) dim[rank++] = 1;
  return rank > 5 ? x : ir_reshape(g->b->c, &g->at, x, dim, rank);
}

/* Expands axes of size 1; sometimes adds an axis. */
static Value expand_step(Images *g, Value x)
{
  Node n = node(g, x);
  int64_t dim[MAX_RANK + 1];
  uint32_t more = n.rank < 4 ? (uint32_t)pick(g, 2) : 0;
  for (uint32_t i = 0; i < more; i++) dim[i] = pick_size(g);
  for (uint32_t i = 0; i < n.rank; i++)
    dim[more + i] = n.dim[i] == 1 && pick(g, 2) ? pick_size(g) : n.dim[i];
  return ir_expand(g->b->c, &g->at, x, dim, more + n.rank);
}

/* Reshapes x to images with four axes. */
static Value as_images(Images *g, Value x)
{
  Node n = node(g, x);
  int64_t dim[4] = {1, 1, 1, 1};
  if (n.rank == 4) return x;
  for (uint32_t i = 0; i < n.rank; i++) dim[i < 4 ? i : 3] *= n.dim[i];
  return ir_reshape(g->b->c, &g->at, x, dim, 4);
}

static Value conv_step(Images *g, Value x)
{
  x = as_images(g, x);
  int64_t kernel = pick(g, 2) ? 3 : 1, out = pick_size(g);
  Value w = source(g, 4, (int64_t[]){out, node(g, x).dim[1], kernel, kernel});
  Value bias = pick(g, 2) ? source(g, 1, &out) : (Value){0};
  x = ir_append(g->b->c, &g->at, OP_conv2d, (Value[]){x, w, bias}, 3,
                ATTRS({"pad0", {.i = kernel / 2}}, {"pad1", {.i = kernel / 2}}));
  return ir_unary(g->b->c, &g->at, OP_tanh, x); /* tanh, because sums of products grow */
}

static Value pool_step(Images *g, Value x)
{
  x = as_images(g, x);
  Node n = node(g, x);
  int64_t h = 1 + (int64_t)pick(g, (uint64_t)n.dim[2]),
          w = 1 + (int64_t)pick(g, (uint64_t)n.dim[3]);
  switch (pick(g, 4)) {
  case 0:
    return append(g, OP_max_pool2d, x,
                  ATTRS({"kernel0", {.i = h}}, {"kernel1", {.i = w}}, {"stride0", {.i = 1}},
                        {"stride1", {.i = w}}));
  case 1:
    return append(g, OP_avg_pool2d, x,
                  ATTRS({"kernel0", {.i = h}}, {"kernel1", {.i = w}}, {"stride0", {.i = h}},
                        {"stride1", {.i = w}}));
  case 2:
    return append(g, OP_adaptive_avg_pool2d, x, ATTRS({"oh", {.i = h}}, {"ow", {.i = w}}));
  default:
    return append(g, OP_interpolate_nearest, x, ATTRS({"scale0", {.i = 1}}, {"scale1", {.i = 2}}));
  }
}

/* Applies batch norm, as the layer library writes it. */
static Value norm_step(Images *g, Value x)
{
  Compile *c = g->b->c;
  Node n = node(g, x);
  if (n.rank < 2) return x;
  int64_t rows = ir_elements(&n) / n.dim[1];
  const NamedAttr *channel = ATTRS({"channel", {.i = 1}});
  const NamedAttr *all = ATTRS({"rows", {.i = rows}});
  Value means = append(g, OP_channel_means, x, channel);
  Value squares = append(g, OP_channel_squares, x, channel);
  Value mean = append(g, OP_channel_mean, means, all);
  Value var = ir_append(c, &g->at, OP_channel_var, (Value[]){means, squares}, 2, all);
  Value rstd =
      ir_unary(c, &g->at, OP_rsqrt, ir_binary(c, &g->at, OP_add, var, ir_number(c, &g->at, 0.5)));
  Value weight = source(g, 1, &n.dim[1]), bias = source(g, 1, &n.dim[1]);
  return ir_append(c, &g->at, OP_batch_norm, (Value[]){x, mean, rstd, weight, bias}, 5, channel);
}

static void add_step(Images *g)
{
  static Value (*const steps[])(Images *, Value) = {
      unary_step,  binary_step, binary_step, choice_step, linear_step, reduce_step, reduce_step,
      row_step,    row_step,    group_step,  move_step,   move_step,   view_step,   view_step,
      expand_step, conv_step,   conv_step,   pool_step,   norm_step};
  Value x = pick_value(g), y = steps[pick(g, sizeof steps / sizeof *steps)](g, x);
  Node n = node(g, y);
  if (ir_elements(&n) > MOST_ELEMENTS) y = ir_reduce(g->b->c, &g->at, OP_mean, y, 1, true);
  y = settle(g, y);
  vec_push(g->a, &g->values, y);
}

/* ---- a graph ---- */

static void add_output(Images *g, Value v)
{
  if (v.id && g->n_outputs < MAX_OUTPUTS) g->outputs[g->n_outputs++] = built_output(g->b, v);
}

/* Returns the loss: the sum of the mean squares of the last three values. */
static Value loss_of(Images *g)
{
  Compile *c = g->b->c;
  Value loss = {0};
  for (uint32_t i = 0; i < 3; i++) {
    Value v = g->values.at[g->values.n - 1 - i];
    Value square = ir_binary(c, &g->at, OP_mul, v, v);
    Value mean = ir_reduce(c, &g->at, OP_mean, square, (1ull << node(g, v).rank) - 1, false);
    loss = loss.id ? ir_binary(c, &g->at, OP_add, loss, mean) : mean;
  }
  return loss;
}

/* Builds the random graph of this seed; with `plain`, its second version (head of the file). */
static void build(Images *g, Built *b, Arena *a, uint64_t seed, bool plain)
{
  *g = (Images){.b = b, .at = built_cursor(false), .a = a, .random = seed, .plain = plain};
  g->first_source = b->c->graph->sources.n;
  int64_t dim[4] = {pick_size(g), pick_size(g), pick_size(g), pick_size(g)};
  vec_push(a, &g->values, settle(g, source(g, 4, dim)));
  vec_push(a, &g->values, settle(g, conv_step(g, g->values.at[0])));
  for (int i = 0; i < STEPS; i++) add_step(g);
  Value loss = loss_of(g), one = ir_number(b->c, &g->at, 1);
  const Value *dx = gradient_of(b->c, &g->at, loss, one, g->wanted.at, g->wanted.n);
  for (uint32_t i = 3; i < g->values.n; i += 3) add_output(g, g->values.at[i]);
  for (uint32_t i = 0; i < g->wanted.n; i++) add_output(g, dx[i]);
}

static ampc_status write_sources(const Images *g)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < g->sources.n && !status; i++)
    status = built_write(g->b, g->first_source + i, &g->sources.at[i]);
  return status;
}

/* Returns the largest difference. Sums may have another order, which later steps amplify; in
 * doubles the difference stays far below the bound. */
static double difference(const Tensor *x, const Tensor *y)
{
  enum { ULPS = 16 };
  double largest = 1e-3, worst = 0;
  if (x->rank != y->rank || memcmp(x->dim, y->dim, x->rank * sizeof *x->dim) != 0) return INFINITY;
  for (int64_t i = 0; i < x->n; i++) largest = fmax(largest, fabs(x->at[i]));
  for (int64_t i = 0; i < x->n; i++) {
    double error = fabs(x->at[i] - y->at[i]) / (ULPS * number_ulp(AMPC_F32, largest));
    worst = number_worse(worst, error);
  }
  return worst;
}

static ampc_status compare(Arena *a, TestRun *run, uint64_t seed, const Images *laid,
                           const Images *plain)
{
  for (uint32_t i = 0; i < laid->n_outputs; i++) {
    Tensor got, want;
    ampc_status status = built_read(laid->b, a, laid->outputs[i], &got);
    if (!status) status = built_read(plain->b, a, plain->outputs[i], &want);
    if (status) return status;
    test_report(run, OP_permute, PROOF_forward, AMPC_F32, difference(&want, &got),
                arena_printf(a, "random images, seed %llu, output %u: differs from the plain graph",
                             (unsigned long long)seed, i));
  }
  return AMPC_OK;
}

/* Runs several graphs in one compile, because the C compiler takes seconds for each program. */
static ampc_status run_graphs(Arena *a, TestRun *run, uint64_t seed, uint32_t n)
{
  Built b;
  Images g[2][GRAPHS_AT_ONCE];
  built_open(&b, run, true, 2);
  for (uint32_t i = 0; i < n; i++)
    for (int side = 0; side < 2; side++) build(&g[side][i], &b, a, seed + i, side);
  ampc_status status = built_load(&b);
  for (uint32_t i = 0; i < 2 * n && !status; i++) status = write_sources(&g[i % 2][i / 2]);
  if (!status) status = built_step(&b);
  for (uint32_t i = 0; i < n && !status; i++)
    status = compare(a, run, seed + i, &g[0][i], &g[1][i]);
  built_close(&b);
  return status;
}

ampc_status suite_layout_random(Arena *a, TestRun *run)
{
  if (!test_wanted(run, OP_permute) || run->edit) return AMPC_OK;
  ampc_status status = AMPC_OK;
  uint64_t end = run->seed + (run->graphs ? run->graphs : GRAPHS);
  for (uint64_t seed = run->seed; seed < end && !status; seed += GRAPHS_AT_ONCE) {
    uint64_t left = end - seed;
    status = run_graphs(a, run, seed, left < GRAPHS_AT_ONCE ? (uint32_t)left : GRAPHS_AT_ONCE);
  }
  return status;
}
