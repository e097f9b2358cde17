/* Commands of own ops: how many threads run the text, and how much scratch it needs. */
#include "compiler/graph/own.h"
#include "command_parts.h"

/* True if the kernel converts 16-bit tensors to f32 before it runs the text, and back afterwards.
 * Host text is C, which lacks 16-bit arithmetic on some machines. */
static bool is_converted(const Compile *c, DType d)
{
  return is_cpu_target(c) && ampc_is_narrow(d);
}

/* Returns the scratch for a converted tensor, in f32 elements, rounded up to whole cache lines; 0:
 * it is not converted. */
static int64_t room_of(const Compile *c, DType d, int64_t elements)
{
  return is_converted(c, d) ? (elements + 15) / 16 * 16 : 0;
}

Value own_tensor(const Graph *g, const Group *p, uint32_t i)
{
  const OwnOp *own = own_of(ir_node(g, p->anchor));
  if (i < own->n_inputs) return value_root(g, ir_node(g, p->anchor)->in[i]);
  if (i - own->n_inputs == own->main) return p->anchor;
  for (uint32_t k = 0; k < p->n; k++) {
    const Node *n = ir_node(g, p->nodes[k]);
    if (n->op == OP_own_result && attr_int(n, "index") == i - own->n_inputs) return p->nodes[k];
  }
  return (Value){0};
}

DType own_tensor_type(Compile *c, const Group *p, uint32_t i)
{
  const Node *op = ir_node(c->graph, p->anchor);
  uint32_t n = own_of(op)->n_inputs;
  return i < n ? ir_in(c, op, i)->dtype : own_output_type(c, op, i - n);
}

/* Returns the scratch for an output that no node reads: it has no place, but the text writes it. */
static int64_t room_of_unread(Compile *c, const Group *p, uint32_t i)
{
  const OwnOp *own = own_of(ir_node(c->graph, p->anchor));
  const OwnTensor *y = &own->output[i - own->n_inputs];
  int64_t elements = dims_product(y->dim, y->rank), real = ir_dtype_size(c, AMPC_F32);
  DType type = own_tensor_type(c, p, i);
  if (is_converted(c, type)) return room_of(c, type, elements);
  return ampc_round_up(elements * ir_dtype_size(c, type), 16 * real) / real;
}

static int64_t room_of_tensor(Compile *c, const Group *p, uint32_t i)
{
  Value v = own_tensor(c->graph, p, i);
  if (!v.id) return room_of_unread(c, p, i);
  const Node *n = ir_node(c->graph, v);
  return room_of(c, n->dtype, ir_elements(n));
}

int64_t own_scratch_at(Compile *c, const Group *p, uint32_t i)
{
  int64_t at = 0;
  if (room_of_tensor(c, p, i) == 0) return -1;
  for (uint32_t k = 0; k < i; k++) at += room_of_tensor(c, p, k);
  return at;
}

int64_t own_scratch(Compile *c, const Group *p)
{
  const OwnOp *own = own_of(ir_node(c->graph, p->anchor));
  int64_t elements = 0;
  for (uint32_t i = 0; i < own->n_inputs + own->n_outputs; i++) elements += room_of_tensor(c, p, i);
  return elements * ir_dtype_size(c, AMPC_F32);
}

/* True if a tensor is converted before or after the text. Outputs that no node reads are not. */
static bool converts(Compile *c, const Group *p)
{
  const OwnOp *own = own_of(ir_node(c->graph, p->anchor));
  bool any = false;
  for (uint32_t i = 0; i < own->n_inputs + own->n_outputs; i++)
    any = any || (own_tensor(c->graph, p, i).id && is_converted(c, own_tensor_type(c, p, i)));
  return any;
}

/* On the CPU one thread of the pool runs the text, unless the text computes a `part` of the work.
 * If tensors are converted, all conversions must finish before the text runs, so one thread does
 * everything. */
Geometry own_geometry(Compile *c, const Group *p)
{
  enum { MOST_THREADS = 64 };
  const OwnOp *own = own_of(ir_node(c->graph, p->anchor));
  if (!is_cpu_target(c)) return (Geometry){(uint32_t)own->grid, (uint32_t)own->block};
  if (own->parts < 0 || converts(c, p)) return (Geometry){1, 1};
  return (Geometry){(uint32_t)(own->parts < MOST_THREADS ? own->parts : MOST_THREADS), 1};
}
