/* Gradient rules of moves and elementwise ops whose gradients are no formulas. */
#include "gradient.h"

/* Begins the rule of y: new nodes are in the block and region of y, with y as their origin. So a
 * dump says "gradient of softmax", and an error names the line of the forward node. */
Back back_begin(Compile *c, Value y, Value dy)
{
  Back b = {.c = c, .at = ir_cursor_of(c->graph, y), .y = y, .dy = dy, .n = *ir_node(c->graph, y)};
  b.at.origin = y;
  b.at.why = WHY_forward;
  b.at.loop = c->graph->loops.at[b.at.loop].back;
  return b;
}

const Node *back_in(const Back *b, uint32_t i)
{
  return ir_in(b->c, &b->n, i);
}

Value back_unary(Back *b, OpKind op, Value x)
{
  return ir_unary(b->c, &b->at, op, x);
}

Value back_binary(Back *b, OpKind op, Value x, Value y)
{
  return ir_binary(b->c, &b->at, op, x, y);
}

void back_draws(Back *b, Value v)
{
  ir_node(b->c->graph, v)->stream = b->n.stream;
  ir_node(b->c->graph, v)->draws = b->n.draws;
}

Value back_number(Back *b, double v)
{
  return ir_number(b->c, &b->at, v);
}

Value back_scale(Back *b, Value x, double factor)
{
  return back_binary(b, OP_mul, x, back_number(b, factor));
}

Value back_wide(Back *b, Value x)
{
  bool typed = b->c->graph->facts & IR_TYPED;
  return typed ? ir_cast(b->c, &b->at, x, AMPC_F32) : ir_cast_asked(b->c, &b->at, x, AMPC_F32);
}

Value back_mul(Back *b, Value x, Value y)
{
  return back_binary(b, OP_mul, x, y);
}

Value back_where(Back *b, Value condition, Value x, Value y)
{
  return ir_append(b->c, &b->at, OP_where, (Value[]){condition, x, y}, 3, NULL);
}

Value back_like(Back *b, OpKind op, const Value *in, uint32_t n)
{
  return ir_append(b->c, &b->at, op, in, n, ir_shared_attrs(b->c, &b->n, op));
}

/* The rule of constants and of ops that are not differentiable: out_dx stays zero. */
void grad_none(Compile *c, Value n, Value dy, Value *out_dx)
{
  (void)c, (void)n, (void)dy, (void)out_dx;
}

/* ---- types and shapes ---- */

/* dx is dy in the shape of x. */
void grad_reshape(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  Node to = *ir_node(c->graph, x[0]);
  out_dx[0] = ir_reshape(c, &b->at, dy, to.dim, to.rank);
}

/* Axis i of y is axis p[i] of x, so axis p[i] of dx is axis i of dy: the inverse permutation. For
 * axes (2, 0, 1) it is (1, 2, 0). */
void grad_permute(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  uint32_t back_axes[MAX_RANK];
  for (uint32_t i = 0; i < b->n.rank; i++) back_axes[ir_permuted_axis(&b->n, i)] = i;
  out_dx[0] = ir_permute(c, &b->at, dy, back_axes);
}

/* y[i] = x[i + offset]: dx[i] = dy[i - offset], in the size of x, which is larger than y after a
 * crop. */
void grad_shifted(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  const Node *image = ir_node(c->graph, x[0]);
  int64_t h = image->dim[image->rank - 2], w = image->dim[image->rank - 1];
  Value offset = back_unary(b, OP_neg, x[1]);
  out_dx[0] = ir_append(c, &b->at, OP_shifted, (Value[]){dy, offset}, 2,
                        ATTRS({"h", {.i = h}}, {"w", {.i = w}}));
}

/* Returns x[start:stop:step] along axis `dim`. */
static Value sliced(Back *b, Value x, int64_t dim, int64_t start, int64_t stop, int64_t step)
{
  return ir_append(b->c, &b->at, OP_slice, &x, 1,
                   ATTRS({"dim", {.i = dim}}, {"start", {.i = start}}, {"stop", {.i = stop}},
                         {"step", {.i = step}}));
}

/* dx is dy without the padding, which is constant. */
void grad_pad(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim"), before = attr_int(&b->n, "before");
  out_dx[0] = sliced(b, dy, dim, before, before + ir_node(c->graph, x[0])->dim[dim], 1);
}

/* y = x[start:stop:step]: dx has the size of x, dy at start, start + step, ..., else 0. */
void grad_slice(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim"), size = ir_node(c->graph, x[0])->dim[dim];
  out_dx[0] = ir_append(c, &b->at, OP_slice_backward, &dy, 1,
                        ATTRS({"dim", {.i = dim}}, {"start", {.i = attr_int(&b->n, "start")}},
                              {"step", {.i = attr_int(&b->n, "step")}}, {"size", {.i = size}}));
}

/* Only the elements start, start + step, ... of y come from x, so dx is this slice of dy. */
void grad_slice_backward(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim"), start = attr_int(&b->n, "start");
  int64_t step = attr_int(&b->n, "step"), count = ir_node(c->graph, x[0])->dim[dim];
  out_dx[0] = sliced(b, dy, dim, start, start + (count - 1) * step + 1, step);
}

/* Each input receives its slice of dy. */
void grad_cat(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  int64_t dim = attr_int(&b->n, "dim"), start = 0;
  for (uint32_t i = 0; i < b->n.n_in; i++) {
    int64_t stop = start + ir_node(c->graph, x[i])->dim[dim];
    out_dx[i] = sliced(b, dy, dim, start, stop, 1);
    start = stop;
  }
}

/* ---- one input ---- */

/* Returns dx of a relu that only a max_pool2d reads; {0} if dy does not come from a max_pool2d. The
 * maximum of a window is also in the pool's result, which is smaller, and shows whether relu's
 * input was above 0. So relu's mask is applied to the gradient of the pool's result. The bits do
 * not change, because a pixel that is the maximum of several windows has the same value in all of
 * them. */
static Value relu_before_pool(Back *b, Value n)
{
  const Node back = *ir_node(b->c->graph, b->dy);
  if (back.op != OP_max_pool2d_backward) return (Value){0};
  const Node *argmax = ir_node(b->c->graph, back.in[1]);
  if (argmax->op != OP_max_pool2d || argmax->in[0].id != n.id) return (Value){0};
  Value masked = back_binary(b, OP_relu_backward, back.in[0], argmax->origin);
  Cursor at = ir_cursor_of(b->c->graph, b->dy);
  const NamedAttr *attrs = ir_shared_attrs(b->c, &back, back.op);
  return ir_append(b->c, &at, back.op, (Value[]){masked, back.in[1]}, 2, attrs);
}

/* y = max(x, 0): dx = y > 0 ? dy : 0. The rule reads y, which the next layer's gradient reads
 * anyway, so that x need not be kept. */
void grad_relu(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  out_dx[0] = relu_before_pool(b, n);
  if (!out_dx[0].id) out_dx[0] = back_binary(b, OP_relu_backward, dy, n);
}

/* y = kept ? x / (1 - p) : 0, and dx is the same function of dy. The mask is not stored: the same
 * stream draws the same numbers again. */
void grad_drop(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  out_dx[0] = back_like(b, OP_drop, &dy, 1);
  back_draws(b, out_dx[0]);
}

/* ---- several inputs ---- */

/* The rule of div, but 0 if no element counts. */
void grad_counted_mean(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  Value zero = back_number(b, 0), empty = back_binary(b, OP_eq, x[1], zero);
  out_dx[0] = back_binary(b, OP_div, dy, x[1]);
  Value slope = back_binary(b, OP_div, n, x[1]);
  out_dx[1] = back_mul(b, back_unary(b, OP_neg, dy), slope);
  for (uint32_t i = 0; i < 2; i++) out_dx[i] = back_where(b, empty, zero, out_dx[i]);
}

/* Returns e x^(e - 1), the derivative of x^e, for a literal e that is not 0. The most frequent
 * exponents, 1 and 2, need no power. */
static Value power_slope(Back *b, Value x, double e)
{
  if (e == 1) return back_number(b, 1);
  if (e == 2) return back_scale(b, x, 2);
  return back_scale(b, back_binary(b, OP_pow, x, back_number(b, e - 1)), e);
}

/* y = x^z: dx = dy z x^(z - 1), dz = dy y log(x)
 *
 * Both formulas give NaN at some points where the derivative is 0. As in PyTorch, the derivative
 * for exponent 0 is 0 everywhere, and 0 to a power >= 0 does not depend on the power. */
void grad_pow(Compile *c, Value n, Value dy, Value *out_dx)
{
  BEGIN;
  double e = 0;
  if (rule_literal(ir_node(c->graph, x[1]), &e)) {
    if (e != 0) out_dx[0] = back_mul(b, dy, power_slope(b, x[0], e));
    return;
  }
  Value zero = back_number(b, 0);
  Value less = back_binary(b, OP_sub, x[1], back_number(b, 1));
  Value slope = back_mul(b, x[1], back_binary(b, OP_pow, x[0], less));
  Value flat = back_binary(b, OP_eq, x[1], zero);
  out_dx[0] = back_where(b, flat, zero, back_mul(b, dy, slope));
  Value settled = back_binary(b, OP_logical_and, back_binary(b, OP_eq, x[0], zero),
                              back_binary(b, OP_ge, x[1], zero));
  Value by_power = back_mul(b, n, back_unary(b, OP_log, x[0]));
  out_dx[1] = back_mul(b, dy, back_where(b, settled, zero, by_power));
}
