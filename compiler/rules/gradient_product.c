/* Gradient rules of matrix products. Each gradient is a product of two matrices, or of two batches
 * of the same number of matrices, with transposition flags. So no matrix is transposed in
 * memory. */
#include "gradient.h"
#include <string.h>

static Value gemm(Back *b, Value x, Value y, bool trans_x, bool trans_y)
{
  return ir_append(b->c, &b->at, OP_gemm, (Value[]){x, y}, 2,
                   ATTRS({"trans_a", {.i = trans_x}}, {"trans_b", {.i = trans_y}}));
}

/* y = op(x) op(z), where op transposes its operand if the flag (tx, tz) is set.
 *   d op(x) = dy op(z)^T        d op(z) = op(x)^T dy
 * If a flag is set, the gradient is the transpose of this formula, which is again a product with
 * flags:
 *   dx = (dy op(z)^T)^T = op(z) dy^T */
typedef struct Factors {
  Value x, z;
  bool tx, tz;
} Factors;
static void product_gradients(Back *b, Factors f, Value dy, Value *out)
{
  out[0] = f.tx ? gemm(b, f.z, dy, f.tz, true) : gemm(b, dy, f.z, false, !f.tz);
  out[1] = f.tz ? gemm(b, dy, f.x, true, f.tx) : gemm(b, f.x, dy, !f.tx, false);
}

void grad_gemm(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Factors f = {b.n.in[0], b.n.in[1], attr_int(&b.n, "trans_a"), attr_int(&b.n, "trans_b")};
  product_gradients(&b, f, dy, out_dx);
}

/* Reshapes [.., k] to a matrix [rows, k]: a linear layer does not distinguish leading axes. */
static Value as_matrix(Back *b, Value v)
{
  const Node *x = ir_node(b->c->graph, v);
  int64_t last = x->dim[x->rank - 1];
  return ir_reshape(b->c, &b->at, v, (int64_t[]){ir_elements(x) / last, last}, 2);
}

static Value reshape_as(Back *b, Value v, uint32_t input)
{
  Node x = *back_in(b, input);
  return ir_reshape(b->c, &b->at, v, x.dim, x.rank);
}

/* y = x w^T + bias with x [.., in], w [out, in]. dbias is [rows, out] here; backward.c sums the
 * rows. */
void grad_linear(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  Value in = as_matrix(&b, b.n.in[0]), out = as_matrix(&b, dy), d[2];
  product_gradients(&b, (Factors){in, b.n.in[1], false, true}, out, d);
  out_dx[0] = reshape_as(&b, d[0], 0);
  out_dx[1] = d[1];
  if (b.n.in[2].id) out_dx[2] = out;
}

/* ---- matmul ---- */

Value rule_as_batch(Compile *c, const Cursor *at, Value v, const int64_t *lead, uint32_t n_lead)
{
  Node x = *ir_node(c->graph, v);
  int64_t rows = x.rank > 1 ? x.dim[x.rank - 2] : 1, columns = x.dim[x.rank - 1];
  int64_t full[MAX_RANK + 2];
  memcpy(full, lead, n_lead * sizeof *full);
  full[n_lead] = rows;
  full[n_lead + 1] = columns;
  v = ir_expand(c, at, v, full, n_lead + 2);
  return ir_reshape(c, at, v, (int64_t[]){dims_product(lead, n_lead), rows, columns}, 3);
}

/* Reverses rule_as_batch() for a gradient v [batch, rows, columns] of operand i: restores the
 * leading axes of the product, and removes the axis that was added to a vector. backward.c sums the
 * axes along which the operand was broadcast. */
static Value from_batch(Back *b, Value v, uint32_t i, const int64_t *lead, uint32_t n_lead)
{
  const Node *d = ir_node(b->c->graph, v);
  int64_t full[MAX_RANK + 2];
  uint32_t rank = n_lead;
  memcpy(full, lead, n_lead * sizeof *full);
  if (back_in(b, i)->rank == 1) {
    full[rank++] = d->dim[1] * d->dim[2];
  } else {
    full[rank++] = d->dim[1];
    full[rank++] = d->dim[2];
  }
  return ir_reshape(b->c, &b->at, v, full, rank);
}

/* Computes the gradients if the right operand has leading axes: one product per batch. */
static void batched_gradients(Back *b, Value *out_dx)
{
  bool row = back_in(b, 0)->rank == 1;
  const int64_t *lead = b->n.dim;
  uint32_t n_lead = (uint32_t)b->n.rank - (row ? 1 : 2);
  Value x = rule_as_batch(b->c, &b->at, b->n.in[0], lead, n_lead), d[2];
  Value z = rule_as_batch(b->c, &b->at, b->n.in[1], lead, n_lead);
  const Node *xn = ir_node(b->c->graph, x), *zn = ir_node(b->c->graph, z);
  Value dy = ir_reshape(b->c, &b->at, b->dy, (int64_t[]){xn->dim[0], xn->dim[1], zn->dim[2]}, 3);
  product_gradients(b, (Factors){x, z, false, false}, dy, d);
  for (uint32_t i = 0; i < 2; i++) out_dx[i] = from_batch(b, d[i], i, lead, n_lead);
}

/* Computes the gradients if the right operand is one matrix or vector for all leading axes of the
 * left operand, as in a linear layer. All rows form a single product, which also sums the weight's
 * gradient. */
static void single_gradients(Back *b, Value *out_dx)
{
  Node z = *back_in(b, 1);
  int64_t columns = z.rank == 1 ? 1 : z.dim[1];
  Value x = as_matrix(b, b->n.in[0]), d[2];
  Value weight = ir_reshape(b->c, &b->at, b->n.in[1], (int64_t[]){z.dim[0], columns}, 2);
  int64_t rows = ir_node(b->c->graph, x)->dim[0];
  Value dy = ir_reshape(b->c, &b->at, b->dy, (int64_t[]){rows, columns}, 2);
  product_gradients(b, (Factors){x, weight, false, false}, dy, d);
  for (uint32_t i = 0; i < 2; i++) out_dx[i] = reshape_as(b, d[i], i);
}

void grad_matmul(Compile *c, Value n, Value dy, Value *out_dx)
{
  Back b = back_begin(c, n, dy);
  if (back_in(&b, 1)->rank <= 2)
    single_gradients(&b, out_dx);
  else
    batched_gradients(&b, out_dx);
}
