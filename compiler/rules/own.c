/* Rules of own ops. Shapes and types follow from the signature. Gradients are copies of the
 * backward that the job defines: Note [own backward] in own.h. */
#include "compiler/graph/own.h"
#include "rules.h"
#include <assert.h>
#include <string.h>

/* ---- nodes ---- */

Value own_append(Compile *c, const Cursor *at, const OwnOp *own, const Value *in)
{
  OpInfo *row = arena_new(c->arena, OpInfo);
  *row = *op_row(OP_own);
  row->name = own->name;
  row->own = own;
  row->signature.n_inputs = own->n_inputs;
  for (uint32_t i = 0; i < own->n_inputs; i++)
    row->signature.input[i] = (InputInfo){.name = own->input[i].name};
  return ir_append_own(c, at, OP_own, row, in, own->n_inputs);
}

void own_append_results(Compile *c, const Cursor *at, Value op, Value *out)
{
  const OwnOp *own = own_of(ir_node(c->graph, op));
  for (uint32_t i = 0; i < own->n_outputs; i++)
    out[i] =
        i == own->main ? op : ir_append(c, at, OP_own_result, &op, 1, ATTRS({"index", {.i = i}}));
}

Value own_result(const Graph *g, Value op, uint32_t i)
{
  const OwnOp *own = own_of(ir_node(g, op));
  if (i == own->main) return op;
  for (uint32_t id = op.id + 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (n->op == OP_own_result && n->in[0].id == op.id && attr_int(n, "index") == i)
      return (Value){id};
  }
  return (Value){0};
}

Value own_operand(Compile *c, const Cursor *at, Value op, uint32_t i)
{
  return ir_append(c, at, OP_own_operand, &op, 1, ATTRS({"index", {.i = i}}));
}

void own_backward(Compile *c, const Cursor *at, Value op, const Value *gradients)
{
  const OwnOp *own = own_of(ir_node(c->graph, op));
  Value in[MAX_SIGNATURE + 1] = {op};
  memcpy(in + 1, gradients, own->n_inputs * sizeof *in);
  ir_append(c, at, OP_own_backward, in, 1 + own->n_inputs, NULL);
}

bool own_exact_type(const OwnTensor *t, DType *out)
{
  for (int i = 0; i < AMPC_DTYPE_COUNT; i++) {
    *out = (DType)i;
    if (strcmp(t->type, ir_dtype_name(*out)) == 0) return true;
  }
  return false;
}

/* ---- shapes ---- */

/* An output declared `float[..]` has the type of the widest float input. */
DType own_output_type(Compile *c, const Node *n, uint32_t i)
{
  DType type;
  bool found = false;
  if (own_exact_type(&own_of(n)->output[i], &type)) return type;
  for (uint32_t k = 0; k < n->n_in; k++) {
    const Node *in = ir_in(c, n, k);
    if (in->weak || !dtype_is_float(in->dtype)) continue;
    type = found ? dtype_promote(type, in->dtype) : in->dtype;
    found = true;
  }
  return found ? type : AMPC_F32;
}

static bool like_output(Compile *c, Node *n, const Node *op, uint32_t i)
{
  const OwnTensor *y = &own_of(op)->output[i];
  n->dtype = own_output_type(c, op, i);
  return rule_set_dims(c, n, y->rank, y->dim);
}

bool shape_own(Compile *c, Node *n)
{
  return like_output(c, n, n, own_of(n)->main);
}

bool shape_own_result(Compile *c, Node *n)
{
  return like_output(c, n, ir_in(c, n, 0), (uint32_t)attr_int(n, "index"));
}

/* Indices count inputs, then outputs, then the gradients of outputs. */
bool shape_own_operand(Compile *c, Node *n)
{
  const Node *op = ir_in(c, n, 0);
  const OwnOp *own = own_of(op);
  uint32_t i = (uint32_t)attr_int(n, "index");
  if (i < own->n_inputs) return rule_like(n, ir_in(c, op, i), ir_in(c, op, i)->dtype);
  return like_output(c, n, op, (i - own->n_inputs) % own->n_outputs);
}

bool shape_own_backward(Compile *c, Node *n)
{
  n->dtype = AMPC_F32;
  return rule_set_dims(c, n, 0, NULL);
}

/* ---- gradients ---- */

/* Returns the id of the node that ends the backward of op; 0 if op has no backward. */
static uint32_t end_of_backward(const Graph *g, Value op)
{
  for (uint32_t id = op.id + 1; id < g->nodes.n; id++) {
    const Node *n = &g->nodes.at[id];
    if (n->op == OP_own_backward && n->in[0].id == op.id) return id;
  }
  return 0;
}

bool own_has_backward(const Graph *g, Value op)
{
  return end_of_backward(g, op) != 0;
}

bool own_reads_elements(const Node *n, uint32_t i)
{
  if (n->op == OP_own_operand || n->op == OP_own_backward) return false;
  if (n->op == OP_full_like || n->op == OP_like) return i == 1;
  return n->op != OP_cast_like || i == 0;
}

/* Copies of the nodes between the op and the end of its backward. */
typedef struct Copies {
  Compile *c;
  Value op;
  const Value *dy; /* indexed by output: its gradient */
  Value *of;       /* indexed by id - op.id: the copy of node id */
  uint32_t n;
} Copies;

static Value copied(const Copies *k, Value v)
{
  uint32_t i = v.id - k->op.id;
  return v.id > k->op.id && i < k->n && k->of[i].id ? k->of[i] : v;
}

/* Returns the value that replaces own_operand `id` in the copy. The gradient of an output is zeros
 * if the loss does not depend on the output. */
static Value operand_of(const Copies *k, uint32_t id)
{
  const Graph *g = k->c->graph;
  const Node *op = ir_node(g, k->op);
  const OwnOp *own = own_of(op);
  const Node *operand = &g->nodes.at[id];
  uint32_t i = (uint32_t)attr_int(operand, "index");
  if (i < own->n_inputs) return op->in[i];
  i -= own->n_inputs;
  if (i < own->n_outputs) return own_result(g, k->op, i);
  Value dy = k->dy[i - own->n_outputs];
  if (dy.id) return dy;
  Cursor at = ir_cursor_at(operand, WHY_forward);
  at.origin = k->op;
  at.loop = g->loops.at[at.loop].back;
  return ir_zeros(k->c, &at, (Value){id}, operand->dtype);
}

/* Copies a node into backward, with the op as its origin; in a loop, into the backward loop. An own
 * op in the copy keeps its own backward and operands, if jvp needs them. */
static Value copy_node(Copies *k, uint32_t id)
{
  Graph *g = k->c->graph;
  Node n = g->nodes.at[id];
  bool own = n.n_in && n.in[0].id == k->op.id;
  if (own && n.op == OP_own_result) return (Value){id};
  if (own && n.op == OP_own_operand) return operand_of(k, id);
  Value *in = arena_array(k->c->arena, Value, n.n_in ? n.n_in : 1);
  for (uint32_t i = 0; i < n.n_in; i++) in[i] = copied(k, n.in[i]);
  n.in = in;
  n.origin = k->op;
  n.loop = g->loops.at[n.loop].back;
  if (op_of(&n)->tmpl != TMPL_loop) n.loop = ir_loop_for(g, &n);
  vec_push(k->c->arena, &g->nodes, n);
  return (Value){g->nodes.n - 1};
}

/* The caller has checked that the op has a backward. */
void own_gradients(Compile *c, Value op, const Value *dy, Value *out_dx)
{
  uint32_t end = end_of_backward(c->graph, op);
  assert(end);
  Copies k = {.c = c, .op = op, .dy = dy, .n = end - op.id};
  k.of = arena_array(c->arena, Value, k.n);
  for (uint32_t id = op.id + 1; id < end; id++) k.of[id - op.id] = copy_node(&k, id);
  const Node *backward = &c->graph->nodes.at[end];
  for (uint32_t i = 0; i + 1 < backward->n_in; i++)
    out_dx[i] = backward->in[i + 1].id ? copied(&k, backward->in[i + 1]) : (Value){0};
}

/* The backward of an own op needs the gradients of all outputs. So passes/backward.c calls
 * own_gradients() itself when it reaches a node with one of these rules. */
void grad_own(Compile *c, Value n, Value dy, Value *out_dx)
{
  own_gradients(c, n, &dy, out_dx);
}

void grad_own_result(Compile *c, Value n, Value dy, Value *out_dx)
{
  (void)c, (void)n, (void)dy;
  out_dx[0] = (Value){0};
}
