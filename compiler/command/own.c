/* Commands of the job's own ops: how many threads run their text, and what room it needs beside its
 * tensors. */
#include "compiler/graph/own.h"
#include "command.h"

/* A text for the host is C, which has no arithmetic of 16 bits everywhere: it gets floats, which
 * the frame around it converts. */
static bool is_converted(const Compile *c, DType d)
{
  return is_cpu_target(c) && (d == AMPC_F16 || d == AMPC_BF16);
}

/* Elements, of whole cache lines. */
static int64_t room_of(const Compile *c, DType d, int64_t elements)
{
  return is_converted(c, d) ? (elements + 15) / 16 * 16 : 0;
}

static int64_t room_of_tensor(const Compile *c, const Node *op, uint32_t i)
{
  if (i < op->n_in) {
    const Node *in = ir_node(c->graph, op->in[i]);
    return room_of(c, in->dtype, ir_elements(in));
  }
  return room_of(c, op->dtype, ir_elements(op));
}

int64_t own_scratch_at(const Compile *c, const Node *op, uint32_t i)
{
  int64_t at = 0;
  if (room_of_tensor(c, op, i) == 0) return -1;
  for (uint32_t k = 0; k < i; k++) at += room_of_tensor(c, op, k);
  return at;
}

int64_t own_scratch(const Compile *c, const Node *op)
{
  int64_t elements = 0;
  for (uint32_t i = 0; i < op->n_in + own_of(op)->n_outputs; i++)
    elements += room_of_tensor(c, op, i);
  return elements * ir_dtype_size(c, AMPC_F32);
}

/* On the CPU one thread of the pool, unless the text is for a part of the work. Where tensors are
 * converted they must be all done before the text runs: then one thread does it all, too. */
Geometry own_geometry(const Compile *c, const Node *op)
{
  enum { MOST_THREADS = 64 };
  const OwnOp *own = own_of(op);
  if (!is_cpu_target(c)) return (Geometry){(uint32_t)own->grid, (uint32_t)own->block};
  if (own->parts < 0 || own_scratch(c, op) > 0) return (Geometry){1, 1};
  return (Geometry){(uint32_t)(own->parts < MOST_THREADS ? own->parts : MOST_THREADS), 1};
}
