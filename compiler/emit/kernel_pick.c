/* Moves by an index (index_select, gather), and the sizes for the templates of their gradients. An
 * index out of range reads no element; the result is NaN, or 0 for integers. */
#include "template.h"

static Pick picked(const Node *whole, int64_t axis, int64_t places)
{
  uint32_t at = (uint32_t)axis;
  return (Pick){dims_product(whole->dim, at), whole->dim[at],
                dims_product(whole->dim + at + 1, whole->rank - at - 1), places, 1};
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
  const char *at =
      arena_printf(k->c->arena, rows ? "r %% %lld" : "r * %lld + c", rows ? p.places : p.inner);
  const char *index = load_operand(k, n->in[1], at).text;
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

/* ---- templates ---- */

/* Returns how many rows of the result a thread has. Each thread walks the whole index: few threads
 * do less work in total, many threads are faster. On a GPU there are about 65,536 threads, on the
 * CPU 16. The order of each sum is always the order of the index. */
static int64_t rows_of_thread(const Kernel *k, const Pick *p)
{
  enum { THREADS = 65536, SHARES = 16 };
  int64_t shares = is_cpu_target(k->c) ? SHARES : THREADS / p->inner;
  if (shares < SHARES) shares = SHARES;
  return (p->size + shares - 1) / shares;
}

bool is_pick(const OpInfo *op)
{
  return op == op_row(OP_index_select_backward) || op == op_row(OP_scatter_add);
}

Pick pick_of(const Kernel *k, const Node *n)
{
  bool rows = n->op == OP_index_select_backward;
  int64_t axis = rows ? 0 : attr_int(n, "dim");
  Pick p = picked(n, axis, ir_in(k->c, n, 1)->dim[axis]);
  p.rows = rows ? rows_of_thread(k, &p) : 1;
  return p;
}
