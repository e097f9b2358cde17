/* Moves that are not one affine walk: cat and the gradient of a slice. */
#include "kernel_parts.h"

static int64_t product(const Node *n, uint32_t from, uint32_t to)
{
  int64_t all = 1;
  for (uint32_t i = from; i < to; i++) all *= n->dim[i];
  return all;
}

static uint32_t axis_of(const Node *n, int64_t axis)
{
  return (uint32_t)(axis < 0 ? axis + n->rank : axis);
}

/* One loop an input: [outer, its part of the axis times inner] into [outer, all]. */
static void put_part(Kernel *k, Value in, uint32_t axis, int64_t row, int64_t *at)
{
  const Node *x = ir_node(k->g, in);
  const Node *n = ir_node(k->g, k->group->nodes[0]);
  int64_t outer = product(x, 0, axis), own = product(x, axis, x->rank);
  if (outer == 0 || own == 0) return;
  const char *to = k->arg_names[argument_of(k, k->group->nodes[0])];
  const char *index = arena_printf(k->c->arena, "r * %lld + c", (long long)own);
  uint32_t from = argument_of(k, in);
  const char *element = from < k->args.n
                            ? arena_printf(k->c->arena, "%s[%s]", k->arg_names[from], index)
                            : stored(k, n->dtype, load_operand(k, in, "0").text);
  EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", k->index_type, (long long)outer,
       (long long)own);
  const char *place = arena_printf(k->c->arena, "r * %lld + c", (long long)row);
  EMIT(k->p, "  %s[%s] = %s;\n}\n", to, index_sum(k, place, NULL, NULL, *at), element);
  *at += own;
}

void emit_cat(Kernel *k)
{
  const Node *n = ir_node(k->g, k->group->nodes[0]);
  uint32_t axis = axis_of(n, n->attr[0].i);
  int64_t at = 0, row = product(n, axis, n->rank);
  for (uint32_t i = 0; i < n->n_in; i++) put_part(k, n->in[i], axis, row, &at);
}

/* Zero but where the slice was: element d of the axis came from element (d - start) / step. */
void emit_slice_backward(Kernel *k)
{
  const Node *n = ir_node(k->g, k->group->nodes[0]), *dy = ir_node(k->g, n->in[0]);
  uint32_t axis = axis_of(n, n->attr[0].i);
  long long start = n->attr[1].i, step = n->attr[2].i, size = n->dim[axis];
  long long count = dy->dim[axis], outer = product(n, 0, axis);
  long long inner = product(n, axis + 1, n->rank);
  const char *to = k->arg_names[argument_of(k, k->group->nodes[0])];
  uint32_t from = argument_of(k, n->in[0]);
  EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", k->index_type, outer * size, inner);
  k->p->indent++;
  EMIT(k->p, "const %s d = r %% %lld - %lld;\n", k->index_type, size, start);
  const char *fits = step == 1 ? "" : arena_printf(k->c->arena, " && d %% %lld == 0", step);
  EMIT(k->p, "const int kept = d >= 0 && d < %lld%s;\n", (count - 1) * step + 1, fits);
  const char *row = step == 1 ? "d" : arena_printf(k->c->arena, "d / %lld", step);
  const char *element = from < k->args.n
                            ? arena_printf(k->c->arena, "%s[(r / %lld * %lld + %s) * %lld + c]",
                                           k->arg_names[from], size, count, row, inner)
                            : stored(k, n->dtype, load_operand(k, n->in[0], "0").text);
  EMIT(k->p, "%s[r * %lld + c] = kept ? %s : 0; // %%%u slice_backward\n", to, inner, element,
       k->group->nodes[0].id);
  k->p->indent--;
  EMIT(k->p, "}\n");
}
