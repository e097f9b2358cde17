/* Part of pass memory: gives matrices rows that begin at multiples of 16 bytes.
 *
 * Note [pitch]
 * Tensor cores load operands in units of 16 bytes. A product whose rows are not aligned to that
 * takes several times as long. So a value in WORK that a product reads or writes gets gaps between
 * such rows: Node.pitch is the distance of two rows, in elements. Shapes do not change. A row of
 * 50,257 elements has a pitch of 50,264, in every type. On a CPU no value gets gaps: oneDNN chooses
 * its algorithm by the leading dimension. A gap exists only if all readers allow it, so the bits of
 * a product would depend on fusion.
 *
 * Only products, row ops and elementwise nodes may read or write a value with gaps: their operands
 * have strides. Its views must keep its rows, and it must be no result of the block. Gaps take at
 * most an eighth of the value's bytes, or FEW bytes. An elementwise kernel is fastest if all its
 * values have the same gaps (Note [gaps] in walk.c). So if one of its values gets gaps, all that
 * may have gaps get them. */
#include "pitch.h"
#include "compiler/command/walk.h"

typedef struct Pitches {
  Compile *c;
  Graph *g;
  bool *fits;   /* value -> may have gaps */
  bool *wanted; /* value -> a product uses it, or an elementwise kernel that uses another one */
} Pitches;

enum { STEP = 8, FEW = 65536 /* bytes */ };

/* Returns the dim of the last axis, 1 if there is none. */
static int64_t columns_of(const Node *n)
{
  return n->rank ? n->dim[n->rank - 1] : 1;
}

/* True if n has rows that gaps would align, and gaps cost little. */
static bool gains(const Compile *c, const Node *n)
{
  int64_t size = ir_dtype_size(c, n->dtype), columns = columns_of(n), all = ir_elements(n);
  if (!dtype_is_float(n->dtype) || columns < STEP / 2 || all <= columns) return false;
  int64_t gap = ampc_round_up(columns, STEP) - columns, gaps = all / columns * gap * size;
  return columns * size % TENSOR_ALIGNMENT && (gap <= columns / 8 || gaps <= FEW);
}

/* True if part p computes elements of rows as products, row ops and elementwise nodes do. */
static bool works_by_rows(const Graph *g, const Group *p)
{
  if (!p->anchor.id) return group_is_map(g, p);
  const Node *n = ir_node(g, p->anchor);
  if (op_of(n)->tmpl != TMPL_row) return op_of(n)->tmpl == TMPL_gemm;
  return !row_is_flat(g, p->anchor) && !row_shape(g, p->anchor).loose;
}

/* True if part p writes v row by row. Row ops with a value a row write it elsewhere. */
static bool writes_rows(const Graph *g, const Group *p, Value v)
{
  const Node *n = ir_node(g, v), *anchor = ir_node(g, p->anchor);
  OpTemplate tmpl = op_of(n)->tmpl;
  if (op_has(n, T_crosses) || !works_by_rows(g, p)) return false;
  if (p->anchor.id && op_of(anchor)->tmpl == TMPL_row)
    return (tmpl == TMPL_map || tmpl == TMPL_row) && ir_same_dims(n, ir_node(g, anchor->in[0]));
  return tmpl == TMPL_gemm || (tmpl == TMPL_map && ir_same_dims(n, ir_node(g, p->nodes[0])));
}

/* True if v of part p reads its input k, a view of x, row by row. A probe (OP_ranges) reads x as
 * one flat array, but its kernel computes the places from the pitch. If probes ruled out gaps, the
 * library could choose another algorithm, and a product would have other bits with a probe. */
static bool reads_rows(const Graph *g, const Group *p, Value v, uint32_t k, const Node *x)
{
  const Node *n = ir_node(g, v), *shape = value_shape(g, n->in[k]);
  if (n->op == OP_ranges) return true;
  if (op_has(n, T_crosses) || !works_by_rows(g, p) || columns_of(shape) != columns_of(x))
    return false;
  if (op_of(n)->tmpl == TMPL_gemm) return k < 2;
  if (op_of(n)->tmpl == TMPL_row)
    return op_of(n)->code.reads_element[k] && !op_of(n)->code.reads_row_value[k] &&
           ir_same_dims(ir_node(g, n->in[0]), shape);
  return reads_in_order(g, v, k) && columns_of(node_walked(g, v)) == columns_of(x);
}

/* ---- who uses a value ---- */

static bool visit_uses(Pitches *t, const Group *p)
{
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(t->g, p->nodes[i]);
    bool product = op_of(n)->tmpl == TMPL_gemm;
    if (!writes_rows(t->g, p, p->nodes[i])) t->fits[p->nodes[i].id] = false;
    if (product) t->wanted[p->nodes[p->n - 1].id] = true;
    for (uint32_t k = 0; k < n->n_in; k++) {
      Value x = value_root(t->g, n->in[k]);
      if (!reads_rows(t->g, p, p->nodes[i], k, ir_node(t->g, x))) t->fits[x.id] = false;
      if (product) t->wanted[x.id] = true;
    }
  }
  return false;
}

/* Results of the block and values that readers load through a move must have no gaps. */
static void visit_views(Pitches *t)
{
  for (uint32_t id = 1; id < t->g->nodes.n; id++) {
    const Node *n = ir_node(t->g, (Value){id});
    if (op_has(n, T_kept) || (n->folded && !op_has(n, T_casts)))
      t->fits[value_root(t->g, (Value){id}).id] = false;
  }
}

/* True if the part reads or writes a value that may have gaps and whose `wanted` flag equals the
 * argument. `add`: also sets the flag of all such values. */
static bool any_wanted(Pitches *t, const Group *p, bool wanted, bool add)
{
  bool any = false;
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(t->g, p->nodes[i]);
    for (uint32_t k = 0; k <= n->n_in; k++) {
      uint32_t id = k < n->n_in ? value_root(t->g, n->in[k]).id : p->nodes[i].id;
      any |= t->fits[id] && t->wanted[id] == wanted;
      t->wanted[id] |= add && t->fits[id];
    }
  }
  return any;
}

/* If a value of an elementwise kernel is wanted, all are. Returns true if any is new. */
static bool spread(Pitches *t, const Group *p)
{
  if (p->anchor.id || !works_by_rows(t->g, p)) return false;
  return any_wanted(t, p, true, false) && any_wanted(t, p, false, true);
}

typedef bool EachPart(Pitches *t, const Group *p);

static bool each_part(Pitches *t, EachPart *visit)
{
  bool any = false;
  for (uint32_t i = 1; i < t->g->groups.n; i++) {
    const Group *group = &t->g->groups.at[i];
    for (uint32_t k = 0; k < group->n_parts; k++) any |= visit(t, &group->parts[k]);
    if (!group->n_parts) any |= visit(t, group);
  }
  return any;
}

void pitch_rows(Compile *c, const Life *lives)
{
  Graph *g = c->graph;
  Pitches t = {.c = c, .g = g};
  t.fits = arena_array(c->arena, bool, g->nodes.n);
  t.wanted = arena_array(c->arena, bool, g->nodes.n);
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    const Node *n = ir_node(g, (Value){id});
    t.fits[id] = n->group && n->place.space == AMPC_NONE && lives[id].needed && gains(c, n);
  }
  visit_views(&t);
  each_part(&t, visit_uses);
  while (each_part(&t, spread)) continue;
  for (uint32_t id = 1; id < g->nodes.n; id++) {
    Node *n = ir_node(g, (Value){id});
    uint32_t root = value_root(g, (Value){id}).id;
    bool rows = !n->folded && columns_of(n) == columns_of(ir_node(g, (Value){root}));
    n->pitch = 0;
    if (rows && t.fits[root] && t.wanted[root]) n->pitch = ampc_round_up(columns_of(n), STEP);
  }
}
