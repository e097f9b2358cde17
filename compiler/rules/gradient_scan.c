/* Gradient rules of the ops that cross the border of a loop: Note [loops] in node.h. */
#include "gradient.h"
#include <assert.h>

/* The initial value receives the gradient of the carried value. */
void grad_carry(Compile *c, Value n, Value dy, Value *out_dx)
{
  (void)c, (void)n;
  out_dx[0] = dy;
}

/* The rule of the other ops is never called: passes/loop_gradient.c differentiates whole loops. */
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
