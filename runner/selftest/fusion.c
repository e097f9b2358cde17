/* Suite: fusion never changes a bit. Random graphs of elementwise ops, rows, moves and products in
 * mixed types, some of whose values are results, compiled with -O0, -O1 and -O2. */
#include "graph.h"
#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 6, STEPS = 60, ROWS = 33, COLUMNS = 7, MAX_OUTPUTS = STEPS };

typedef struct RandomGraph {
  Built *b;
  Cursor at;
  uint64_t random;
  VEC(Value) values; /* all of [ROWS, COLUMNS] */
  Value row, column; /* [COLUMNS], [ROWS, 1] */
  uint32_t outputs[MAX_OUTPUTS], n_outputs;
  OpKind op[MAX_OUTPUTS]; /* that made the output */
} RandomGraph;

static uint64_t pick(RandomGraph *g, uint64_t n)
{
  return number_random(&g->random) % n;
}

static Value pick_value(RandomGraph *g)
{
  /* mostly young ones, so that chains grow long */
  uint32_t n = g->values.n, back = (uint32_t)pick(g, pick(g, 3) ? (n < 4 ? n : 4) : n);
  return g->values.at[n - 1 - back];
}

static Value unary_step(RandomGraph *g, Value x)
{
  static const OpKind ops[] = {OP_relu, OP_tanh,  OP_sigmoid, OP_neg,      OP_abs,
                               OP_sin,  OP_floor, OP_silu,    OP_gelu_erf, OP_exp};
  return ir_unary(g->b->c, &g->at, ops[pick(g, sizeof ops / sizeof *ops)], x);
}

static Value binary_step(RandomGraph *g, Value x)
{
  static const OpKind ops[] = {OP_add, OP_sub, OP_mul, OP_maximum, OP_minimum, OP_squared_error};
  Value other[] = {pick_value(g), g->row, g->column, ir_number(g->b->c, &g->at, 0.75)};
  return ir_binary(g->b->c, &g->at, ops[pick(g, sizeof ops / sizeof *ops)], x, other[pick(g, 4)]);
}

/* Rounds on the way: fused kernels must round there too. */
static Value cast_step(RandomGraph *g, Value x)
{
  static const DType types[] = {AMPC_F32, AMPC_F16, AMPC_BF16};
  return ir_cast(g->b->c, &g->at, x, types[pick(g, 3)]);
}

static Value choice_step(RandomGraph *g, Value x)
{
  Value y = pick_value(g), condition = ir_binary(g->b->c, &g->at, OP_lt, x, y);
  return ir_append(g->b->c, &g->at, OP_where, (Value[]){condition, y, x}, 3, NULL);
}

/* Rows of one axis or the other; what a reduction gives is broadcast back at once. */
static Value row_step(RandomGraph *g, Value x)
{
  Compile *c = g->b->c;
  const NamedAttr *axis = ATTRS({"dim", {.i = (int64_t)pick(g, 2)}});
  uint64_t mask = 1 + pick(g, 2); /* of the rows' axis or of the columns' */
  Value in[3] = {x, g->row, {0}}, s;
  switch (pick(g, 4)) {
  case 0:
    return ir_append(c, &g->at, OP_softmax, &x, 1, axis);
  case 1:
    return ir_append(c, &g->at, OP_layer_norm, in, 3, ATTRS({"dim", {.i = 1}}));
  case 2:
    s = ir_reduce(c, &g->at, OP_mean, x, mask, true);
    break;
  default:
    s = ir_reduce(c, &g->at, OP_amax, x, mask, true);
    break;
  }
  return ir_binary(c, &g->at, OP_sub, x, s);
}

static Value move_step(RandomGraph *g, Value x)
{
  Compile *c = g->b->c;
  const NamedAttr *swap = ATTRS({"dim0", {.i = 0}}, {"dim1", {.i = 1}});
  const NamedAttr *first = ATTRS({"dim", {.i = 0}}, {"start", {.i = 0}}, {"stop", {.i = 20}});
  const NamedAttr *rest = ATTRS({"dim", {.i = 0}}, {"start", {.i = 20}}, {"stop", {.i = ROWS}});
  int64_t dim[] = {ROWS, COLUMNS};
  if (pick(g, 2)) {
    Value y = ir_append(c, &g->at, OP_transpose, &x, 1, swap);
    return ir_reshape(c, &g->at, y, dim, 2); /* not the way back: other elements meet */
  }
  Value parts[] = {ir_append(c, &g->at, OP_slice, &x, 1, rest),
                   ir_append(c, &g->at, OP_slice, &x, 1, first)};
  return ir_append(c, &g->at, OP_cat, parts, 2, NULL);
}

/* A product of a product, so that the vendor library stands between fused kernels. */
static Value product_step(RandomGraph *g, Value x)
{
  Compile *c = g->b->c;
  Value y = ir_cast(c, &g->at, pick_value(g), ir_node(c->graph, x)->dtype);
  Value square = ir_append(c, &g->at, OP_gemm, (Value[]){x, y}, 2, ATTRS({"trans_a", {.i = true}}));
  return ir_binary(c, &g->at, OP_matmul, x, square);
}

/* The kinds of steps, elementwise ones more often, as in models. One value in four is a result. */
static void add_step(RandomGraph *g)
{
  static Value (*const steps[])(RandomGraph *, Value) = {
      unary_step, unary_step,  unary_step, binary_step, binary_step, binary_step,
      cast_step,  choice_step, row_step,   move_step,   product_step};
  Value x = pick_value(g), y = steps[pick(g, sizeof steps / sizeof *steps)](g, x);
  vec_push(g->b->c->arena, &g->values, y);
  if (pick(g, 4)) return;
  g->op[g->n_outputs] = ir_node(g->b->c->graph, y)->op;
  g->outputs[g->n_outputs++] = built_output(g->b, y);
}

static Value add_source(RandomGraph *g, Arena *a, DType type, uint32_t rank, const int64_t *dim,
                        Tensor *t)
{
  *t = tensor_like(a, type, rank, dim);
  tensor_fill(t, 'n', &g->random);
  return built_source(g->b, t);
}

enum { N_SOURCES = 5 };
/* The same seed makes the same graph for every -O. */
static ampc_status run_graph(Arena *a, const TestRun *run, uint64_t seed, int optimize,
                             RandomGraph *g, Tensor *out)
{
  Built b;
  Tensor in[N_SOURCES];
  int64_t full[] = {ROWS, COLUMNS}, row[] = {COLUMNS}, column[] = {ROWS, 1};
  built_open(&b, run, false, optimize);
  *g = (RandomGraph){.b = &b, .at = built_cursor(false), .random = seed};
  for (int i = 0; i < 3; i++)
    vec_push(b.c->arena, &g->values, add_source(g, a, (DType)i, 2, full, &in[i]));
  g->row = add_source(g, a, AMPC_F32, 1, row, &in[3]);
  g->column = add_source(g, a, AMPC_F16, 2, column, &in[4]);
  for (int i = 0; i < STEPS; i++) add_step(g);
  ampc_status status = built_load(&b);
  for (uint32_t i = 0; !status && i < N_SOURCES; i++) status = built_write(&b, i, &in[i]);
  if (!status) status = built_step(&b);
  for (uint32_t i = 0; !status && i < g->n_outputs; i++)
    status = built_read(&b, a, g->outputs[i], &out[i]);
  built_close(&b);
  return status;
}

/* Each output by itself, so that a failure names the op that made it. */
static ampc_status compare_graph(Arena *a, TestRun *run, uint64_t seed)
{
  RandomGraph g;
  Tensor plain[MAX_OUTPUTS], fused[MAX_OUTPUTS];
  ampc_status status = run_graph(a, run, seed, 0, &g, plain);
  for (int optimize = 1; !status && optimize <= 2; optimize++) {
    status = run_graph(a, run, seed, optimize, &g, fused);
    for (uint32_t i = 0; !status && i < g.n_outputs; i++) {
      const char *text = arena_printf(a, "random graph %llu, output %u: -O0 and -O%d differ",
                                      (unsigned long long)seed, i, optimize);
      test_check(run, g.op[i], plain[i].dtype, tensor_same_bits(&plain[i], &fused[i]), text);
    }
  }
  return status;
}

ampc_status suite_fusion(Arena *a, TestRun *run)
{
  ampc_status status = AMPC_OK;
  if (run->filter || run->edit) return AMPC_OK; /* about no op in particular */
  uint64_t end = run->seed + (run->graphs ? run->graphs : GRAPHS);
  for (uint64_t seed = run->seed; !status && seed < end; seed++)
    status = compare_graph(a, run, seed);
  return status;
}
