/* Prints row ops as kernels. A kernel may have several row ops that walk the same rows, and the
 * elementwise nodes that compute their operands or use their results.
 *
 * Any axis may be reduced: the shape is [outer, n, inner]. With inner = 1 a row is contiguous and a
 * block walks it. Otherwise a block walks neighbouring columns together, and a variable of the row
 * program is an array over these columns. Channels (Note [channels] in ops.def) are columns whose
 * rows are cut into parts; each part has a result of its own.
 *
 * The first loop that needs a stored value computes it, and later loops load it. A value that is
 * not stored is computed again in each loop that needs it. */
#include "row.h"

/* ---- operands ---- */

/* Registers with the chain the elements or values of the row that the statements read, so that each
 * is loaded once. `times` is 2 for values that a loop along the row reads once a row: they get a
 * variable before the loop. Compilers do not vectorise a loop that loads such a value under a
 * condition. */
static void use_operands(Chain *ch, const Uses *uses, FormulaKind kind, uint32_t times)
{
  for (uint32_t i = 0; i < uses->n; i++) {
    const RowOp *op = uses->at[i].op;
    for (uint32_t k = 0; k < op->n->n_in; k++)
      if (op->n->in[k].id)
        chain_use(ch, op->n->in[k],
                  kind == FORMULA_element ? op->access->element[k] : op->access->row[k],
                  statement_uses(op, uses->at[i].s, kind, k) * times);
  }
}

/* Returns the statement's C text; the chains of this loop supply its operands. */
static const char *expression(const RowKernel *r, const Use *use, const Chain *elements,
                              const Chain *row_values)
{
  const RowOp *op = use->op;
  Operand in[MAX_SIGNATURE] = {{0}};
  const char *row[MAX_SIGNATURE] = {NULL};
  for (uint32_t k = 0; k < op->n->n_in; k++) {
    if (statement_uses(op, use->s, FORMULA_element, k)) {
      Operand o = {0};
      if (op->n->in[k].id) o = chain_operand(elements, op->n->in[k], op->access->element[k]);
      in[k] = op->integers ? o : as_real(r->k, o);
    }
    if (statement_uses(op, use->s, FORMULA_row_value, k))
      row[k] = chain_operand(row_values, op->n->in[k], op->access->row[k]).text;
  }
  return statement_text(r, op, use->s, in, row);
}

/* ---- nodes of a loop ---- */

/* Returns the index of the node in the group; group.n if the node is not in the group. */
static uint32_t group_index(const RowKernel *r, Value root)
{
  const Group *g = r->k->group;
  uint32_t i = 0;
  while (i < g->n && g->nodes[i].id != root.id) i++;
  return i;
}

static bool is_map(const RowKernel *r, uint32_t i)
{
  return op_of(ir_node(r->k->g, r->k->group->nodes[i]))->tmpl != TMPL_row;
}

/* True if elementwise node i has the shape of the rows; else it has the shape of a row op's
 * result. */
static bool is_element(const RowKernel *r, uint32_t i)
{
  return is_row_element(r->k->g, r->loops, r->k->group->nodes[i]);
}

/* Marks v, if it is an elementwise node of this kernel, and the nodes that it is computed from. A
 * value that an earlier loop has stored is loaded, so marking stops there. */
static void need(const RowKernel *r, bool *needed, Value v)
{
  uint32_t i = group_index(r, value_root(r->k->g, v));
  if (i == r->k->group->n || !is_element(r, i) || r->k->stored[i] || needed[i]) return;
  needed[i] = true;
  const Node *n = ir_node(r->k->g, r->k->group->nodes[i]);
  for (uint32_t k = 0; k < n->n_in; k++) need(r, needed, n->in[k]);
}

static void need_operands(const RowKernel *r, bool *needed, const Uses *uses)
{
  for (uint32_t i = 0; i < uses->n; i++)
    for (uint32_t k = 0; k < uses->at[i].op->n->n_in; k++)
      if (statement_uses(uses->at[i].op, uses->at[i].s, FORMULA_element, k))
        need(r, needed, uses->at[i].op->n->in[k]);
}

/* True if node i stores its value or adds to a gradient. */
static bool leaves_something(const RowKernel *r, uint32_t i)
{
  Value v = r->k->group->nodes[i];
  return argument_of(r->k, v) < r->k->args.n || op_has(ir_node(r->k->g, v), T_effect);
}

/* Marks all results that no loop has stored yet. Returns false if all are stored. */
static bool need_results(const RowKernel *r, bool *needed)
{
  bool any = false;
  for (uint32_t i = 0; i < r->k->group->n; i++) {
    if (!is_element(r, i) || r->k->stored[i] || !leaves_something(r, i)) continue;
    need(r, needed, r->k->group->nodes[i]);
    any = true;
  }
  return any;
}

static void add_nodes(const RowKernel *r, Chain *ch, const bool *needed)
{
  for (uint32_t i = 0; i < r->k->group->n; i++)
    if (needed[i]) chain_add(ch, r->k->group->nodes[i]);
}

static const Use *use_of(const Uses *uses, Value v)
{
  uint32_t i = 0;
  while (uses->at[i].op->v.id != v.id) i++;
  return &uses->at[i];
}

/* Prints nodes in their order. A row op's value is the result of its `each` or `row` statement. */
static void put_nodes(RowKernel *r, Chain *ch, const Chain *row_values, const Uses *uses,
                      const bool *needed, Index index)
{
  for (uint32_t i = 0; i < r->k->group->n; i++) {
    if (!needed[i]) continue;
    Value v = r->k->group->nodes[i];
    if (is_map(r, i))
      chain_put_node(ch, v, index);
    else
      put_value(r->k, v, expression(r, use_of(uses, v), ch, row_values), &index);
    r->k->stored[i] = !r->k->looks_ahead && leaves_something(r, i);
  }
}

/* ---- reductions ---- */

/* Collects the reductions for the next loop. An op contributes its reductions up to the first one
 * that needs the result of another of them: sum of exp(x - m) waits for max m. Reductions of
 * several ops share the loop. */
static void gather_reductions(RowKernel *r, RowOp *op, Uses *out)
{
  uint32_t first = op->at;
  for (; op->at < op->n_code && statement_reduces(op->code[op->at].kind); op->at++) {
    Statement *s = &op->code[op->at];
    for (uint32_t i = first; i < op->at; i++)
      if (statement_mentions(s, op->code[i].code->name)) return;
    if (!statement_is_printed(r, op, s)) vec_push(r->k->c->arena, out, ((Use){op, s}));
  }
}

/* Collects the guesses (`near`) with which programs may begin. */
static void gather_near(RowKernel *r, RowOp *op, Uses *out)
{
  if (op->at >= op->n_code || op->code[op->at].kind != STATEMENT_near) return;
  Statement *s = &op->code[op->at++];
  if (!statement_is_printed(r, op, s)) vec_push(r->k->c->arena, out, ((Use){op, s}));
}

/* True if another loop over the row will follow. If not, the loop that is printed now must store
 * all results. */
static bool walks_again(const RowKernel *r)
{
  for (uint32_t i = 0; i < r->n_ops; i++)
    for (uint32_t k = r->ops[i].at; k < r->ops[i].n_code; k++)
      if (statement_reduces(r->ops[i].code[k].kind) || r->ops[i].code[k].kind == STATEMENT_each)
        return true;
  return false;
}

/* ---- walks ---- */

/* The purpose of a walk: the mean of some rows, reductions, or results. */
typedef enum WalkKind { WALK_near, WALK_sums, WALK_each } WalkKind;

/* True if all threads load the values that all rows share before the loop over rows. With a single
 * row there is one thread per column, and it may overwrite the values that it has read. */
static bool is_shared_by_rows(const RowKernel *r)
{
  return r->columns && r->shape.length > 1;
}

static void open_walk(const RowKernel *r, const Uses *uses, const Chain *elements, WalkKind kind)
{
  if (kind == WALK_near)
    row_open_near(r);
  else
    row_open_elements(r, kind == WALK_sums ? uses : NULL, elements);
}

/* True if the loop needs `i`: for a result at that index, or because the code of an elementwise
 * node contains $i or $c. The $c of a row op is `c`. */
static bool asks_for_index(const RowKernel *r, const bool *needed, WalkKind kind)
{
  const Index own = index_at(VAR_i);
  for (uint32_t i = 0; i < r->k->group->n; i++) {
    const Node *n = ir_node(r->k->g, r->k->group->nodes[i]);
    const Index *index = result_index(r->k, argument_of(r->k, r->k->group->nodes[i]), &own);
    bool stores = kind != WALK_near && leaves_something(r, i);
    if (needed[i] && stores && index_is(index, VAR_i)) return true;
    if (needed[i] && is_map(r, i) && op_of(n)->code.uses_index) return true;
  }
  return false;
}

/* Prints a loop over all elements, with the nodes that it needs. */
static void put_walk(RowKernel *r, const Uses *uses, const bool *needed, WalkKind kind)
{
  Kernel *k = r->k;
  const Index own = index_at(VAR_i);
  Chain elements, of_column, *row_values = r->columns ? &of_column : &r->values;
  chain_begin(&elements, k);
  chain_begin(&of_column, k);
  elements.around = row_values;
  use_operands(row_values, uses, FORMULA_row_value, r->columns ? 1 : 2);
  if (!r->columns) chain_put_loads(row_values);
  add_nodes(r, &elements, needed);
  use_operands(&elements, uses, FORMULA_element, 1);
  if (is_shared_by_rows(r)) row_put_loads(r, row_values, true);
  if (is_shared_by_rows(r)) row_put_loads(r, &elements, true);
  open_walk(r, uses, &elements, kind);
  bool indexed = row_loads_at_index(&elements) || (r->columns && row_loads_at_index(row_values));
  if (indexed || asks_for_index(r, needed, kind)) row_put_index(r);
  uint32_t outside = k->vectors.n;
  if (r->columns) row_put_loads(r, row_values, false);
  row_put_loads(r, &elements, false);
  if (kind != WALK_near) row_put_results(r, needed, &own);
  row_put_draws(r, needed, &own);
  row_open_vector(r);
  if (r->columns) chain_put_loads(row_values);
  chain_put_loads(&elements);
  k->looks_ahead = kind == WALK_near;
  put_nodes(r, &elements, row_values, uses, needed, own);
  k->looks_ahead = false;
  for (uint32_t i = 0; i < uses->n && kind != WALK_each; i++)
    row_put_part(r, &uses->at[i], expression(r, &uses->at[i], &elements, row_values));
  row_close(r, "}");
  if (kind != WALK_near) store_vectors(k, outside);
  k->vectors.n = outside;
  row_close(r, "});");
}

/* Prints the accumulators, one loop for all of `uses`, and the final results. */
static void put_reductions(RowKernel *r, const Uses *uses)
{
  bool *needed = arena_array(r->k->c->arena, bool, r->k->group->n);
  need_operands(r, needed, uses);
  if (!walks_again(r)) need_results(r, needed);
  for (uint32_t i = 0; i < uses->n; i++) row_put_start(r, &uses->at[i]);
  put_walk(r, uses, needed, WALK_sums);
  for (uint32_t i = 0; i < uses->n; i++) row_put_joined(r, &uses->at[i]);
}

/* Prints the guess with which parts begin: Note [moments] in ops.def. */
static void put_near(RowKernel *r, const Uses *uses)
{
  bool *needed = arena_array(r->k->c->arena, bool, r->k->group->n);
  need_operands(r, needed, uses);
  for (uint32_t i = 0; i < uses->n; i++) row_put_start(r, &uses->at[i]);
  put_walk(r, uses, needed, WALK_near);
  EMIT(r->k->p, "BLOCK_MEETS;\n"); /* the next walk may overwrite what others have read */
  for (uint32_t i = 0; i < uses->n; i++)
    EMIT(r->k->p, "VECTOR_EACH(%u, j) %s[j] *= R(0.25);\n", r->vector, uses->at[i].s->as);
}

/* ---- results ---- */

/* Prints `let` statements, computed once a row; for columns an array with one value per column. */
static bool put_lets(RowKernel *r, RowOp *op)
{
  bool any = false;
  for (; op->at < op->n_code && op->code[op->at].kind == STATEMENT_let; op->at++) {
    Statement *s = &op->code[op->at];
    any = true;
    if (statement_is_printed(r, op, s)) continue;
    const char *e = statement_text(r, op, s, NULL, NULL);
    if (r->columns) {
      EMIT(r->k->p, "COLUMN_LOCAL(%u, real, %s);\n", r->vector, s->as);
      EMIT(r->k->p, "VECTOR_EACH(%u, j) %s[j] = %s;\n", r->vector, s->as, e);
    } else {
      EMIT(r->k->p, "const real %s = %s;\n", s->as, e);
    }
  }
  return any;
}

/* Returns the results of kind `kind`. All programs have reached their last statements by now. */
static Uses gather_last(RowKernel *r, StatementKind kind)
{
  Uses out = {0};
  for (uint32_t i = 0; i < r->n_ops; i++) {
    RowOp *op = &r->ops[i];
    for (; op->at < op->n_code && op->code[op->at].kind == kind; op->at++)
      vec_push(r->k->c->arena, &out, ((Use){op, &op->code[op->at]}));
  }
  return out;
}

static void mark_ops(const RowKernel *r, bool *needed, const Uses *uses)
{
  for (uint32_t i = 0; i < uses->n; i++) needed[group_index(r, uses->at[i].op->v)] = true;
}

/* Prints the results in the shape of the rows: the results of row ops, and results that are not
 * stored yet. */
static void put_each(RowKernel *r, const Uses *uses)
{
  bool *needed = arena_array(r->k->c->arena, bool, r->k->group->n);
  need_operands(r, needed, uses);
  if (!need_results(r, needed) && !uses->n) return;
  mark_ops(r, needed, uses);
  put_walk(r, uses, needed, WALK_each);
}

/* Stores results over operands that were loaded before the loops: a row of one element has its
 * result in the place of the operand. */
static void store_outside(const RowKernel *r, const bool *needed, uint32_t outside)
{
  const Kernel *k = r->k;
  const Index own = row_result_index(r->loops);
  for (uint32_t i = 0; i < k->group->n; i++) {
    uint32_t argument = needed[i] ? argument_of(k, k->group->nodes[i]) : k->args.n;
    for (uint32_t v = 0; v < outside && argument < k->args.n; v++) {
      const Vector *x = &k->vectors.at[v];
      if (x->argument == argument && index_equal(&x->index, &own)) store_vector(k, x);
    }
  }
}

/* Prints results with one value per row, or per row and part, and elementwise nodes of their
 * shape. */
static void put_row(RowKernel *r, const Uses *uses)
{
  if (!uses->n) return;
  const Index own = row_result_index(r->loops);
  Chain ch;
  bool *needed = arena_array(r->k->c->arena, bool, r->k->group->n);
  for (uint32_t i = 0; i < r->k->group->n; i++) needed[i] = is_map(r, i) && !is_element(r, i);
  mark_ops(r, needed, uses);
  chain_begin(&ch, r->k);
  add_nodes(r, &ch, needed);
  use_operands(&ch, uses, FORMULA_row_value, 1);
  row_open(r, r->columns ? "COLUMN_ONCE {" : "ROW_ONCE {");
  uint32_t outside = r->k->vectors.n;
  r->k->by_vectors = r->columns;
  if (r->columns) {
    row_put_loads(r, &ch, false);
    row_put_results(r, needed, &own);
    row_put_draws(r, needed, &own);
    row_open_vector(r);
  }
  chain_put_loads(&ch);
  put_nodes(r, &ch, &ch, uses, needed, own);
  if (r->columns) row_close(r, "}");
  if (r->columns) store_outside(r, needed, outside);
  if (r->columns) store_vectors(r->k, outside);
  r->k->vectors.n = outside;
  row_close(r, "}");
}

/* Prints the programs level by level: `let` statements, then one loop for all reductions that can
 * run, until only results are left. */
static void put_program(RowKernel *r)
{
  for (bool more = true; more;) {
    Uses near = {0}, uses = {0};
    more = false;
    for (uint32_t i = 0; i < r->n_ops; i++) more |= put_lets(r, &r->ops[i]);
    for (uint32_t i = 0; i < r->n_ops; i++) gather_near(r, &r->ops[i], &near);
    if (near.n) put_near(r, &near);
    for (uint32_t i = 0; i < r->n_ops; i++) gather_reductions(r, &r->ops[i], &uses);
    if (uses.n) put_reductions(r, &uses);
    more |= near.n > 0 || uses.n > 0;
  }
  Uses each = gather_last(r, STATEMENT_each), row = gather_last(r, STATEMENT_row);
  put_each(r, &each);
  put_row(r, &row);
}

/* ---- the kernel ---- */

/* Adds a row op. Reductions of integers, such as argmax, compute in long long. */
static void add_op(RowKernel *r, Value v)
{
  RowOp *op = &r->ops[r->n_ops++];
  op->v = v;
  op->n = ir_node(r->k->g, v);
  op->access = access_of(r->k, v);
  bool indices = op_of(op->n)->code.statements[1].kind == STATEMENT_first;
  op->integers = !dtype_is_float(ir_node(r->k->g, op->n->in[0])->dtype) &&
                 (indices || !dtype_is_float(op->n->dtype));
  op->wide = op_is_wide(r->k->c, op->n);
  read_program(op);
}

static void measure(RowKernel *r)
{
  const Kernel *k = r->k;
  r->loops = k->part->rows;
  r->shape = r->loops->shape;
  r->columns = r->loops->columns;
  r->vector = r->loops->vector;
  r->width = r->loops->odd ? "vector_width" : arena_printf(k->c->arena, "%u", r->vector);
  r->ops = arena_array(k->c->arena, RowOp, k->group->n);
  r->k->stored = arena_array(k->c->arena, bool, k->group->n);
  chain_begin(&r->values, r->k);
  for (uint32_t i = 0; i < k->group->n; i++)
    if (!is_map(r, i)) add_op(r, k->group->nodes[i]);
}

/* Prints `begin`, the first row of part o, and `n`, its number of rows, if a program uses `n`. */
static void put_bounds(const RowKernel *r)
{
  const char *t = r->k->index_type;
  long long all = r->shape.length, size = r->shape.part_rows;
  EMIT(r->k->p, "const %s begin = o * %lld;\n", t, size);
  for (uint32_t i = 0; i < r->n_ops; i++) {
    if (!op_of(r->ops[i].n)->code.uses_length) continue;
    if (all % size == 0)
      EMIT(r->k->p, "const real n = R(%lld.0);\n", size);
    else
      EMIT(r->k->p, "const real n = ampc_part_rows(o, %lld, %lld);\n", size, all);
    return;
  }
}

void emit_row(Kernel *k)
{
  RowKernel r = {.k = k};
  measure(&r);
  if (r.columns)
    EMIT(k->p, "COLUMN_TILES(%u, %s, o, column, %lld, %lld, %u) {\n", r.loops->tile.vector,
         k->index_type, (long long)(r.shape.parts ? r.shape.parts : r.shape.outer),
         (long long)r.shape.inner, r.loops->tile.lanes);
  else
    EMIT(k->p, "ROW_LOOP(%u, %s, row, %lld) {\n", r.loops->walk.threads, k->index_type,
         (long long)r.shape.outer);
  k->p->indent++;
  k->by_vectors = true;
  if (r.shape.parts) put_bounds(&r);
  put_program(&r);
  k->p->indent--;
  EMIT(k->p, "}\n");
}
