/* Matrix products as vendor libraries take them: row-major sizes, strides, transposition. */
#include "command_parts.h"
#include <string.h>

/* Returns the product of all axes except the last `last` ones. */
static int64_t lead(const Node *n, uint32_t last)
{
  return n->rank > last ? dims_product(n->dim, n->rank - last) : 1;
}

/* Returns the size of an axis, 1 if there is no such axis. i = 1: the last axis. */
static int64_t axis_from_end(const Node *n, uint32_t i)
{
  return n->rank >= i ? n->dim[n->rank - i] : 1;
}

/* Sets the sizes for input [..., k] times weight [n, k] transposed. */
static void linear_sizes(const Node *x, const Node *w, ampc_gemm *d)
{
  d->k = axis_from_end(x, 1);
  d->n = w->dim[0];
  d->m = lead(x, 1);
  d->batch = 1;
  d->trans_b = true;
}

/* Returns the stride from matrix to matrix, in elements; 0 if the whole batch uses one matrix. One
 * stride suffices, because pass simplify has merged all leading axes into one. */
static int64_t batch_stride(const Node *x, int64_t batch)
{
  if (batch == 1 || lead(x, 2) == 1) return 0;
  return ir_row(x) * axis_from_end(x, 2);
}

/* Sets the sizes for [.., m, k] times [.., k, n], each possibly transposed. A batch of left
 * matrices times one right matrix is a single product of m * batch rows. */
static void matmul_sizes(const Node *n, const Node *a, const Node *b, ampc_gemm *d)
{
  bool vector_a = a->rank == 1, vector_b = b->rank == 1;
  int64_t rows_a = vector_a ? 1 : axis_from_end(a, 2), columns_a = axis_from_end(a, 1);
  int64_t columns_b = vector_b ? 1 : axis_from_end(b, 1);
  d->m = d->trans_a ? columns_a : rows_a;
  d->k = d->trans_a ? rows_a : columns_a;
  d->n = d->trans_b ? axis_from_end(b, 2) : columns_b;
  int64_t each = d->m * d->n;
  d->batch = each > 0 ? ir_elements(n) / each : 0;
  d->stride_a = vector_a ? 0 : batch_stride(a, d->batch);
  d->stride_b = vector_b ? 0 : batch_stride(b, d->batch);
  if (d->batch > 1 && d->stride_b == 0 && !d->trans_a) { /* one tall product instead of many */
    d->m *= d->batch;
    d->batch = 1;
    d->stride_a = 0;
  }
}

/* True if pass memory placed the result in the gradient's slot. Then the library adds to the slot
 * (beta = 1). */
static bool result_is_gradient(const Graph *g, Value v)
{
  return ir_node(g, v)->place.space == AMPC_GRAD;
}

/* True if a transposition attribute is set. Only gemm has these attributes. */
static bool is_set(const Node *n, const char *attribute)
{
  uint32_t i;
  return attr_find(op_of(n), attribute, &i) && n->attr[i].i;
}

/* Returns the [rows, columns] parameter whose value or 16-bit copy is v, or whose slot in GRAD has
 * the place of v; NULL if there is none. */
static const Parameter *weight_at(const Compile *c, Value v, int64_t rows, int64_t columns)
{
  const Graph *g = c->graph;
  const Node *n = ir_node(g, value_root(g, v));
  const Parameter *p = ir_parameter(g, n);
  if (is_working_copy(g, value_root(g, v))) p = ir_parameter(g, ir_node(g, n->in[0]));
  for (uint32_t i = 0; i < g->params.n && n->place.space == AMPC_GRAD; i++) {
    const Parameter *slot = &g->params.at[i];
    if (!slot->buffer && slot->offset * ir_dtype_size(c, AMPC_F32) == n->place.offset) p = slot;
  }
  return p && p->rank == 2 && p->dim[0] == rows && p->dim[1] == columns ? p : NULL;
}

/* Sets the rows, columns or terms for which the operands have room: gaps of A or C, and rows behind
 * a weight. */
static void find_room(const Compile *c, const Value operands[4], ampc_gemm *d)
{
  const Parameter *w;
  Value a = operands[0], b = operands[1], result = operands[3];
  bool gaps_a = ir_node(c->graph, a)->pitch, gaps_c = ir_node(c->graph, result)->pitch;
  int64_t *more = d->trans_a ? &d->more_m : d->trans_b ? &d->more_n : &d->more_k;
  if (d->trans_a)
    w = gaps_a ? weight_at(c, result, d->m, d->n) : NULL;
  else if (d->trans_b)
    w = gaps_c && !d->has_bias ? weight_at(c, b, d->n, d->k) : NULL;
  else
    w = gaps_a ? weight_at(c, b, d->k, d->n) : NULL;
  if (w && d->batch == 1 && (ampc_is_narrow(d->a_type) || d->tf32))
    *more = param_room(c, w) / w->dim[1] - w->dim[0];
}

/* Matrices are row-major, so the leading dimension is the row length of the stored operand, or its
 * pitch. The result is the last node of the group: a relu that ends the product, or the product
 * itself. */
void set_product(Compile *c, uint32_t group, Command *out)
{
  const Graph *g = c->graph;
  const Group *members = &g->groups.at[group];
  Value v = members->anchor, last = members->nodes[members->n - 1], bias = {0};
  const Node *n = ir_node(g, v), *a = ir_node(g, n->in[0]), *b = ir_node(g, n->in[1]);
  ampc_gemm *d = &out->gemm;
  if (op_of(n)->signature.n_inputs == 3) { /* with a bias: rows of a layer's weight are outputs */
    linear_sizes(a, b, d);
    bias = n->in[2];
  } else {
    d->trans_a = is_set(n, "trans_a");
    d->trans_b = is_set(n, "trans_b");
    matmul_sizes(n, a, b, d);
  }
  d->lda = a->pitch ? a->pitch : d->trans_a ? d->m : d->k;
  d->ldb = b->pitch ? b->pitch : d->trans_b ? d->k : d->n;
  d->ldc = ir_node(g, last)->pitch ? ir_node(g, last)->pitch : d->n;
  d->stride_c = d->batch > 1 ? d->m * d->ldc : 0;
  d->a_type = a->dtype;
  d->b_type = b->dtype;
  d->c_type = n->dtype;
  d->has_bias = bias.id != 0;
  d->bias_type = d->has_bias ? ir_node(g, bias)->dtype : AMPC_F32;
  d->relu = op_has(ir_node(g, last), T_epilogue);
  d->tf32 = ir_is_tf32(c, n);
  d->accumulate = result_is_gradient(g, v);
  memcpy(out->operands, (Value[4]){n->in[0], n->in[1], bias, last}, sizeof out->operands);
  find_room(c, out->operands, d);
  d->workspace = is_cpu_target(c) ? ampc_gemm_workspace_cpu(d, c->options.real64)
                                  : ampc_gemm_workspace_cuda(target_capability(c));
  out->result = 3;
  out->accumulates = d->accumulate;
  out->workspace = d->workspace;
}
