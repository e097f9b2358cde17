/* The index of an element as text: the shortest arithmetic in the variables of a loop.
 * compiler/command/walk.h explains which values are walked in which order. */
#include "kernel_parts.h"

/* Returns "r * 512", and "r" for stride 1. */
static const char *times(const Kernel *k, const char *term, int64_t stride)
{
  if (stride == 1) return term;
  return arena_printf(k->c->arena, "%s * %lld", term, (long long)stride);
}

/* Returns the sum. A NULL term is 0 and is left out. */
static const char *plus(const Kernel *k, const char *a, const char *b)
{
  if (!a || !b) return a ? a : b;
  return arena_printf(k->c->arena, "%s + %s", a, b);
}

/* Returns the index along axes through which one variable counts. With r over [4, 32] and strides 0
 * and 512, axis 0 is r / 32 and axis 1 is r % 32, so the part is "r % 32 * 512". Axes with stride 0
 * need no arithmetic. */
const char *index_part(const Kernel *k, const LoopShape *s, const Access *a, uint32_t from,
                       uint32_t to, const char *variable)
{
  LoopShape part = {.rank = to - from};
  Access own = {.offset = 0};
  for (uint32_t i = from; i < to; i++) {
    part.dim[i - from] = s->dim[i];
    own.stride[i - from] = a->stride[i];
  }
  loop_collapse(&part, &own, 1);
  const char *sum = NULL;
  int64_t below = 1;
  for (uint32_t i = part.rank; i > 0; i--) {
    const char *term = variable;
    if (below > 1) term = arena_printf(k->c->arena, "%s / %lld", term, (long long)below);
    if (i > 1) term = arena_printf(k->c->arena, "%s %% %lld", term, (long long)part.dim[i - 1]);
    if (own.stride[i - 1]) sum = plus(k, times(k, term, own.stride[i - 1]), sum);
    below *= part.dim[i - 1];
  }
  return sum;
}

const char *index_sum(const Kernel *k, const char *a, const char *b, const char *c, int64_t offset)
{
  const char *sum = plus(k, plus(k, a, b), c);
  if (!sum) return arena_printf(k->c->arena, "%lld", (long long)offset);
  if (!offset) return sum;
  return arena_printf(k->c->arena, "%s + %lld", sum, (long long)offset);
}
