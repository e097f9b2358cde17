/* The tangent of attention.
 *
 * It is made of whole products: the scores, l times s of each head, lie in memory, which attention
 * itself avoids (Note [attention] in command/attention.h). A kernel that walks them in tiles would
 * need a gradient, and so another one of second order, before anything could be trained by it. With
 * S the scores, P = softmax(S) and D what dropout makes of it, y = D(P) v moves by
 *   D(P_t) v + D(P) v_t    P_t = P (S_t - sum(P S_t))    S_t = scale (q_t k^T + q k_t^T) + mask_t
 */
#include "tangent.h"
#include <math.h>

enum { QUERY, KEY, VALUE, MASK };

typedef struct Attended {
  Forward *f;
  int64_t l, s, four[4], three[3]; /* the scores: [n, heads, l, s], [n heads, l, s] */
} Attended;

static Value product(Attended *a, Value x, Value y, bool turned)
{
  Back *b = &a->f->b;
  return ir_append(b->c, &b->at, OP_gemm, (Value[]){x, y}, 2, ATTRS({"trans_b", {.i = turned}}));
}

/* x [n, l, heads, d] as [n heads, l, d]; {0} of {0} */
static Value heads_of(Attended *a, Value x)
{
  Back *b = &a->f->b;
  if (!x.id) return x;
  Node n = *ir_node(b->c->graph, x);
  x = ir_append(b->c, &b->at, OP_transpose, &x, 1, ATTRS({"dim0", {.i = 1}}, {"dim1", {.i = 2}}));
  return ir_reshape(b->c, &b->at, x, (int64_t[]){n.dim[0] * n.dim[2], n.dim[1], n.dim[3]}, 3);
}

/* What broadcasts to [n, heads, l, s], as scores are here. */
static Value in_shape_of_scores(Attended *a, Value mask)
{
  Back *b = &a->f->b;
  mask = ir_expand(b->c, &b->at, mask, a->four, 4);
  return ir_reshape(b->c, &b->at, mask, a->three, 3);
}

/* Whether a query may see a key, [l, s]. */
static Value below_diagonal(Attended *a)
{
  Back *b = &a->f->b;
  Compile *c = b->c;
  int64_t rows[] = {a->l, 1}, columns[] = {a->s};
  Value query = ir_append(c, &b->at, OP_indices, NULL, 0, ir_shape_attrs(c, rows, 2));
  Value key = ir_append(c, &b->at, OP_indices, NULL, 0, ir_shape_attrs(c, columns, 1));
  return back_binary(b, OP_le, key, query);
}

static Value masked(Attended *a, Value scores)
{
  Back *b = &a->f->b;
  Value mask = b->n.in[MASK], none = back_number(b, -INFINITY);
  if (attr_int(&b->n, "causal")) scores = back_where(b, below_diagonal(a), scores, none);
  if (!mask.id) return scores;
  bool added = dtype_is_float(ir_node(b->c->graph, mask)->dtype);
  mask = in_shape_of_scores(a, mask);
  return added ? back_binary(b, OP_add, scores, mask) : back_where(b, mask, scores, none);
}

/* Dropout keys elements of [n, heads, l, s] by their index: as forward has it. */
static Value dropped(Attended *a, Value weights)
{
  Back *b = &a->f->b;
  if (!op_draws(&b->n)) return weights;
  weights =
      ir_append(b->c, &b->at, OP_drop, &weights, 1, ATTRS({"p", {.f = attr_float(&b->n, "p")}}));
  ir_node(b->c->graph, weights)->stream = b->n.stream;
  return weights;
}

/* A query that sees no key gets 0 from the op, where a row of -inf has no softmax. */
static Value weights_of(Attended *a, Value scores)
{
  Back *b = &a->f->b;
  Value empty = {0}, zero = back_number(b, 0);
  if (b->n.in[MASK].id) {
    Value peak = ir_reduce(b->c, &b->at, OP_amax, scores, 1u << 2, true);
    empty = back_binary(b, OP_eq, peak, back_number(b, -INFINITY));
    scores = back_where(b, empty, zero, scores);
  }
  Value weights = ir_append(b->c, &b->at, OP_softmax, &scores, 1, ATTRS({"dim", {.i = 2}}));
  return empty.id ? back_where(b, empty, zero, weights) : weights;
}

/* {0}: scores do not move. */
static Value tangent_of_scores(Attended *a, Value q, Value k)
{
  Forward *f = a->f;
  double scale = attr_float(&f->b.n, "scale");
  Value qt = heads_of(a, f->v[QUERY]), kt = heads_of(a, f->v[KEY]), t = {0};
  if (qt.id) t = product(a, back_scale(&f->b, qt, scale), k, true);
  if (kt.id) t = tangent_sum(f, t, product(a, q, kt, true));
  if (f->v[MASK].id) t = tangent_sum(f, t, in_shape_of_scores(a, f->v[MASK]));
  return t;
}

Value tangent_attention(Forward *f)
{
  Back *b = &f->b;
  Compile *c = b->c;
  Node q = *back_in(b, QUERY), k = *back_in(b, KEY);
  int64_t n = q.dim[0], heads = q.dim[2], l = q.dim[1], s = k.dim[1];
  Attended a = {f, l, s, {n, heads, l, s}, {n * heads, l, s}};
  /* the scale meets the queries, as in the op: of 16 bits the scores would overflow sooner */
  Value query = back_scale(b, heads_of(&a, b->n.in[QUERY]), attr_float(&b->n, "scale"));
  Value key = heads_of(&a, b->n.in[KEY]);
  Value scores = masked(&a, product(&a, query, key, true));
  Value weights = weights_of(&a, scores);
  Value moved = tangent_of_scores(&a, query, key), t = {0};
  if (moved.id) {
    moved = ir_append(c, &b->at, OP_softmax_backward, (Value[]){moved, weights}, 2,
                      ATTRS({"dim", {.i = 2}}));
    t = product(&a, dropped(&a, moved), heads_of(&a, b->n.in[VALUE]), false);
  }
  if (f->v[VALUE].id)
    t = tangent_sum(f, t, product(&a, dropped(&a, weights), heads_of(&a, f->v[VALUE]), false));
  t = ir_reshape(c, &b->at, t, (int64_t[]){n, heads, l, b->n.dim[3]}, 4);
  return ir_append(c, &b->at, OP_transpose, &t, 1, ATTRS({"dim0", {.i = 1}}, {"dim1", {.i = 2}}));
}
