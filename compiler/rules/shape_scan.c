/* Shape rules of the ops that cross the border of a loop: Note [loops] in node.h. */
#include "rules.h"
#include <assert.h>
#include <string.h>

static const Loop *loop_of(const Compile *c, const Node *n)
{
  return &c->graph->loops.at[attr_int(n, "loop")];
}

/* A carried number becomes a tensor, because it changes in the next iteration. */
bool shape_carry(Compile *c, Node *n)
{
  rule_like(n, ir_in(c, n, 0), ir_in(c, n, 0)->dtype);
  n->weak = false;
  return true;
}

bool shape_next(Compile *c, Node *n)
{
  const Node *carry = ir_in(c, n, 0);
  assert(ir_same_dims(carry, ir_in(c, n, 1)));
  rule_like(n, carry, carry->dtype);
  n->weak = false;
  return true;
}

/* A sequence [T, n, 10] becomes [n, 10] in each iteration. */
bool shape_turn(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  assert(x->rank && x->dim[0] == loop_of(c, n)->count);
  n->dtype = x->dtype;
  return rule_set_dims(c, n, x->rank - 1u, x->dim + 1);
}

bool shape_stack(Compile *c, Node *n)
{
  const Node *x = ir_in(c, n, 0);
  int64_t dim[MAX_RANK + 1] = {loop_of(c, n)->count};
  memcpy(dim + 1, x->dim, x->rank * sizeof *dim);
  n->dtype = x->dtype;
  n->weak = false;
  return rule_set_dims(c, n, x->rank + 1u, dim);
}
