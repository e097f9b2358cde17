/* Suite: pass layout changes where elements are stored, and no values. Each function is applied
 * twice: to images as the job writes them, [n, c, h, w], and to the same images after a
 * convolution, whose result is stored channels last. That convolution changes no value: its weight
 * is the identity, with a 1 for each channel. */
#include "graph.h"
#include <math.h>

enum { RANK = 4, CHANNELS = 3, MOST_PAIRS = 160 };

typedef struct Layouts {
  Built b;
  Cursor at;
  Value x, laid, small[RANK], labels, rows; /* laid: x, stored channels last; small: operands of 1
                                             * to 4 axes that broadcast to x */
  uint32_t pair[MOST_PAIRS][2], n;          /* pair: outputs computed from x and from `laid` */
  const char *name[MOST_PAIRS];
  Arena *a;
} Layouts;

/* Builds the value E from each of the two images. */
#define BOTH(l, text, X, E)                                                                        \
  do {                                                                                             \
    Value made_[2];                                                                                \
    for (int side_ = 0; side_ < 2; side_++) {                                                      \
      const Value X = side_ ? (l)->laid : (l)->x;                                                  \
      made_[side_] = E;                                                                            \
    }                                                                                              \
    keep(l, text, made_);                                                                          \
  } while (0)

/* Makes both values outputs, so that they can be compared after the run. */
static void keep(Layouts *l, const char *text, const Value *made)
{
  if (l->n == MOST_PAIRS) return; /* check_pairs reports it */
  l->name[l->n] = text;
  for (int i = 0; i < 2; i++) l->pair[l->n][i] = built_output(&l->b, made[i]);
  l->n++;
}

static Value op(Layouts *l, OpKind kind, Value x, const NamedAttr *attrs)
{
  return ir_append(l->b.c, &l->at, kind, &x, 1, attrs);
}

static Value op2(Layouts *l, OpKind kind, Value x, Value y, const NamedAttr *attrs)
{
  return ir_append(l->b.c, &l->at, kind, (Value[]){x, y}, 2, attrs);
}

/* Adds elementwise ops. Operands not stored channels last must be read in the other order. */
static void add_elementwise(Layouts *l)
{
  BOTH(l, "tanh", x, op(l, OP_tanh, x, NULL));
  BOTH(l, "x + x", x, op2(l, OP_add, x, l->x, NULL));
  for (int i = 0; i < RANK; i++) {
    const char *text = arena_printf(l->a, "x - operand of %d axes", i + 1);
    BOTH(l, text, x, op2(l, OP_sub, x, l->small[i], NULL));
    BOTH(l, text, x, op2(l, OP_sub, l->small[i], x, NULL));
  }
  for (int axis = 0; axis < RANK; axis++) { /* operands of size 1 along all axes but one */
    const char *text = arena_printf(l->a, "x - sums over all axes but %d", axis);
    uint64_t others = 15u & ~(1u << axis);
    BOTH(l, text, x, op2(l, OP_sub, x, ir_reduce(l->b.c, &l->at, OP_sum, x, others, true), NULL));
  }
}

/* Adds reductions over every set of axes. Without keepdim, the remaining axes get other numbers. */
static void add_reductions(Layouts *l)
{
  Compile *c = l->b.c;
  for (uint64_t mask = 1; mask < 16; mask++) {
    const char *text = arena_printf(l->a, "reductions over axes of mask %u", (unsigned)mask);
    BOTH(l, text, x, ir_reduce(c, &l->at, OP_sum, x, mask, false));
    BOTH(l, text, x, ir_reduce(c, &l->at, OP_amax, x, mask, true));
  }
}

/* Adds row ops along each axis. Rows of channels are contiguous only in a channels-last image. */
static void add_rows(Layouts *l)
{
  for (int axis = 0; axis < RANK; axis++) {
    const NamedAttr *dim = ATTRS({"dim", {.i = axis}});
    const NamedAttr *keepdim = ATTRS({"dim", {.i = axis}}, {"keepdim", {.i = true}});
    const char *text = arena_printf(l->a, "rows along axis %d", axis);
    BOTH(l, text, x, op(l, OP_softmax, x, dim));
    BOTH(l, text, x, op(l, OP_log_softmax, x, dim));
    BOTH(l, text, x, op(l, OP_argmax, x, dim));
    BOTH(l, text, x, op(l, OP_argmin, x, keepdim));
    BOTH(l, text, x, op(l, OP_logsumexp, x, dim));
    BOTH(l, text, x, op2(l, OP_softmax_backward, x, l->x, dim));
    BOTH(l, text, x, op2(l, OP_softmax_backward, l->x, x, dim));
  }
  const NamedAttr *loss = ATTRS({"dim", {.i = 1}}, {"label_smoothing", {.f = 0.125}});
  const NamedAttr *last = ATTRS({"dim", {.i = 3}});
  BOTH(l, "cross entropy", x, op2(l, OP_cross_entropy_rows, x, l->labels, loss));
  BOTH(l, "its gradient", x,
       ir_append(l->b.c, &l->at, OP_cross_entropy_backward, (Value[]){x, l->labels, l->rows}, 3,
                 loss));
  BOTH(l, "layer norm", x,
       ir_append(l->b.c, &l->at, OP_layer_norm, (Value[]){x, l->small[0], {0}}, 3, last));
  BOTH(l, "plain layer norm", x,
       ir_append(l->b.c, &l->at, OP_layer_norm, (Value[]){x, {0}, {0}}, 3, last));
}

/* Adds moves. An axis that a move names has another number once the image is channels last. */
static void add_moves(Layouts *l)
{
  for (int axis = 0; axis < RANK; axis++) {
    const NamedAttr *dim = ATTRS({"dim", {.i = axis}});
    const NamedAttr *cut = ATTRS({"dim", {.i = axis}}, {"start", {.i = 1}}, {"stop", {.i = 2}});
    const NamedAttr *uncut =
        ATTRS({"dim", {.i = axis}}, {"start", {.i = 1}}, {"step", {.i = 2}}, {"size", {.i = 20}});
    const NamedAttr *pad = ATTRS({"dim", {.i = axis}}, {"before", {.i = 2}}, {"after", {.i = 1}},
                                 {"value", {.f = -1}});
    const char *text = arena_printf(l->a, "moves along axis %d", axis);
    BOTH(l, text, x, op(l, OP_slice, x, cut));
    BOTH(l, text, x, op(l, OP_slice_backward, x, uncut));
    BOTH(l, text, x, op(l, OP_pad, x, pad));
    BOTH(l, text, x, op2(l, OP_cat, x, l->x, dim));
    BOTH(l, text, x, op(l, OP_flip_axis, x, dim));
    for (int other = axis + 1; other < RANK; other++) {
      const NamedAttr *two = ATTRS({"dim0", {.i = axis}}, {"dim1", {.i = other}});
      BOTH(l, text, x, op(l, OP_tanh, op(l, OP_transpose, x, two), NULL));
    }
  }
  static const uint32_t orders[][RANK] = {
      {0, 2, 3, 1}, {0, 3, 1, 2}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 0, 1, 3}};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    const NamedAttr *axes = ir_axis_attrs(l->b.c, orders[i], RANK);
    BOTH(l, arena_printf(l->a, "permute %u", (unsigned)i), x, op(l, OP_permute, x, axes));
  }
}

/* Adds reshapes. A reshape is defined in the order [n, c, h, w]: a channels-last image must be
 * transposed first. */
static void add_views(Layouts *l)
{
  Compile *c = l->b.c;
  Node n = *ir_node(c->graph, l->x);
  const int64_t *d = n.dim;
  const NamedAttr *swap = ATTRS({"dim0", {.i = 1}}, {"dim1", {.i = 2}});
  int64_t flat[] = {d[0], d[1] * d[2] * d[3]}, pixels[] = {d[0], d[1], d[2] * d[3]};
  int64_t split[] = {d[0], d[1], d[2], 1, d[3]}, turned[] = {d[0], d[1], d[3], d[2]};
  int64_t wide[] = {2, d[0], d[1], d[2], d[3]};
  BOTH(l, "flatten", x, ir_reshape(c, &l->at, x, flat, 2));
  BOTH(l, "flat pixels", x, op(l, OP_tanh, ir_reshape(c, &l->at, x, pixels, 3), NULL));
  BOTH(l, "tokens", x, op(l, OP_transpose, ir_reshape(c, &l->at, x, pixels, 3), swap));
  BOTH(l, "five axes", x, op(l, OP_tanh, ir_reshape(c, &l->at, x, split, 5), NULL));
  BOTH(l, "pixels regrouped", x, ir_reshape(c, &l->at, x, turned, 4));
  BOTH(l, "expand", x, op(l, OP_tanh, ir_expand(c, &l->at, x, wide, 5), NULL));
  BOTH(l, "stretched means", x,
       ir_expand(c, &l->at, ir_reduce(c, &l->at, OP_mean, x, 12, true), d, 4));
  BOTH(l, "condition", x,
       ir_append(c, &l->at, OP_where, (Value[]){op2(l, OP_gt, x, l->x, NULL), x, l->small[1]}, 3,
                 NULL));
}

/* ---- the run ---- */

static void fill(Layouts *l, Tensor *t, const int64_t *dim, uint32_t rank, DType type, char how)
{
  uint64_t random = 77 + rank;
  *t = tensor_like(l->a, type, rank, dim);
  tensor_fill(t, how, &random);
  if (how == 'k') { /* labels */
    for (int64_t i = 0; i < t->n; i++) t->at[i] = (double)(i % CHANNELS);
  }
}

enum { N_SOURCES = RANK + 4 };

/* Adds the images as written, and the same images after a convolution, which pass layout stores
 * channels last. */
static void add_sources(Layouts *l, Tensor *t)
{
  static const int64_t dim[] = {2, CHANNELS, 4, 5}, w[] = {CHANNELS, CHANNELS, 1, 1},
                       row[] = {2, 4, 5};
  fill(l, &t[0], dim, RANK, AMPC_F32, 'n');
  fill(l, &t[1], w, RANK, AMPC_F32, 'n');
  for (int i = 0; i < CHANNELS * CHANNELS; i++) t[1].at[i] = i % (CHANNELS + 1) == 0;
  fill(l, &t[2], row, 3, AMPC_I64, 'k');
  fill(l, &t[3], row, 3, AMPC_F32, 'd');
  for (int i = 0; i < RANK; i++)
    fill(l, &t[4 + i], dim + RANK - 1 - i, (uint32_t)i + 1, AMPC_F32, 'n');
  l->x = built_source(&l->b, &t[0]);
  Value weight = built_source(&l->b, &t[1]);
  l->labels = built_source(&l->b, &t[2]);
  l->rows = built_source(&l->b, &t[3]);
  for (int i = 0; i < RANK; i++) l->small[i] = built_source(&l->b, &t[4 + i]);
  l->laid = ir_append(l->b.c, &l->at, OP_conv2d, (Value[]){l->x, weight, {0}}, 3, NULL);
}

/* Checks that both results of each pair have the shape and the element order of the language. */
static ampc_status check_pairs(Layouts *l, TestRun *run)
{
  test_check(run, OP_permute, AMPC_F32, l->n < MOST_PAIRS, "all pairs fit into MOST_PAIRS");
  for (uint32_t i = 0; i < l->n; i++) {
    Tensor got, want;
    ampc_status status = built_read(&l->b, l->a, l->pair[i][0], &want);
    if (!status) status = built_read(&l->b, l->a, l->pair[i][1], &got);
    if (status) return status;
    double worst = got.n == want.n && got.rank == want.rank ? 0 : INFINITY;
    for (int64_t k = 0; k < want.n && worst < INFINITY; k++) /* the order of sums may differ */
      worst = number_worse(worst, fabs(got.at[k] - want.at[k]) /
                                      (16 * number_ulp(AMPC_F32, fabs(want.at[k]) + 4)));
    test_report(
        run, OP_permute, PROOF_forward, AMPC_F32, worst,
        arena_printf(l->a, "%s: the results as written and channels last differ", l->name[i]));
  }
  return AMPC_OK;
}

ampc_status suite_layout(Arena *a, TestRun *run)
{
  if (!test_wanted(run, OP_permute) || run->edit) return AMPC_OK;
  Layouts l = {.at = built_cursor(false), .a = a};
  Tensor source[N_SOURCES];
  built_open(&l.b, run, false, 2);
  add_sources(&l, source);
  add_elementwise(&l);
  add_reductions(&l);
  add_rows(&l);
  add_moves(&l);
  add_views(&l);
  ampc_status status = built_load(&l.b);
  for (uint32_t i = 0; !status && i < N_SOURCES; i++) status = built_write(&l.b, i, &source[i]);
  if (!status) status = built_step(&l.b);
  if (!status) status = check_pairs(&l, run);
  built_close(&l.b);
  return status;
}
