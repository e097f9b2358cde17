/* Values in memory, and facts of nodes that decide how kernels read them: see values.h. */
#include "values.h"
#include "compiler/graph/optimizers.h"
#include "compiler/graph/shares.h"

Value value_root(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  while (op_of(n)->tmpl == TMPL_alias || n->folded) {
    v = n->in[0];
    n = ir_node(g, v);
  }
  return v;
}

const Node *value_shape(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  while (n->folded) n = ir_node(g, n->in[0]);
  return n;
}

/* An effect has no shape of its own: grad_accumulate walks the gradient that it adds. A stack is
 * written slice by slice, so its kernel walks its input. */
const Node *node_walked(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  if (n->op != OP_stack && (!op_has(n, T_effect) || !n->n_in)) return n;
  const Node *value = ir_node(g, n->in[0]), *root = ir_node(g, value_root(g, n->in[0]));
  return ir_elements(value) == ir_elements(root) ? root : value; /* otherwise it is broadcast */
}

bool reads_flat(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  int64_t all = ir_elements(node_walked(g, v));
  if (op_of(n)->tmpl != TMPL_map) return false;
  for (uint32_t i = 0; i < n->n_in; i++) {
    int64_t own = n->in[i].id ? ir_elements(value_shape(g, n->in[i])) : 1;
    if (own != 1 && own != all) return false;
  }
  return true;
}

/* Only if v reads an operand in order can one kernel compute both, with the operand in a register,
 * or can both share bytes. Moves read other elements. A row op reads operand k in order if its code
 * contains $k and the operand has the shape of input 0, but not if it reads it once for each row
 * (@k). */
bool reads_in_order(const Graph *g, Value v, uint32_t k)
{
  const Node *n = ir_node(g, v), *root = ir_node(g, value_root(g, n->in[k]));
  if (op_of(n)->tmpl == TMPL_move || op_of(n)->tmpl == TMPL_own) return false;
  if (op_of(n)->tmpl != TMPL_row) {
    const Node *walked = node_walked(g, v);
    return ir_same_dims(walked, root) ||
           (ir_elements(walked) == ir_elements(root) && reads_flat(g, v));
  }
  return op_of(n)->code.reads_element[k] && ir_same_dims(ir_node(g, n->in[0]), root);
}

/* Averages have no copies, because few blocks read them. So a cast of an average is a kernel. */
bool is_working_copy(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  if (!op_has(n, T_casts) || !ampc_is_narrow(n->dtype)) return false;
  const Node *from = ir_node(g, n->in[0]);
  const Parameter *p = ir_parameter(g, from);
  return p && !p->buffer && from->dtype == AMPC_F32 && !reads_average(g, from);
}

int target_capability(const Compile *c)
{
  return ampc_target_capability(c->options.target);
}

bool is_widening(const Graph *g, const Node *n)
{
  if (!op_has(n, T_casts) || n->dtype != AMPC_F32) return false;
  return ampc_is_narrow(ir_node(g, n->in[0])->dtype);
}

bool group_by_library(const Graph *g, uint32_t group)
{
  Value anchor = g->groups.at[group].anchor;
  return anchor.id && op_by_library(op_of(ir_node(g, anchor)));
}

/* ---- parameters ---- */

int64_t node_range(const Graph *g, const Node *n)
{
  const OpInfo *op = op_of(n);
  for (uint32_t i = 0; i < op->n_file_args; i++) {
    FileArg arg = op->file_args[i];
    bool group = arg == FILE_ranges || arg == FILE_moments || arg == FILE_weights;
    if (arg != FILE_grad && !group) continue;
    const Optimizer *o = &g->optimizers.at[attr_int(n, "optimizer")];
    int64_t of = attr_int(n, group ? "group" : "of");
    return of < 0 ? o->count : o->groups.at[of].slice;
  }
  return -1;
}

int64_t param_align(const Graph *g)
{
  return g->moment_type == AMPC_U8 ? AMPC_CODE_BLOCK : AMPC_PARAM_ALIGN;
}

int64_t update_vector(const Graph *g, const Node *n)
{
  return g->moment_type == AMPC_U8 && op_takes(op_of(n), FILE_ranges) ? AMPC_CODE_BLOCK / 32 : 4;
}

uint32_t update_words(const Graph *g, const Node *n)
{
  const OpInfo *op = op_of(n);
  bool first = op_takes(op, FILE_moments), whole = op_takes(op, FILE_ranges);
  if (!first && !whole && !op_takes(op, FILE_weights)) return 0;
  bool weights = g->weights != AMPC_F32 && g->rounds == ROUND_stochastic && !first;
  bool moments = g->moment_type == AMPC_BF16 && g->moment_rounds == ROUND_stochastic;
  const Optimizer *o = &g->optimizers.at[attr_int(n, "optimizer")];
  uint32_t kept = moments && (first || whole) ? o->groups.at[attr_int(n, "group")].moments : 0;
  return kept >> 1 ? 2 : weights || kept;
}

/* Note [rows behind]
 * The rows of a large weight are columns of a product in forward, terms of its sums in backward,
 * and rows of the weight's gradient. cuBLASLt is fast only if they are whole vectors of 16 bytes:
 * Note [odd sizes] in runtime/cuda/gemm.c. So for a GPU a weight of 50,257 rows has room for
 * 50,264, in all spaces of parameters. The rows behind begin as 0. Most optimizers update them with
 * the other rows, and no result depends on them. In GRAD they are 0 after each command, because
 * gradient norms are sums over GRAD. */
int64_t param_room(const Compile *c, const Parameter *p)
{
  enum { VECTOR = 8, LEAST = 512 };
  int64_t elements = dims_product(p->dim, p->rank);
  if (is_cpu_target(c) || param_is_state(p) || p->rank != 2 || p->dim[0] < LEAST) return elements;
  return ampc_round_up(p->dim[0], VECTOR) * p->dim[1];
}

int64_t param_bytes(const Compile *c, const Parameter *p)
{
  if (p->packing) return ampc_packed_of(p->packing, p->dim[0], p->dim[1]).bytes;
  return param_room(c, p) * ir_dtype_size(c, p->dtype);
}

/* ---- operands of commands ---- */

ampc_operand value_operand(Compile *c, Value v, bool written)
{
  const Node *n = ir_node(c->graph, v);
  bool slice = n->op == OP_turn || (written && n->op == OP_stack);
  ampc_operand out = {.at = v.id ? n->place : (ampc_ref){AMPC_NONE, 0}};
  if (!slice) return out;
  const Loop *loop = &c->graph->loops.at[n->loop];
  out.stride = ir_bytes(c, n) / (n->op == OP_stack ? loop->count : 1);
  if (!loop->reversed) return out;
  out.at.offset += (loop->count - 1) * out.stride;
  out.stride = -out.stride;
  return out;
}
