/* Where kernels read their operands: see access.h. */
#include "access.h"
#include "args.h"
#include <string.h>

/* ---- indices ---- */

Index index_at(LoopVariable of)
{
  return (Index){.n = 1, .term[0] = {.of = of, .over = 1, .stride = 1}};
}

Index index_each(LoopVariable of)
{
  Index x = index_at(of);
  x.term[0].each = true;
  return x;
}

void index_add_term(Index *x, LoopVariable of, int64_t stride)
{
  if (stride) x->term[x->n++] = (IndexTerm){.of = of, .over = 1, .stride = stride};
}

/* With r over [4, 32] and strides 0 and 512, axis 0 is r / 32 and axis 1 is r % 32, so the term is
 * "r % 32 * 512". Axes with stride 0 need no arithmetic. */
void index_add(Index *x, const LoopShape *s, const Access *a, uint32_t from, uint32_t to,
               IndexTerm through)
{
  LoopShape part = {.rank = to - from};
  Access own = {.offset = 0};
  for (uint32_t i = from; i < to; i++) {
    part.dim[i - from] = s->dim[i];
    own.stride[i - from] = a->stride[i];
  }
  loop_collapse(&part, &own, 1);
  for (uint32_t i = 0; i < part.rank; i++) {
    if (!own.stride[i]) continue;
    through.over = dims_product(part.dim + i + 1, part.rank - i - 1);
    through.size = i ? part.dim[i] : 0;
    through.stride = own.stride[i];
    x->term[x->n++] = through;
  }
}

static bool same_term(const IndexTerm *a, const IndexTerm *b)
{
  return a->of == b->of && a->each == b->each && a->over == b->over && a->size == b->size &&
         a->stride == b->stride;
}

bool index_equal(const Index *a, const Index *b)
{
  bool same = a->n == b->n && a->offset == b->offset;
  for (uint32_t i = 0; i < a->n && same; i++) same = same_term(&a->term[i], &b->term[i]);
  return same;
}

bool index_is(const Index *x, LoopVariable of)
{
  const IndexTerm *t = &x->term[0];
  return x->n == 1 && !x->offset && t->of == of && t->over == 1 && !t->size && t->stride == 1;
}

bool index_has(const Index *x, LoopVariable of)
{
  bool any = false;
  for (uint32_t i = 0; i < x->n; i++) any |= x->term[i].of == of;
  return any;
}

bool index_counts(const Index *x, LoopVariable of)
{
  const IndexTerm *last = &x->term[x->n ? x->n - 1 : 0];
  return x->n && last->of == of && !last->each && last->over == 1 && !last->size &&
         last->stride == 1;
}

/* ---- nodes ---- */

static NodeAccess *accesses(Compile *c, const Group *p)
{
  NodeAccess *out = arena_array(c->arena, NodeAccess, p->n);
  for (uint32_t i = 0; i < p->n; i++)
    out[i].element = arena_array(c->arena, Index, ir_node(c->graph, p->nodes[i])->n_in + 1u);
  return out;
}

/* ---- elementwise groups ---- */

/* Returns the index of operand `at` of m->walks: "i" if the operand has the layout of the result,
 * otherwise strides over r and c, such as "c" for a bias or "r % 32 * 512 + c". If the operand has
 * no vectors, each element has its own index: "(c + j) * 32 + r". */
static Index map_index(const MapWalk *m, uint32_t at)
{
  const LoopShape *s = &m->left;
  uint32_t last = s->rank ? s->rank - 1 : 0;
  const Access *a = &m->joined[at], *whole = &m->joined[0];
  if (a->offset == 0 && memcmp(a->stride, whole->stride, s->rank * sizeof *a->stride) == 0)
    return index_at(VAR_i);
  bool each = m->vector > 1 && !walk_has_vectors(m, a);
  Index x = {.offset = a->offset};
  index_add(&x, s, a, 0, last, (IndexTerm){.of = VAR_r});
  index_add(&x, s, a, last, s->rank, (IndexTerm){.of = last ? VAR_c : VAR_i, .each = each});
  return x;
}

/* Returns the index of an input of n, which has T_blocks: "(i + j) / 64". */
static Index block_index(const Graph *g, const MapWalk *m, const Node *n, uint32_t input)
{
  Index x = index_at(VAR_i);
  x.term[0].over = ir_elements(n) / ir_elements(ir_node(g, n->in[input]));
  x.term[0].each = x.term[0].over > 1 && m->vector > 1;
  return x;
}

/* The last of m->walks is that of results with gaps, if there are any: Note [gaps]. */
KernelAccess map_access(Compile *c, const Group *p, const MapWalk *m)
{
  NodeAccess *node = accesses(c, p);
  uint32_t at = 1;
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(c->graph, p->nodes[i]);
    for (uint32_t k = 0; k < n->n_in; k++)
      if (n->in[k].id) node[i].element[k] = map_index(m, at++);
    for (uint32_t k = 0; k < n->n_in && op_has(n, T_blocks); k++)
      node[i].element[k] = block_index(c->graph, m, n, k);
  }
  return (KernelAccess){node, index_at(VAR_i), map_index(m, m->walks.n - 1)};
}

/* ---- rows ---- */

RowLoops row_loops(const Graph *g, const Group *p)
{
  const Node *x = ir_node(g, ir_node(g, p->anchor)->in[0]);
  RowLoops r = {.shape = row_shape(g, p->anchor), .x = x, .space = loop_shape_of(x)};
  r.columns = row_has_columns(&r.shape);
  if (r.columns)
    r.tile = row_tile(&r.shape);
  else
    r.walk = row_walk(&r.shape);
  r.vector = r.columns ? r.tile.vector : r.walk.vector;
  r.odd = !r.columns && r.shape.length % r.vector;
  for (uint32_t i = 0; i < p->n; i++)
    if (op_of(ir_node(g, p->nodes[i]))->tmpl == TMPL_row) r.flat |= row_is_flat(g, p->nodes[i]);
  return r;
}

bool is_row_element(const Graph *g, const RowLoops *r, Value v)
{
  bool map = op_of(ir_node(g, v))->tmpl != TMPL_row;
  return map && !r->flat && ir_same_dims(node_walked(g, v), r->x);
}

/* True if each vector of the operand begins at a multiple of its size, so that one access loads
 * it. */
static bool is_aligned(const RowLoops *r, const Access *a)
{
  bool whole = a->offset % r->vector == 0;
  for (uint32_t i = 0; i < r->shape.from; i++) whole &= a->stride[i] % r->vector == 0;
  return whole;
}

/* Returns the index of an operand that is read element by element: `o` or `row` for the axes before
 * the reduced ones, `c` for the reduced ones, `column` for the axes after them. If the elements of
 * a vector are not contiguous in the operand, each has its own index: c + j, or column + j. */
static Index element_index(const RowLoops *r, const Access *a)
{
  const LoopShape *s = &r->space;
  Access whole = access_whole(s);
  Index x = {0}, along = {0}, columns = {0};
  if (memcmp(&whole, a, sizeof whole) == 0) return r->odd ? index_each(VAR_i) : index_at(VAR_i);
  index_add(&along, s, a, r->shape.from, r->shape.to, (IndexTerm){.of = VAR_c});
  index_add(&columns, s, a, r->shape.to, s->rank, (IndexTerm){.of = VAR_column});
  bool vectors = index_is(&along, VAR_c) && is_aligned(r, a);
  IndexTerm c = {.of = VAR_c, .each = !r->columns && !vectors};
  IndexTerm column = {.of = VAR_column, .each = !index_is(&columns, VAR_column)};
  index_add(&x, s, a, 0, r->shape.from, (IndexTerm){.of = r->columns ? VAR_o : VAR_row});
  index_add(&x, s, a, r->shape.from, r->shape.to, c);
  index_add(&x, s, a, r->shape.to, s->rank, column);
  return x;
}

Index row_result_index(const RowLoops *r)
{
  if (!r->columns) return index_at(VAR_row);
  Index x = {0};
  index_add_term(&x, VAR_o, r->shape.inner);
  index_add_term(&x, VAR_column, 1);
  return x;
}

/* Returns the index of an operand of an elementwise node with one value per row, such as in `sum(x,
 * dim=1) / n`. `s`: the shape of these values. */
static Index row_index(const RowLoops *r, const LoopShape *s, const Access *a)
{
  Access whole = access_whole(s);
  if (memcmp(&whole, a, sizeof whole) == 0) return row_result_index(r);
  Index x = {.offset = a->offset};
  IndexTerm cell = {.of = r->columns ? VAR_cell : VAR_row, .each = r->columns};
  index_add(&x, s, a, 0, s->rank, cell);
  return x;
}

/* Returns the shape of the values that exist once a row: that of a row op's result. */
static LoopShape shape_of_results(const Graph *g, const Group *p)
{
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(g, p->nodes[i]);
    if (op_of(n)->code.result == STATEMENT_row) return loop_shape_of(n);
  }
  return (LoopShape){0};
}

/* Finds what a row op reads. A value of the row is one per row, or one for all rows. */
static void access_rows_of(Compile *c, const RowLoops *r, const Node *n, NodeAccess *out)
{
  out->row = arena_array(c->arena, Index, n->n_in + 1u);
  for (uint32_t k = 0; k < n->n_in; k++) {
    if (!n->in[k].id) continue;
    const Node *x = value_shape(c->graph, n->in[k]);
    Access a = access_broadcast(&r->space, x);
    out->element[k] = element_index(r, &a);
    if (ir_elements(x) != 1) out->row[k] = row_result_index(r);
  }
}

KernelAccess row_access(Compile *c, const Group *p, const RowLoops *r)
{
  const Graph *g = c->graph;
  NodeAccess *node = accesses(c, p);
  LoopShape results = shape_of_results(g, p);
  KernelAccess out = {node, r->odd ? index_each(VAR_i) : index_at(VAR_i), index_at(VAR_i)};
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(g, p->nodes[i]);
    bool element = is_row_element(g, r, p->nodes[i]), map = op_of(n)->tmpl != TMPL_row;
    if (!map) access_rows_of(c, r, n, &node[i]);
    for (uint32_t k = 0; k < n->n_in && map; k++) {
      if (!n->in[k].id) continue;
      Access a = access_operand(c, element ? &r->space : &results, n, k);
      node[i].element[k] = element ? element_index(r, &a) : row_index(r, &results, &a);
    }
    if (!n->pitch) continue;
    Access a = access_all(&r->space, n);
    out.pitched = element_index(r, &a);
  }
  return out;
}

/* ---- elementwise nodes before other kernels ---- */

/* The template has the variables `i`, the element, and `c`, its channel. */
KernelAccess window_access(Compile *c, const Group *p)
{
  NodeAccess *node = accesses(c, p);
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(c->graph, p->nodes[i]);
    LoopShape s = loop_shape_of(n);
    Access whole = access_whole(&s);
    for (uint32_t k = 0; k < n->n_in && op_of(n)->tmpl == TMPL_map; k++) {
      if (!n->in[k].id) continue;
      Access a = access_operand(c, &s, n, k);
      if (memcmp(a.stride, whole.stride, s.rank * sizeof *a.stride) == 0)
        node[i].element[k] = index_at(VAR_i);
      else if (a.stride[s.rank - 1])
        node[i].element[k] = index_at(VAR_c);
    }
  }
  return (KernelAccess){node, index_at(VAR_i), index_at(VAR_i)};
}

KernelAccess pad_access(Compile *c, const Group *p)
{
  NodeAccess *node = accesses(c, p);
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(c->graph, p->nodes[i]);
    LoopShape s = loop_shape_of(n);
    for (uint32_t k = 0; k < n->n_in && op_of(n)->tmpl == TMPL_map; k++) {
      Access a = n->in[k].id ? access_operand(c, &s, n, k) : (Access){0};
      bool moves = false;
      for (uint32_t axis = 0; axis < s.rank; axis++) moves |= a.stride[axis] != 0;
      if (moves) node[i].element[k] = index_at(VAR_i);
    }
  }
  return (KernelAccess){node, index_at(VAR_i), index_at(VAR_i)};
}
