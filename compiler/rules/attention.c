/* The rules of attention: shapes, gradients (Note [attention] in command/attention.h), tangent.
 *
 * The layer library brings queries, keys and values to four axes and reports shapes that do not
 * fit. Masks are checked here. The op itself never stores the scores, l * s for each head. The
 * gradient of a mask of numbers and the tangent store them: they use whole matrix products. Before
 * training could use a kernel that computes tangents in tiles, that kernel would need a gradient,
 * and the gradient a gradient. */
#include "tangent.h"
#include <assert.h>
#include <math.h>

enum { QUERY, KEY, VALUE, MASK, POSITION };

/* `group` heads of queries share a head of keys and values. For products they are rows of one
 * matrix, so that keys and values need no copies. */
typedef struct Scores {
  int64_t l, s, kv_heads, group;
  int64_t four[4], three[3]; /* four: [n, heads, l, s]; three: [n kv_heads, group l, s] */
} Scores;

static Scores scores_of(Compile *c, const Node *n)
{
  const Node *q = ir_in(c, n, QUERY), *v = ir_in(c, n, VALUE);
  int64_t all = q->dim[0], heads = q->dim[2], l = q->dim[1], s = v->dim[1], kv_heads = v->dim[2];
  int64_t group = heads / kv_heads;
  return (Scores){l, s, kv_heads, group, {all, heads, l, s}, {all * kv_heads, group * l, s}};
}

/* ---- shapes ---- */

static bool mask_fits(Compile *c, const Node *n)
{
  const Node *mask = ir_in(c, n, MASK);
  Scores want = scores_of(c, n);
  bool good = mask->rank == 4 && (mask->dtype == AMPC_BOOL || dtype_is_float(mask->dtype));
  for (uint32_t i = 0; good && i < 4; i++) good = mask->dim[i] == 1 || mask->dim[i] == want.four[i];
  if (good) return true;
  diag_error(c, E311, n->span,
             "a mask of attention is bool or float and broadcasts to the scores [%lld, %lld, "
             "%lld, %lld], got %s",
             (long long)want.four[0], (long long)want.four[1], (long long)want.four[2],
             (long long)want.four[3], ir_type_text(c, mask));
  diag_note(c, mask->span, "the mask gets its shape here");
  return false;
}

bool rule_by_library(Compile *c, const Node *n)
{
  bool half = ir_dtype_size(c, ir_in(c, n, QUERY)->dtype) == 2;
  if (op_of(n)->gradient != grad_none && n->in[POSITION].id) return false;
  bool plain = !n->in[MASK].id || ir_in(c, n, MASK)->dtype == AMPC_BOOL;
  return !is_cpu_target(c) && half && plain && scores_of(c, n).group == 1;
}

/* The result is [n, l, heads, e], or with attribute `sums` [n, l, heads]. */
bool shape_attention(Compile *c, Node *n)
{
  const Node *q = ir_in(c, n, QUERY), *v = ir_in(c, n, VALUE);
  for (uint32_t i = 0; i < 3; i++)
    if (!rule_need_float(c, n, i)) return false;
  for (uint32_t i = 1; i < 3; i++) { /* the width of values may differ */
    const Node *x = ir_in(c, n, i);
    bool blocks = x->rank == 5 && i == KEY && n->in[POSITION].id;
    int64_t keys = blocks ? x->dim[1] * x->dim[4] : x->dim[1];
    bool fits = (x->rank == 4 || blocks) && x->dim[0] == q->dim[0] && q->dim[2] % x->dim[2] == 0 &&
                keys >= v->dim[1] && (blocks || keys == v->dim[1]) && x->dim[2] == v->dim[2] &&
                (i == VALUE || x->dim[3] == q->dim[3]);
    if (!fits || q->rank != 4) op_broken(op_of(n), "operands that do not fit:", ir_type_text(c, x));
  }
  if (n->in[MASK].id && !mask_fits(c, n)) return false;
  bool sums = attr_int(n, "sums");
  n->dtype = sums ? AMPC_F32 : q->dtype;
  return rule_set_dims(c, n, sums ? 3 : 4, (int64_t[]){q->dim[0], q->dim[1], q->dim[2], v->dim[3]});
}

/* The result has the shape of the input whose gradient n is: attribute `of`. */
bool shape_attention_backward(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, (uint32_t)attr_int(n, "of"));
  return rule_like(n, x, attr_int(n, "rounded") ? x->dtype : AMPC_F32);
}

/* ---- scores in memory ---- */

static Value turned(Back *b, Value x)
{
  return ir_append(b->c, &b->at, OP_transpose, &x, 1,
                   ATTRS({"dim0", {.i = 1}}, {"dim1", {.i = 2}}));
}

/* Turns queries or results, x [n, l, heads, d], into [n kv_heads, group l, d]; keys or values, x
 * [n, s, kv_heads, d], into [n kv_heads, s, d]. {0} stays {0}. */
static Value heads_of(Back *b, Value x)
{
  if (!x.id) return x;
  Node n = *ir_node(b->c->graph, x);
  int64_t kv_heads = scores_of(b->c, &b->n).kv_heads, rows = n.dim[2] / kv_heads * n.dim[1];
  return ir_reshape(b->c, &b->at, turned(b, x), (int64_t[]){n.dim[0] * kv_heads, rows, n.dim[3]},
                    3);
}

static Value product(Back *b, Value x, Value y, bool trans_b)
{
  return ir_append(b->c, &b->at, OP_gemm, (Value[]){x, y}, 2, ATTRS({"trans_b", {.i = trans_b}}));
}

/* Scales the queries, as the op also does: unscaled 16-bit scores would overflow sooner. */
static Value scaled(Back *b, Value queries)
{
  return back_scale(b, queries, attr_float(&b->n, "scale"));
}

/* Expands a mask that broadcasts to the scores to their shape. */
static Value in_shape_of_scores(Back *b, Value mask)
{
  Scores s = scores_of(b->c, &b->n);
  mask = ir_expand(b->c, &b->at, mask, s.four, 4);
  return ir_reshape(b->c, &b->at, mask, s.three, 3);
}

/* Drops the weights that forward drops. Dropout derives its random numbers from the index in [n,
 * heads, l, s] and the stream, so they are those of forward. */
static Value dropped(Back *b, Value weights)
{
  if (!op_draws(&b->n)) return weights;
  weights =
      ir_append(b->c, &b->at, OP_drop, &weights, 1, ATTRS({"p", {.f = attr_float(&b->n, "p")}}));
  back_draws(b, weights);
  return weights;
}

/* ---- gradients ---- */

static Value wide_heads(Back *b, Value x)
{
  return heads_of(b, back_wide(b, x));
}

/* Turns one number per query, [n, l, heads], into [n kv_heads, group l, 1]. */
static Value head_columns(Back *b, Value x)
{
  Node n = *ir_node(b->c->graph, x);
  x = ir_reshape(b->c, &b->at, x, (int64_t[]){n.dim[0], n.dim[1], n.dim[2], 1}, 4);
  return wide_heads(b, x);
}

/* Returns the gradient of an additive mask, which is the gradient of the scores. It is computed
 * from the weights and their gradient. */
static Value mask_gradient(Back *b, Value sums, Value off)
{
  const Value *in = b->n.in;
  bool single = ir_elements(back_in(b, MASK)) == 1;
  assert(!attr_int(&b->n, "causal"));
  Value keys = wide_heads(b, in[KEY]), queries = scaled(b, wide_heads(b, in[QUERY]));
  Value scores = product(b, queries, keys, true), added = back_wide(b, in[MASK]);
  scores = back_binary(b, OP_add, scores, single ? added : in_shape_of_scores(b, added));
  Value weights = back_unary(b, OP_exp, back_binary(b, OP_sub, scores, head_columns(b, sums)));
  Value values = wide_heads(b, in[VALUE]);
  Value slope = dropped(b, product(b, wide_heads(b, b->dy), values, true));
  slope = back_mul(b, weights, back_binary(b, OP_sub, slope, head_columns(b, off)));
  return ir_reshape(b->c, &b->at, slope, scores_of(b->c, &b->n).four, 4);
}

/* Returns the logarithms of the sums of exponentials, as forward computes them. */
static Value log_sums(Back *b)
{
  Value v = ir_append(b->c, &b->at, OP_attention, b->n.in, b->n.n_in,
                      ATTRS({"scale", {.f = attr_float(&b->n, "scale")}},
                            {"p", {.f = attr_float(&b->n, "p")}},
                            {"causal", {.i = attr_int(&b->n, "causal")}}, {"sums", {.i = 1}}));
  back_draws(b, v);
  return v;
}

static Value gradient_of_input(Back *b, const Value *in, uint32_t of)
{
  Value v = ir_append(
      b->c, &b->at, OP_attention_backward, in, 8,
      ATTRS({"scale", {.f = attr_float(&b->n, "scale")}}, {"p", {.f = attr_float(&b->n, "p")}},
            {"causal", {.i = attr_int(&b->n, "causal")}},
            {"rounded", {.i = b->c->options.as_cuda || !is_cpu_target(b->c)}}, {"of", {.i = of}}));
  back_draws(b, v);
  return v;
}

void grad_attention(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  const Value *x = b->n.in;
  Value y = back_wide(b, b->y), wide = back_wide(b, dy);
  Value off = ir_reduce(c, &b->at, OP_sum, back_mul(b, wide, y), 1u << 3, false);
  Value sums = log_sums(b);
  Value result = rule_by_library(c, &b->n) ? b->y : (Value){0}; /* the library reads it, too */
  Value in[] = {x[QUERY], x[KEY], x[VALUE], x[MASK], dy, sums, off, result};
  for (uint32_t i = 0; i < 3; i++) out_dx[i] = gradient_of_input(b, in, i);
  if (x[MASK].id && dtype_is_float(back_in(b, MASK)->dtype))
    out_dx[MASK] = mask_gradient(b, sums, off);
}

/* ---- the tangent ----
 * With the scores S, P = softmax(S) and dropout D, the tangent of y = D(P) v is
 *   D(P_t) v + D(P) v_t    P_t = P (S_t - sum(P S_t))    S_t = scale (q_t k^T + q k_t^T) + mask_t
 */

/* Returns [group l, s]: true where a query may attend to a key. */
static Value below_diagonal(Back *b)
{
  Compile *c = b->c;
  Scores s = scores_of(c, &b->n);
  int64_t rows[] = {s.l, 1}, columns[] = {s.s}, each[] = {s.group, s.l, 1};
  int64_t all[] = {s.group * s.l, 1};
  Value query = ir_append(c, &b->at, OP_indices, NULL, 0, ir_shape_attrs(c, rows, 2));
  if (s.group > 1) query = ir_reshape(c, &b->at, ir_expand(c, &b->at, query, each, 3), all, 2);
  Value key = ir_append(c, &b->at, OP_indices, NULL, 0, ir_shape_attrs(c, columns, 1));
  return back_binary(b, OP_le, key, query);
}

static Value masked(Back *b, Value scores)
{
  Value mask = b->n.in[MASK], none = back_number(b, -INFINITY);
  if (attr_int(&b->n, "causal")) scores = back_where(b, below_diagonal(b), scores, none);
  if (!mask.id) return scores;
  bool added = dtype_is_float(ir_node(b->c->graph, mask)->dtype);
  mask = in_shape_of_scores(b, mask);
  return added ? back_binary(b, OP_add, scores, mask) : back_where(b, mask, scores, none);
}

/* Returns softmax(scores), but 0 for a row of -inf (no key to attend to), where softmax is NaN. */
static Value weights_of(Back *b, Value scores)
{
  Value empty = {0}, zero = back_number(b, 0);
  if (b->n.in[MASK].id) {
    Value peak = ir_reduce(b->c, &b->at, OP_amax, scores, 1u << 2, true);
    empty = back_binary(b, OP_eq, peak, back_number(b, -INFINITY));
    scores = back_where(b, empty, zero, scores);
  }
  Value weights = ir_append(b->c, &b->at, OP_softmax, &scores, 1, ATTRS({"dim", {.i = 2}}));
  return empty.id ? back_where(b, empty, zero, weights) : weights;
}

/* Returns the tangent of the scores; {0} if they have none. */
static Value tangent_of_scores(Forward *f, Value q, Value k)
{
  Back *b = &f->b;
  Value qt = heads_of(b, f->v[QUERY]), kt = heads_of(b, f->v[KEY]), t = {0};
  if (qt.id) t = product(b, scaled(b, qt), k, true);
  if (kt.id) t = tangent_sum(f, t, product(b, q, kt, true));
  if (f->v[MASK].id) t = tangent_sum(f, t, in_shape_of_scores(b, f->v[MASK]));
  return t;
}

Value tangent_attention(Forward *f)
{
  Back *b = &f->b;
  const Node *q = back_in(b, QUERY);
  int64_t y[] = {q->dim[0], q->dim[2], q->dim[1], b->n.dim[3]};
  Value query = scaled(b, heads_of(b, b->n.in[QUERY])), key = heads_of(b, b->n.in[KEY]);
  Value weights = weights_of(b, masked(b, product(b, query, key, true)));
  Value moved = tangent_of_scores(f, query, key), t = {0};
  if (moved.id) {
    moved = ir_append(b->c, &b->at, OP_softmax_backward, (Value[]){moved, weights}, 2,
                      ATTRS({"dim", {.i = 2}}));
    t = product(b, dropped(b, moved), heads_of(b, b->n.in[VALUE]), false);
  }
  if (f->v[VALUE].id)
    t = tangent_sum(f, t, product(b, dropped(b, weights), heads_of(b, f->v[VALUE]), false));
  return turned(b, ir_reshape(b->c, &b->at, t, y, 4));
}
