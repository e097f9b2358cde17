/* Pass split. Needs IR_LAID: the final order of elements. A reduction to few numbers, such as a
 * loss over a batch of images or the gradient of a bias over many rows, has few rows or columns. So
 * it would have few blocks, each with much work. This pass cuts such work into parts, one for each
 * block.
 *
 * A long sum is the sum over its parts:
 *
 *    sum(x)         x [4096, 1024] as [262144, 16]: part_sums [256, 16], their sum
 *    sum(x, 0)      x [100352, 64]: part_sums [262, 64], their sum over the parts
 *    mean(x)        the same, then a quotient
 *
 * Any row program over few long rows becomes a node for each statement, Note [steps] in ops.h. Each
 * reduction runs first within parts and then over them:
 *
 *    softmax(x)     x [64, 50304] as [64, 8, 6288]: the maximum of each of the 64 * 8 parts,
 *                  then of each row; in the same way sums of exp(x - m); then the quotients
 *
 * The parts are computed in f32 and the result is rounded once, at the end; sums of integers are
 * exact. The parts follow from the shape (columns.h), so the order of sums is the same at -O0 and
 * -O2, on the CPU and the GPU. */
#include "compiler/command/command.h"
#include "compiler/graph/columns.h"
#include "compiler/graph/ops.h"
#include "passes.h"
#include <string.h>

/* Returns v in place of n: with the type, shape and layout of n. */
static Value in_place_of(Compile *c, const Cursor *at, const Node *n, Value v)
{
  uint8_t layout = ir_node(c->graph, v)->layout;
  v = ir_cast(c, at, v, n->dtype);
  ir_node(c->graph, v)->layout = layout;
  ir_node(c->graph, v)->name = n->name;
  v = ir_reshape(c, at, v, n->dim, n->rank);
  ir_node(c->graph, v)->layout = n->layout;
  return v;
}

/* ---- sums ---- */

/* True if n is a sum or mean over the rows of [rows, columns]. summed() cuts it. */
static bool is_sum_of_columns(const Node *n, const RowShape *r)
{
  return op_has(n, T_sums) && r->outer == 1;
}

/* Returns the sum over the rows of x, seen as [rows, columns]. */
static Value summed(Compile *c, const Cursor *at, Value x, int64_t columns)
{
  int64_t split = column_split(ir_elements(ir_node(c->graph, x)) / columns, columns);
  if (!split) return ir_reduce(c, at, OP_sum, x, columns > 1 ? 1 : 3, false);
  const NamedAttr *side_by_side = ATTRS({"columns", {.i = split}});
  Value parts = ir_append(c, at, op_named("part_sums"), &x, 1, side_by_side);
  return summed(c, at, parts, columns);
}

static Value sum_in_parts(Compile *c, const Node *n)
{
  Cursor at = ir_cursor_like(n);
  int64_t columns = ir_elements(n), all = ir_elements(ir_in(c, n, 0));
  Value v = summed(c, &at, n->in[0], columns);
  if (op_of(n)->code.uses_length) /* a mean */
    v = ir_binary(c, &at, op_named("div"), v, ir_number(c, &at, (double)(all / columns)));
  return in_place_of(c, &at, n, v);
}

/* ---- rows ---- */

/* A reduction that exists. Cross entropy, its gradient and an accuracy may share one. */
typedef struct Reduction {
  uint16_t block;
  Value after; /* Node.after: clones do not share reductions with their originals */
  StatementKind kind;
  const char *text; /* the reduced expression with its operands, from text_of() */
  RowShape shape;
  Value value;
} Reduction;

typedef VEC(Reduction) Reductions;

/* A row op over [outer, parts * length of a part, inner]. */
typedef struct LongRow {
  Compile *c;
  Reductions *made;
  Cursor at;
  Node n;
  RowShape shape;
  int64_t parts;
  Value given[MAX_STATEMENTS]; /* statement with a name -> its result, one value a row */
} LongRow;

static int64_t operand_elements(const Graph *g, const Node *n, uint32_t k)
{
  return n->in[k].id ? ir_elements(ir_node(g, n->in[k])) : 1;
}

/* True if the statement reads an element of the rows, or is computed once a row. */
static bool has_shape(const Graph *g, const Node *n, const CodeStatement *s, const RowShape *r)
{
  bool reads = !statement_reduces(s->kind) && s->kind != STATEMENT_each;
  for (uint32_t k = 0; k < n->n_in && !reads; k++)
    reads = code_reads(n, s->value, FORMULA_element, k) &&
            operand_elements(g, n, k) == r->outer * r->length * r->inner;
  return reads;
}

/* True if the row program can be cut. Channel statistics begin with a guess and work on parts
 * already. An index is f32 until it is a result, so rows of more than 2^24 elements cannot be
 * cut. */
static bool has_parts(const Graph *g, const Node *n, const RowShape *r)
{
  const OpCode *code = &op_of(n)->code;
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    if (s->kind == STATEMENT_near || formula_has(s->value, FORMULA_size)) return false;
    if (s->kind == STATEMENT_first && r->length > 1 << 24) return false;
    if (code_stands(n, s->condition) && !has_shape(g, n, s, r)) return false;
  }
  return true;
}

/* True if operands that are read element by element have the shape of the rows, or are one row (not
 * one column) or one number for all rows. */
static bool has_plain_operands(const Graph *g, const Node *n, const RowShape *r)
{
  const OpCode *code = &op_of(n)->code;
  for (uint32_t k = 0; k < n->n_in; k++) {
    int64_t elements = operand_elements(g, n, k);
    bool whole = elements == r->outer * r->length * r->inner;
    bool plain = whole || elements == 1 || (elements == r->length && r->inner == 1);
    if (code->reads_element[k] && (code->reads_row_value[k] || !plain)) return false;
  }
  return true;
}

/* Returns the number of parts into which the rows of n are cut; 1 if they are not cut. */
static int64_t parts_of(const Graph *g, const Node *n, const RowShape *r)
{
  if (!dtype_is_float(ir_node(g, n->in[0])->dtype) || r->parts) return 1;
  if (!has_parts(g, n, r) || !has_plain_operands(g, n, r)) return 1;
  return row_split(r->outer, r->length, r->inner);
}

/* Reshapes v, one value per row, to the shape of the input with size 1 for the reduced axes. */
static Value once_a_row(LongRow *r, Value v)
{
  Node x = *ir_in(r->c, &r->n, 0);
  for (uint32_t i = r->shape.from; i < r->shape.to; i++) x.dim[i] = 1;
  v = ir_reshape(r->c, &r->at, v, x.dim, x.rank);
  ir_node(r->c->graph, v)->layout = x.layout;
  return v;
}

/* Returns a row value or operand in the shape of steps within parts: [outer, parts, len, inner]. */
static Value over_parts(LongRow *r, Value v)
{
  int64_t inner = r->shape.inner, elements = ir_elements(ir_node(r->c->graph, v)) / inner;
  int64_t dim[] = {elements, 1, 1, inner};
  if (elements != r->shape.outer) {
    dim[0] = elements / r->shape.length;
    dim[1] = r->parts;
    dim[2] = r->shape.length / r->parts;
  }
  /* a reshape even if these are the axes of an image: parts have no layout */
  return ir_append(r->c, &r->at, OP_reshape, &v, 1, ir_shape_attrs(r->c, dim, inner > 1 ? 4 : 3));
}

/* Returns the input of v if v is an expand of a single value; else v. */
static Value unexpanded(const Graph *g, Value v)
{
  const Node *n = ir_node(g, v);
  bool single = n->op == OP_expand && ir_elements(ir_node(g, n->in[0])) == 1;
  return single ? n->in[0] : v;
}

/* Returns the value of input k of a step. */
static Value step_input(LongRow *r, uint32_t k, bool in_parts)
{
  const OpInfo *op = op_of(&r->n);
  uint32_t n_inputs = op->signature.n_inputs;
  Value v = k < n_inputs ? r->n.in[k] : r->given[k - n_inputs];
  v = unexpanded(r->c->graph, v);
  if (!v.id || ir_elements(ir_node(r->c->graph, v)) == 1) return v;
  if (in_parts) return over_parts(r, v);
  return k < n_inputs && op->code.reads_row_value[k] ? once_a_row(r, v) : v;
}

/* Returns the result of statement i: for each element of the parts or rows, or once a row. */
static Value step(LongRow *r, uint32_t i, bool in_parts)
{
  OpKind op = op_step(r->n.op, i);
  const OpInfo *info = op_row(op);
  const CodeStatement *s = &info->code.statements[0];
  Value in[MAX_SIGNATURE] = {{0}};
  Attr values[MAX_ATTR];
  for (uint32_t k = 0; k < info->signature.n_inputs; k++)
    if (info->code.reads_element[k]) in[k] = step_input(r, k, in_parts);
  if (s->value->kind == FORMULA_element)
    return ir_cast(r->c, &r->at, in[s->value->index], AMPC_F32);
  memcpy(values, r->n.attr, sizeof values);
  values[info->signature.n_attrs - 2].i = r->shape.length;
  values[info->signature.n_attrs - 1].i = r->shape.inner;
  Value v = ir_append_values(r->c, &r->at, op, in, info->signature.n_inputs, values);
  if (!in_parts) ir_node(r->c->graph, v)->layout = ir_in(r->c, &r->n, 0)->layout;
  return v;
}

/* Returns the text of an operand: a value, the bits of an attribute, or a word that all steps
 * share. */
static const char *word_text(const void *frame, const Formula *f)
{
  const LongRow *r = frame;
  Arena *a = r->c->arena;
  if (f->kind == FORMULA_attribute)
    return arena_printf(a, "%llx", (unsigned long long)r->n.attr[f->index].i);
  if (f->kind != FORMULA_element) return f->name ? f->name : arena_printf(a, "$%d", (int)f->kind);
  uint32_t n_inputs = op_of(&r->n)->signature.n_inputs;
  Value v = f->index < n_inputs ? r->n.in[f->index] : r->given[f->index - n_inputs];
  if (!v.id) return f->absent;
  const Node *n = ir_node(r->c->graph, v);
  return arena_printf(a, "%%%u", is_widening(r->c->graph, n) ? n->in[0].id : v.id);
}

static const Formula *standing(const void *frame, const Formula *f)
{
  const LongRow *r = frame;
  return code_standing(&r->n, f);
}

/* Returns the expression of statement i with its values, such as "exp(%7 - %12)". */
static const char *text_of(const LongRow *r, uint32_t i)
{
  const Formula *value = op_row(op_step(r->n.op, i))->code.statements[0].value;
  return formula_text(r->c->arena, &(FormulaTexts){r, word_text, standing}, value);
}

static bool same_rows(const RowShape *a, const RowShape *b)
{
  return a->outer == b->outer && a->length == b->length && a->inner == b->inner;
}

static Value reduced(LongRow *r, uint32_t i)
{
  static const char *const ops[] = {[STATEMENT_sum] = "sum",
                                    [STATEMENT_product] = "prod",
                                    [STATEMENT_max] = "amax",
                                    [STATEMENT_min] = "amin",
                                    [STATEMENT_first] = "amin"};
  StatementKind kind = op_of(&r->n)->code.statements[i].kind;
  Reduction made = {r->n.block, r->n.after, kind, text_of(r, i), r->shape, {0}};
  for (uint32_t k = 0; k < r->made->n; k++) {
    const Reduction *old = &r->made->at[k];
    if (old->block == made.block && old->after.id == made.after.id && old->kind == kind &&
        strcmp(old->text, made.text) == 0 && same_rows(&old->shape, &made.shape))
      return old->value;
  }
  Value v = ir_reduce(r->c, &r->at, op_named(ops[kind]), step(r, i, true), 1 << 2, false);
  made.value = once_a_row(r, ir_reduce(r->c, &r->at, op_named(ops[kind]), v, 1 << 1, false));
  vec_push(r->c->arena, r->made, made);
  return made.value;
}

static Value row_in_parts(Compile *c, Reductions *made, const Node *n, const RowShape *shape,
                          int64_t parts)
{
  const OpCode *code = &op_of(n)->code;
  LongRow r = {
      .c = c, .made = made, .at = ir_cursor_like(n), .n = *n, .shape = *shape, .parts = parts};
  Value v = {0};
  for (uint32_t i = 0; i < code->n_statements; i++) {
    const CodeStatement *s = &code->statements[i];
    if (!code_stands(n, s->condition)) continue;
    v = statement_reduces(s->kind) ? reduced(&r, i) : step(&r, i, false);
    if (s->name) r.given[i] = v;
  }
  return in_place_of(c, &r.at, n, v);
}

/* ---- the pass ---- */

typedef struct Split { /* how to cut a node */
  RowShape shape;
  bool sum;      /* it is a long sum */
  int64_t parts; /* parts of long rows; 1: not cut */
} Split;

/* Decides how v is cut. Sums in f64 are not: parts are f32. They keep one block a row or column. */
static Split split_of(const Compile *c, Value v)
{
  const Graph *g = c->graph;
  const Node *n = ir_node(g, v);
  if (op_of(n)->tmpl != TMPL_row || op_is_wide(c, n)) return (Split){.parts = 1};
  Split s = {.shape = row_shape(g, v), .parts = 1};
  if (is_sum_of_columns(n, &s.shape))
    s.sum = column_split(s.shape.length, s.shape.inner) > 0;
  else
    s.parts = parts_of(g, n, &s.shape);
  return s;
}

bool pass_split(Compile *c)
{
  Split *split = arena_array(c->arena, Split, c->graph->nodes.n);
  bool any = false;
  for (uint32_t id = 1; id < c->graph->nodes.n; id++) {
    split[id] = split_of(c, (Value){id});
    any |= split[id].sum || split[id].parts > 1;
  }
  if (!any) return true;
  Rewrite r;
  Reductions made = {0};
  ir_rewrite_begin(&r, c);
  for (uint32_t id = 1; id < r.n_old; id++) {
    Node n = ir_rewrite_mapped(&r, id);
    if (split[id].sum)
      r.map[id] = sum_in_parts(c, &n);
    else if (split[id].parts > 1)
      r.map[id] = row_in_parts(c, &made, &n, &split[id].shape, split[id].parts);
    else
      ir_rewrite_add(&r, id, &n);
  }
  ir_drop_dead(c); /* the expands of single values */
  return true;
}
