/* The common type of inputs of different types: PyTorch's ordinary promotion. passes/precision.c
 * applies the region to it. */
#include "compiler/graph/ops.h"
#include <assert.h>

bool dtype_is_integer(DType d)
{
  return d == AMPC_I32 || d == AMPC_I64 || d == AMPC_U8;
}

/* Returns the order of integer types in promotion; bool is the lowest. */
static int integer_width(DType d)
{
  return d == AMPC_I64 ? 3 : d == AMPC_I32 ? 2 : d == AMPC_U8 ? 1 : 0;
}

/* i32 with u8 is i32. i64 with f16 is f16: a float takes precedence over any integer. */
DType dtype_promote(DType a, DType b)
{
  if (a == b) return a;
  if (dtype_is_float(a) && dtype_is_float(b)) return AMPC_F32; /* also f16 with bf16 */
  if (dtype_is_float(a)) return a;
  if (dtype_is_float(b)) return b;
  return integer_width(a) > integer_width(b) ? a : b;
}

/* Means "no input of this class" in variables that otherwise hold a DType. */
enum { NO_TYPE = AMPC_DTYPE_COUNT };

static int join(int a, DType b)
{
  return a == NO_TYPE ? (int)b : (int)dtype_promote((DType)a, b);
}

/* Combines the types of two classes of inputs. `higher` decides: an f16 tensor with dimensions
 * times an f32 scalar is f16. `lower` matters only if it is of a higher kind (bool < integer <
 * float): an i64 tensor times an f32 scalar is f32. */
static int combine(int higher, int lower)
{
  if (higher == NO_TYPE) return lower;
  if (lower == NO_TYPE || dtype_is_float((DType)higher)) return higher;
  if (higher == AMPC_BOOL || dtype_is_float((DType)lower)) return join(higher, (DType)lower);
  return higher;
}

/* Ordinary promotion of inputs [first, end) of n. Tensors with dimensions decide, then tensors
 * without, then numbers. A later class matters only if its kind (bool, integer, float) is
 * higher. */
static DType promote(Compile *c, const Node *n, uint32_t first, uint32_t end)
{
  int with_dims = NO_TYPE, without = NO_TYPE, numbers = NO_TYPE;
  for (uint32_t i = first; i < end; i++) {
    if (!n->in[i].id) continue;
    const Node *in = ir_in(c, n, i);
    int *kind = in->weak ? &numbers : in->rank ? &with_dims : &without;
    *kind = join(*kind, in->dtype);
  }
  int type = combine(with_dims, combine(without, numbers));
  assert(type != NO_TYPE);
  return (DType)type;
}

/* The range is all of matmul(x, y), x and y of where(condition, x, y), and only x of batch_norm(x,
 * mean, ..), because its other inputs already have the types that the op expects. */
uint32_t op_mixed_inputs(const Node *n, uint32_t *first)
{
  *first = op_has(n, T_condition) ? 1 : 0;
  if (op_has(n, T_mixes) || op_by_library(op_of(n))) return n->n_in;
  return *first + 1;
}

DType op_common_type(Compile *c, const Node *n)
{
  uint32_t first, end = op_mixed_inputs(n, &first);
  DType type = promote(c, n, first, end);
  return op_has(n, T_to_float) && !dtype_is_float(type) ? AMPC_F32 : type;
}
