/* Where an element lies: shapes, strides and the shortest arithmetic that gets there.
 *
 * An Access gives each axis of a loop a stride, in elements of the operand. For a loop of [32,
 * 512]: the result has strides 512, 1; a bias [512] has 0, 1; a transposed x [512, 32] has 1, 32.
 */
#include "kernel_parts.h"
#include <string.h>

LoopShape loop_shape_of(const Node *n)
{
  LoopShape s = {.rank = n->rank};
  memcpy(s.dim, n->dim, sizeof s.dim);
  return s;
}

int64_t loop_elements(const LoopShape *s)
{
  int64_t n = 1;
  for (uint32_t i = 0; i < s->rank; i++) n *= s->dim[i];
  return n;
}

Access access_whole(const LoopShape *s)
{
  Access a = {.offset = 0};
  int64_t step = 1;
  for (uint32_t i = s->rank; i > 0; i--) {
    a.stride[i - 1] = step;
    step *= s->dim[i - 1];
  }
  return a;
}

/* Axes are aligned at the right; those of size 1, or that n lacks, are not walked: stride 0. */
Access access_broadcast(const LoopShape *s, const Node *n)
{
  Access a = {.offset = 0};
  int64_t step = 1;
  for (uint32_t i = 1; i <= n->rank && i <= s->rank; i++) {
    int64_t dim = n->dim[n->rank - i];
    a.stride[s->rank - i] = dim == 1 ? 0 : step;
    step *= dim;
  }
  return a;
}

static int64_t axis_of(const Node *n, int64_t axis)
{
  return axis < 0 ? axis + n->rank : axis;
}

/* A transpose exchanges two strides, a slice starts further on and takes larger steps: no bytes are
 * moved, so such a node can be a load of its reader. */
Access access_moved(Compile *c, const Node *n)
{
  const Node *x = ir_in(c, n, 0);
  LoopShape from = loop_shape_of(x);
  Access a = access_whole(&from);
  if (n->op == OP_transpose) {
    int64_t i = axis_of(n, attr_int(n, "dim0")), k = axis_of(n, attr_int(n, "dim1")),
            kept = a.stride[i];
    a.stride[i] = a.stride[k];
    a.stride[k] = kept;
    return a;
  }
  if (n->op == OP_permute) {
    Access whole = a;
    for (uint32_t i = 0; i < n->rank; i++) a.stride[i] = whole.stride[ir_permuted_axis(n, i)];
    return a;
  }
  if (n->op == OP_slice) {
    int64_t axis = axis_of(n, attr_int(n, "dim"));
    a.offset = attr_int(n, "start") * a.stride[axis];
    a.stride[axis] *= attr_int(n, "step");
    return a;
  }
  LoopShape to = loop_shape_of(n);
  return access_broadcast(&to, x);
}

/* The slot of a gradient lies in the order of the loop, whatever the gradient's shape is called. */
Access access_operand(const Kernel *k, const LoopShape *s, const Node *n, uint32_t input)
{
  if (op_of(n)->tmpl == TMPL_move) return access_moved(k->c, n);
  const Node *x = value_shape(k->g, n->in[input]);
  bool slot = op_has(n, T_effect) && ir_elements(x) == loop_elements(s);
  return slot ? access_whole(s) : access_broadcast(s, x);
}

/* ---- collapsing ---- */

static void drop_axis(LoopShape *s, Access *a, uint32_t n, uint32_t axis)
{
  for (uint32_t i = axis; i + 1 < s->rank; i++) {
    s->dim[i] = s->dim[i + 1];
    for (uint32_t k = 0; k < n; k++) a[k].stride[i] = a[k].stride[i + 1];
  }
  s->rank--;
}

/* Are axes `axis` and the next one a single axis for every operand? [4, 8] with strides 8, 1 is
 * [32] with 1. */
static bool walks_on(const LoopShape *s, const Access *a, uint32_t n, uint32_t axis)
{
  for (uint32_t k = 0; k < n; k++)
    if (a[k].stride[axis] != a[k].stride[axis + 1] * s->dim[axis + 1]) return false;
  return true;
}

/* Axes of size 1 are dropped first: they would keep their neighbours apart. */
void loop_collapse(LoopShape *s, Access *a, uint32_t n)
{
  for (uint32_t i = s->rank; i > 0; i--)
    if (s->dim[i - 1] == 1) drop_axis(s, a, n, i - 1);
  for (uint32_t i = s->rank; i > 1; i--) {
    if (!walks_on(s, a, n, i - 2)) continue;
    s->dim[i - 1] *= s->dim[i - 2];
    drop_axis(s, a, n, i - 2);
  }
}

/* ---- text ---- */

/* "r * 512", and "r" for stride 1. */
static const char *times(const Kernel *k, const char *term, int64_t stride)
{
  if (stride == 1) return term;
  return arena_printf(k->c->arena, "%s * %lld", term, (long long)stride);
}

/* A NULL term is zero and is left out. */
static const char *plus(const Kernel *k, const char *a, const char *b)
{
  if (!a || !b) return a ? a : b;
  return arena_printf(k->c->arena, "%s + %s", a, b);
}

/* One variable counts through several axes: with r over [4, 32] of strides 0 and 512, axis 0 is r /
 * 32 and axis 1 is r % 32, so the part is "r % 32 * 512". Axes with stride 0 need no arithmetic at
 * all. */
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
