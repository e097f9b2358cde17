/* The gradient rule of attention: Note [attention] in command/attention.h. */
#include "gradient.h"
#include "rules.h"
#include <assert.h>

enum { QUERY, KEY, VALUE, MASK };

/* x [n, l, heads, d] in f32 as [n heads, l, d]. */
static Value head_matrices(Back *b, Value x)
{
  Node n = *ir_node(b->c->graph, x);
  x = back_wide(b, x);
  x = ir_append(b->c, &b->at, OP_transpose, &x, 1, ATTRS({"dim0", {.i = 1}}, {"dim1", {.i = 2}}));
  return ir_reshape(b->c, &b->at, x, (int64_t[]){n.dim[0] * n.dim[2], n.dim[1], n.dim[3]}, 3);
}

/* A number of each query, [n, l, heads] as [n heads, l, 1]. */
static Value head_columns(Back *b, Value x)
{
  Node n = *ir_node(b->c->graph, x);
  x = ir_reshape(b->c, &b->at, x, (int64_t[]){n.dim[0], n.dim[1], n.dim[2], 1}, 4);
  return head_matrices(b, x);
}

static Value product(Back *b, Value x, Value y)
{
  return ir_append(b->c, &b->at, OP_gemm, (Value[]){x, y}, 2, ATTRS({"trans_b", {.i = 1}}));
}

/* The gradient of numbers that were added to the scores is that of the scores, which only here lie
 * in memory: the weights and their gradient are made of whole products. Dropout keys elements of
 * [n, heads, l, s] by their index. */
static Value mask_gradient(Back *b, Value sums, Value off)
{
  Compile *c = b->c;
  const Value *in = b->n.in;
  Node q = *back_in(b, QUERY), k = *back_in(b, KEY), mask = *back_in(b, MASK);
  int64_t four[] = {q.dim[0], q.dim[2], q.dim[1], k.dim[1]};
  int64_t three[] = {q.dim[0] * q.dim[2], q.dim[1], k.dim[1]};
  assert(!attr_int(&b->n, "causal"));
  Value scores = product(b, back_scale(b, head_matrices(b, in[QUERY]), attr_float(&b->n, "scale")),
                         head_matrices(b, in[KEY]));
  Value added = back_wide(b, in[MASK]);
  if (ir_elements(&mask) > 1) {
    added = ir_expand(c, &b->at, added, four, 4);
    added = ir_reshape(c, &b->at, added, three, 3);
  }
  scores = back_binary(b, OP_add, scores, added);
  Value weights = back_unary(b, OP_exp, back_binary(b, OP_sub, scores, head_columns(b, sums)));
  Value slope = product(b, head_matrices(b, b->dy), head_matrices(b, in[VALUE]));
  if (op_draws(&b->n)) {
    slope = ir_append(c, &b->at, OP_drop, &slope, 1, ATTRS({"p", {.f = attr_float(&b->n, "p")}}));
    ir_node(c->graph, slope)->stream = b->n.stream;
  }
  slope = back_binary(b, OP_sub, slope, head_columns(b, off));
  return ir_reshape(c, &b->at, back_mul(b, weights, slope), four, 4);
}

/* The logarithms of the sums of the weights, as forward has them. */
static Value log_sums(Back *b)
{
  Value v = ir_append(b->c, &b->at, OP_attention, b->n.in, b->n.n_in,
                      ATTRS({"scale", {.f = attr_float(&b->n, "scale")}},
                            {"p", {.f = attr_float(&b->n, "p")}},
                            {"causal", {.i = attr_int(&b->n, "causal")}}, {"sums", {.i = 1}}));
  ir_node(b->c->graph, v)->stream = b->n.stream;
  return v;
}

static Value gradient_of_input(Back *b, const Value *in, uint32_t of)
{
  Value v = ir_append(b->c, &b->at, OP_attention_backward, in, 8,
                      ATTRS({"scale", {.f = attr_float(&b->n, "scale")}},
                            {"p", {.f = attr_float(&b->n, "p")}},
                            {"causal", {.i = attr_int(&b->n, "causal")}},
                            {"rounded", {.i = !is_cpu_target(b->c)}}, {"of", {.i = of}}));
  ir_node(b->c->graph, v)->stream = b->n.stream;
  return v;
}

void grad_attention(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back back = back_begin(c, n, dy), *b = &back;
  Value y = back_wide(b, b->y), wide = back_wide(b, dy);
  Value off = ir_reduce(c, &b->at, OP_sum, back_mul(b, wide, y), 1u << 3, false);
  Value sums = log_sums(b);
  bool library = rule_library_attends(c, &b->n); /* which wants the results, too */
  Value in[] = {b->n.in[QUERY],
                b->n.in[KEY],
                b->n.in[VALUE],
                b->n.in[MASK],
                dy,
                sums,
                off,
                library ? b->y : (Value){0}};
  for (uint32_t i = 0; i < 3; i++) out_dx[i] = gradient_of_input(b, in, i);
  if (in[MASK].id && dtype_is_float(back_in(b, MASK)->dtype))
    out_dx[MASK] = mask_gradient(b, sums, off);
}
