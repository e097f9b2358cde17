/* Elementwise groups and moves: one loop over the shape. Axes that all operands walk alike are
 * joined, and what is left of the index arithmetic is printed. */
#include "kernel_parts.h"
#include <string.h>

typedef struct Map {
  Kernel *k;
  Chain chain;
  Space space;   /* what is left of the shape once axes are joined */
  Access *walks; /* of the loads, and last the one in order */
} Map;

static void collapse(Map *m)
{
  uint32_t n = m->chain.loads.n;
  m->space = m->chain.space;
  m->walks = arena_array(m->k->c->arena, Access, n + 1);
  for (uint32_t i = 0; i < n; i++) m->walks[i] = m->chain.loads.at[i].access;
  m->walks[n] = access_whole(&m->space);
  space_collapse(&m->space, m->walks, n + 1);
}

static const char *index_of(const Map *m, const Access *a)
{
  const Kernel *k = m->k;
  const Space *s = &m->space;
  const Access *whole = &m->walks[m->chain.loads.n];
  if (a->offset == 0 && memcmp(a->stride, whole->stride, s->rank * sizeof *a->stride) == 0)
    return "i";
  if (s->rank < 2) return index_sum(k, index_part(k, s, a, 0, s->rank, "i"), NULL, NULL, a->offset);
  return index_sum(k, index_part(k, s, a, 0, s->rank - 1, "r"),
                   index_part(k, s, a, s->rank - 1, s->rank, "c"), NULL, a->offset);
}

static void begin_loop(const Map *m)
{
  const Kernel *k = m->k;
  const Space *s = &m->space;
  long long all = space_elements(s), columns = s->rank ? s->dim[s->rank - 1] : 1;
  if (s->rank < 2) {
    EMIT(k->p, "GRID_LOOP(%s, i, %lld) {\n", k->index_type, all);
    k->p->indent++;
  } else {
    EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", k->index_type, all / columns, columns);
    k->p->indent++;
    EMIT(k->p, "const %s i = r * %lld + c;\n", k->index_type, columns);
  }
}

/* Bytes are moved as they are. */
static void put_move(Map *m, Value v)
{
  const Kernel *k = m->k;
  const Node *n = ir_node(k->g, v);
  uint32_t from = argument_of(k, n->in[0]);
  const char *to = k->arg_names[argument_of(k, v)];
  if (from == k->args.n) {
    const char *x = load_operand(k, n->in[0], "0").text;
    EMIT(k->p, "%s[i] = %s; // %%%u %s\n", to, stored(k, n->dtype, x), v.id, op_info[n->op].name);
    return;
  }
  EMIT(k->p, "%s[i] = %s[%s]; // %%%u %s\n", to, k->arg_names[from], index_of(m, &m->walks[0]),
       v.id, op_info[n->op].name);
}

void emit_map(Kernel *k)
{
  Value first = k->group->nodes[0];
  Map m = {.k = k};
  chain_begin(&m.chain, k, space_of(ir_node(k->g, first)));
  collapse(&m);
  begin_loop(&m);
  uint32_t n = m.chain.loads.n;
  const char **index = arena_array(k->c->arena, const char *, n + 1);
  for (uint32_t i = 0; i < n; i++) index[i] = index_of(&m, &m.walks[i]);
  if (op_info[ir_node(k->g, first)->op].tmpl == TMPL_move && k->group->n == 1)
    put_move(&m, first);
  else
    chain_put(&m.chain, index, "i");
  k->p->indent--;
  EMIT(k->p, "}\n");
}
