/* Moves by an index (index_select, gather), and the sizes for the templates of their gradients. An
 * index out of range reads no element; the result is NaN, or 0 for integers. */
#include "template.h"

/* True for weighted_gather, weighted_scatter and weighted_products. */
static bool is_weighted(const OpInfo *op)
{
  return op == op_row(OP_weighted_gather) || op == op_row(OP_weighted_scatter) ||
         op == op_row(OP_weighted_products);
}

bool is_pick(const OpInfo *op)
{
  return op == op_row(OP_index_select_backward) || op == op_row(OP_scatter) || is_weighted(op);
}

static Pick picked(const Node *whole, int64_t axis, int64_t places)
{
  uint32_t at = (uint32_t)axis;
  return (Pick){dims_product(whole->dim, at),
                whole->dim[at],
                dims_product(whole->dim + at + 1, whole->rank - at - 1),
                places,
                1,
                1,
                1,
                1,
                1,
                1,
                1};
}

static Pick moved(const Kernel *k, const Node *n)
{
  const Node *x = ir_node(k->g, n->in[0]), *index = ir_node(k->g, n->in[1]);
  if (n->op == OP_index_select) return picked(x, attr_int(n, "axis"), ir_elements(index));
  int64_t axis = attr_int(n, "dim");
  return picked(x, axis, index->dim[axis]);
}

/* Prints index_select or gather: rows r of [outer * places], columns c of [inner]. */
void emit_picked(Kernel *k)
{
  Value v = k->group->nodes[0];
  const Node *n = ir_node(k->g, v);
  const Pick p = moved(k, n);
  const char *to = pointer_name(k, v), *type = k->index_type;
  bool rows = n->op == OP_index_select;
  Index at = index_at(VAR_r);
  at.term[0].size = rows ? p.places : 0;
  at.term[0].stride = rows ? 1 : p.inner;
  if (!rows) index_add_term(&at, VAR_c, 1);
  const char *index = load_operand(k, n->in[1], &at).text;
  const char *nothing = dtype_is_float(n->dtype) ? stored(k, n->dtype, "ampc_nan()") : "0";
  EMIT(k->p, "GRID_ROWS(%s, r, c, %lld, %lld) {\n", type, p.outer * p.places, p.inner);
  k->p->indent++;
  EMIT(k->p, "const long long row = %s;\n", index);
  EMIT(k->p, "const int there = row >= 0 && row < %lld;\n", p.size);
  const char *from = arena_printf(k->c->arena, "(r / %lld * %lld + (%s)row) * %lld + c", p.places,
                                  p.size, type, p.inner);
  EMIT(k->p, "%s[r * %lld + c] = there ? %s : %s; // %%%u %s\n", to, p.inner,
       moved_element(k, 0, from), nothing, v.id, op_of(n)->name);
  k->p->indent--;
  EMIT(k->p, "}\n");
}

/* Returns the size of the axis whose elements node n reads or adds at its index; 0: it has none. */
static int64_t rows_of_index(const Graph *g, const Node *n)
{
  if (n->op == OP_weighted_gather) return ir_node(g, n->in[0])->dim[2];
  if (n->op == OP_weighted_products) return ir_node(g, n->in[1])->dim[2];
  if (is_pick(op_of(n))) return attr_int(n, "size");
  if (n->op == OP_index_select) return ir_node(g, n->in[0])->dim[attr_int(n, "axis")];
  if (n->op == OP_gather) return ir_node(g, n->in[0])->dim[attr_int(n, "dim")];
  return 0;
}

int64_t index_rows(Compile *c, uint32_t group, const KernelArg *a)
{
  const Graph *g = c->graph;
  const Group *p = &g->groups.at[group];
  int64_t rows = 0;
  for (uint32_t i = 0; i < p->n && a->value.id && !rows; i++) {
    const Node *n = ir_node(g, p->nodes[i]);
    const uint32_t at = is_weighted(op_of(n)) ? 2 : 1;
    if (n->n_in > at && value_root(g, n->in[at]).id == a->value.id) rows = rows_of_index(g, n);
  }
  return rows;
}

/* ---- templates ---- */

/* Divides index_select_backward among blocks: each computes one tile of columns for one part of the
 * rows. Every block reads the whole index, so more parts read it more often. On a GPU there are up
 * to 1,024 blocks. On the CPU there are at most 16 parts, and at most one for every 16 columns, so
 * that adding takes longer than reading the index. */
static void divide(const Kernel *k, Pick *p)
{
  enum { BLOCKS = 1024, TILE = 1024, CPU_PARTS = 16, CPU_COLUMNS = 16 };
  bool cpu = is_cpu_target(k->c);
  p->tiles = (p->inner + TILE - 1) / TILE;
  p->tile = (p->inner + p->tiles - 1) / p->tiles;
  int64_t most = cpu ? p->inner / CPU_COLUMNS : BLOCKS / p->tiles;
  if (cpu && most > CPU_PARTS) most = CPU_PARTS;
  if (most > p->size) most = p->size;
  for (p->step = 1; !cpu && 2 * p->step <= most;) p->step *= 2; /* a cheap remainder */
  if (most < 1) most = 1;
  p->rows = cpu ? (p->size + most - 1) / most : 1;
  p->parts = cpu ? (p->size + p->rows - 1) / p->rows : p->step;
}

/* Divides the results of scatter and weighted_scatter. On the CPU a thread has whole lines. On a
 * GPU lines are divided until there are many threads. Each thread reads the index of its whole
 * line. */
static void divide_lines(const Kernel *k, Pick *p)
{
  enum { ENOUGH = 1 << 17 };
  int64_t most = is_cpu_target(k->c) ? 1 : ENOUGH / (p->outer * p->inner);
  if (most > p->size) most = p->size;
  if (most < 1) most = 1;
  p->rows = (p->size + most - 1) / most;
  p->parts = (p->size + p->rows - 1) / p->rows;
}

static Pick weighted(const Kernel *k, const Node *n)
{
  const Node *first = ir_in(k->c, n, 0), *place = ir_in(k->c, n, 2);
  const Node *whole =
      n->op == OP_weighted_scatter ? n : ir_in(k->c, n, n->op == OP_weighted_products);
  Pick p = picked(whole, 2, place->dim[2]);
  p.channels = first->dim[1];
  p.taps = place->dim[1];
  divide_lines(k, &p);
  return p;
}

Pick pick_of(const Kernel *k, const Node *n)
{
  if (is_weighted(op_of(n))) return weighted(k, n);
  bool rows = n->op == OP_index_select_backward;
  int64_t axis = rows ? 0 : attr_int(n, "dim");
  Pick p = picked(n, axis, ir_in(k->c, n, 1)->dim[axis]);
  if (rows)
    divide(k, &p);
  else
    divide_lines(k, &p);
  return p;
}
