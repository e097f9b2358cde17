/* Gradient rules of what crosses the border of a loop: Note [loops] in ir.h. */
#include "gradient.h"
#include <assert.h>

/* What is carried begins as its initial value. */
void grad_carry(Compile *c, Value n, Value dy, Value *out_dx)
{
  (void)c, (void)n;
  out_dx[0] = dy;
}

/* The others stand in a loop, which is differentiated as a whole: passes/loop_gradient.c. */
static void never(void)
{
  assert(!"a loop is differentiated as a whole");
}

void grad_next(Compile *c, Value n, Value dy, Value *out_dx)
{
  (void)c, (void)n, (void)dy, (void)out_dx;
  never();
}

void grad_turn(Compile *c, Value n, Value dy, Value *out_dx)
{
  (void)c, (void)n, (void)dy, (void)out_dx;
  never();
}

void grad_stack(Compile *c, Value n, Value dy, Value *out_dx)
{
  (void)c, (void)n, (void)dy, (void)out_dx;
  never();
}
