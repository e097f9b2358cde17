/* Elementwise groups and moves: one loop over the shape. Axes that all operands walk in the same
 * order are merged, which saves index arithmetic. If the last axis allows it, a thread processes a
 * vector at once: Note [vectors] in compiler/command/walk.c. */
#include "kernel_parts.h"

typedef struct Map {
  Kernel *k;
  MapWalk walk;
  const char *width; /* walk.vector as text */
  Chain chain;
} Map;

/* ---- the loop ---- */

/* Opens the loop. With one axis left it is GRID_LOOP over i. With more it is GRID_ROWS over rows r
 * of contiguous columns c, so that the inner loop has no division. */
static void begin_elements(const Map *m)
{
  const Kernel *k = m->k;
  const LoopShape *s = &m->walk.left;
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

/* Opens the loop over vectors; i is the first element of a vector. A launch of several parts has
 * the grid of its largest part, so the loop of a part must work with any grid. */
static void begin_vectors(const Map *m)
{
  const Kernel *k = m->k;
  const LoopShape *s = &m->walk.left;
  const char *walk = k->is_part ? "GRID" : "EACH", *many = k->is_part ? "S" : "";
  long long all = loop_elements(s), columns = s->dim[s->rank - 1];
  if (s->rank < 2)
    EMIT(k->p, "%s_VECTOR%s(%u, %s, i, %lld) {\n", walk, many, m->walk.vector, k->index_type, all);
  else if (m->walk.rows > 1)
    EMIT(k->p, "GRID_ROWS_VECTORS(%u, %s, r, c, %lld, %lld, %u) {\n", m->walk.vector, k->index_type,
         all / columns, columns, m->walk.rows);
  else
    EMIT(k->p, "%s_ROW_VECTOR%s(%u, %s, r, c, %lld, %lld) {\n", walk, many, m->walk.vector,
         k->index_type, all / columns, columns);
  k->p->indent++;
}

/* Begins the loop over the rows of a thread, if there are several, and declares i. */
static void begin_row(const Map *m)
{
  const Kernel *k = m->k;
  const LoopShape *s = &m->walk.left;
  long long all = loop_elements(s), columns = s->dim[s->rank - 1];
  if (m->walk.rows > 1) {
    EMIT(k->p, "EACH_OF_ROWS(%s, r, %lld, %u) {\n", k->index_type, all / columns, m->walk.rows);
    k->p->indent++;
  }
  if (s->rank > 1) EMIT(k->p, "const %s i = r * %lld + c;\n", k->index_type, columns);
}

static void end_loop(const Map *m)
{
  m->k->p->indent--;
  EMIT(m->k->p, "}\n");
}

/* Loads the operands with vectors: those that all rows of a thread share, or the others. */
static void put_loads(const Map *m, bool shared)
{
  for (uint32_t i = 0; i < m->chain.loads.n; i++) {
    const Load *l = &m->chain.loads.at[i];
    bool by_row = m->walk.rows == 1 || index_has(&l->index, VAR_i) || index_has(&l->index, VAR_r);
    bool vector = index_counts(&l->index, VAR_i) || index_counts(&l->index, VAR_c);
    if (vector && by_row != shared)
      put_vector(m->k, m->width, argument_of(m->k, l->value), &l->index);
  }
}

/* Declares the vectors of results. The slot of a gradient is also loaded. */
static void put_results(const Map *m)
{
  Kernel *k = m->k;
  const Index own = index_at(VAR_i);
  for (uint32_t i = 0; i < k->group->n; i++) {
    bool adds = op_has(ir_node(k->g, k->group->nodes[i]), T_effect);
    put_result_vector(k, adds, m->width, argument_of(k, k->group->nodes[i]), &own);
  }
}

static void put_draws(const Map *m)
{
  const Index own = index_at(VAR_i);
  for (uint32_t i = 0; i < m->k->group->n; i++)
    put_drawn_vector(m->k, ir_node(m->k->g, m->k->group->nodes[i]), m->walk.vector, &own);
}

/* ---- what is computed ---- */

/* Prints a single move, which copies bytes unchanged, without a conversion to real and back. */
static void put_move(const Map *m, Value v)
{
  const Kernel *k = m->k;
  const Node *n = ir_node(k->g, v);
  uint32_t from = argument_of(k, n->in[0]);
  const Index own = index_at(VAR_i), first = {0};
  const char *x = from == k->args.n ? stored(k, n->dtype, load_operand(k, n->in[0], &first).text)
                                    : element_place(k, from, access_of(k, v)->element);
  EMIT(k->p, "%s = %s; // %%%u %s\n", element_place(k, pointer_of(k, v), &own), x, v.id,
       op_of(n)->name);
}

/* Prints the loads that several nodes need, then a statement for each node. */
static void put_elements(Map *m)
{
  Kernel *k = m->k;
  Value first = k->group->nodes[0];
  if (op_of(ir_node(k->g, first))->tmpl == TMPL_move && k->group->n == 1) {
    put_move(m, first);
    return;
  }
  chain_put_loads(&m->chain);
  for (uint32_t i = 0; i < k->group->n; i++)
    chain_put_node(&m->chain, k->group->nodes[i], index_at(VAR_i));
}

static void emit_vectors(Map *m)
{
  Kernel *k = m->k;
  k->by_vectors = true;
  begin_vectors(m);
  if (m->walk.rows > 1) put_loads(m, true);
  begin_row(m);
  put_loads(m, false);
  put_results(m);
  put_draws(m);
  EMIT(k->p, "VECTOR_EACH(%u, j) {\n", m->walk.vector);
  k->p->indent++;
  put_elements(m);
  end_loop(m);
  store_vectors(k, 0);
  if (m->walk.rows > 1) end_loop(m);
  end_loop(m);
}

void emit_map(Kernel *k)
{
  Map m = {.k = k, .walk = *k->part->map};
  m.width = arena_printf(k->c->arena, "%u", m.walk.vector);
  chain_begin(&m.chain, k);
  for (uint32_t i = 0; i < k->group->n; i++) chain_add(&m.chain, k->group->nodes[i]);
  if (m.walk.vector > 1) {
    emit_vectors(&m);
    return;
  }
  begin_elements(&m);
  put_elements(&m);
  end_loop(&m);
}
