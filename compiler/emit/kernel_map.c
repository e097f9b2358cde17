/* Elementwise groups and moves: one loop over the shape. Axes that all operands walk alike are
 * joined, and what is left of the index arithmetic is printed. */
#include "kernel_parts.h"
#include <string.h>

typedef struct Map {
  Kernel *k;
  LoopShape shape, left; /* of the nodes; and what is left of it once axes are joined */
  VEC(Access) walks;     /* of all operands; the first one is in order */
  Access *joined;        /* the same over `left` */
} Map;

/* [32, 512] + [512] cannot be one axis, [32, 512] + [32, 512] can: axes are joined where all
 * operands allow it. Fewer axes are fewer divisions in the index. */
static void collapse(Map *m)
{
  Arena *a = m->k->c->arena;
  vec_push(a, &m->walks, access_whole(&m->shape));
  for (uint32_t i = 0; i < m->k->group->n; i++) {
    const Node *n = ir_node(m->k->g, m->k->group->nodes[i]);
    for (uint32_t k = 0; k < n->n_in; k++)
      if (n->in[k].id) vec_push(a, &m->walks, access_operand(m->k, &m->shape, n, k));
  }
  m->left = m->shape;
  m->joined = arena_array(a, Access, m->walks.n);
  memcpy(m->joined, m->walks.at, m->walks.n * sizeof *m->joined);
  loop_collapse(&m->left, m->joined, m->walks.n);
}

/* The place of an operand in the loop's variables: "i" where it lies as the result does, else
 * strides over r and c, such as "c" for a bias or "r % 32 * 512 + c". A Chain calls it with the
 * access over the uncollapsed shape; `at` finds the same one in `joined`. */
static const char *index_of(const void *frame, const Access *walk)
{
  const Map *m = frame;
  const Kernel *k = m->k;
  const LoopShape *s = &m->left;
  uint32_t at = 0;
  while (memcmp(&m->walks.at[at], walk, sizeof *walk) != 0) at++;
  const Access *a = &m->joined[at], *whole = &m->joined[0];
  if (a->offset == 0 && memcmp(a->stride, whole->stride, s->rank * sizeof *a->stride) == 0)
    return "i";
  if (s->rank < 2) return index_sum(k, index_part(k, s, a, 0, s->rank, "i"), NULL, NULL, a->offset);
  return index_sum(k, index_part(k, s, a, 0, s->rank - 1, "r"),
                   index_part(k, s, a, s->rank - 1, s->rank, "c"), NULL, a->offset);
}

/* One axis left: GRID_LOOP over i. More: GRID_ROWS, rows r of contiguous columns c, so that the
 * inner loop has no division. */
static void begin_loop(const Map *m)
{
  const Kernel *k = m->k;
  const LoopShape *s = &m->left;
  long long all = loop_elements(s), columns = s->rank ? s->dim[s->rank - 1] : 1;
  if (s->rank < 2) {
    EMIT(k->p, "GRID_LOOP(%s, i, %lld) {\n", k->index_type, all);
    k->p->indent++;
  } else {
    EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", k->index_type, all / columns, columns);
    k->p->indent++;
    EMIT(k->p, "const %s i = r * %lld + c;\n", k->index_type, columns);
  }
}

/* A single move: bytes go as they are, without a round trip through real. */
static void put_move(Map *m, Value v)
{
  const Kernel *k = m->k;
  const Node *n = ir_node(k->g, v);
  uint32_t from = argument_of(k, n->in[0]);
  const char *to = k->arg_names[argument_of(k, v)];
  if (from == k->args.n) {
    const char *x = load_operand(k, n->in[0], "0").text;
    EMIT(k->p, "%s[i] = %s; // %%%u %s\n", to, stored(k, n->dtype, x), v.id, op_of(n)->name);
    return;
  }
  Access a = access_operand(k, &m->shape, n, 0);
  EMIT(k->p, "%s[i] = %s[%s]; // %%%u %s\n", to, k->arg_names[from], index_of(m, &a), v.id,
       op_of(n)->name);
}

/* The loop, the loads that several nodes need, then a statement for each node. */
void emit_map(Kernel *k)
{
  Value first = k->group->nodes[0];
  Map m = {.k = k, .shape = loop_shape_of(node_walked(k->g, first))};
  collapse(&m);
  begin_loop(&m);
  if (op_of(ir_node(k->g, first))->tmpl == TMPL_move && k->group->n == 1) {
    put_move(&m, first);
  } else {
    Chain ch;
    chain_begin(&ch, k, m.shape, index_of, &m);
    for (uint32_t i = 0; i < k->group->n; i++) chain_add(&ch, k->group->nodes[i]);
    chain_put_loads(&ch);
    for (uint32_t i = 0; i < k->group->n; i++) chain_put_node(&ch, k->group->nodes[i], "i");
  }
  k->p->indent--;
  EMIT(k->p, "}\n");
}
