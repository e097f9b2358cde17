/* Builds graphs from expressions: calls of ops by their names, with attributes (shape=[2, 3];
 * `none` is an absent input), and + - * @ ** of values and numbers. The compiler's parser reads the
 * text. Lowering is not used, so each call becomes one node. */
#include "graph.h"
#include <assert.h>
#include <string.h>

typedef struct Named {
  const char *name;
  Value value;
} Named;

typedef struct Making {
  Compile *c;
  const Cursor *at;
  VEC(Named) named;
} Making;

static Value make(Making *m, const Expr *e);

static double number_of(const Expr *e)
{
  if (e->kind == EXPR_unary) return -number_of(e->as.unary.operand);
  return e->kind == EXPR_int ? (double)e->as.integer : e->as.number;
}

/* Sets an attribute. A list can only be the attribute `shape`: the rank, then the sizes. */
static void set_attr(const OpInfo *row, const Arg *a, Attr *attr)
{
  uint32_t k = 0;
  const ArgList *sizes = &a->value->as.args;
  if (a->value->kind == EXPR_list) {
    attr[0].i = sizes->n;
    for (uint32_t i = 0; i < sizes->n; i++) attr[i + 1].i = (int64_t)number_of(sizes->at[i].value);
    return;
  }
  bool known = attr_find(row, a->key.text, &k);
  assert(known);
  if (known && row->signature.attr[k].kind == ATTR_float)
    attr[k].f = number_of(a->value);
  else if (known)
    attr[k].i = (int64_t)number_of(a->value);
}

static Value make_call(Making *m, const Expr *e)
{
  const ArgList *args = &e->as.call.args;
  Value in[TEST_MAX_IN] = {{0}};
  uint32_t n = 0;
  for (uint32_t i = 0; i < args->n; i++)
    if (!args->at[i].key.text) in[n++] = make(m, args->at[i].value);
  if (strcmp(called_name(e), "in_type_of") == 0)
    return ir_cast(m->c, m->at, in[0], ir_node(m->c->graph, in[1])->dtype);
  OpKind op = op_named(called_name(e));
  const OpInfo *row = op_row(op);
  Attr attr[MAX_ATTR];
  for (uint32_t k = 0; k < row->signature.n_attrs; k++) attr[k] = row->signature.attr[k].value;
  for (uint32_t i = 0; i < args->n; i++)
    if (args->at[i].key.text) set_attr(row, &args->at[i], attr);
  return ir_append_values(m->c, m->at, op, in, n, attr);
}

/* Returns the value that was assigned last to the name. */
static Value find(const Making *m, const char *name)
{
  uint32_t i = m->named.n;
  while (i > 0 && strcmp(m->named.at[i - 1].name, name) != 0) i--;
  assert(i > 0);
  return m->named.at[i - 1].value;
}

static Value make(Making *m, const Expr *e)
{
  static const OpKind ops[OPER_count] = {[OPER_add] = OP_add,
                                         [OPER_sub] = OP_sub,
                                         [OPER_mul] = OP_mul,
                                         [OPER_matmul] = OP_matmul,
                                         [OPER_pow] = OP_pow};
  if (e->kind == EXPR_name) return find(m, e->as.name);
  if (e->kind == EXPR_call) return make_call(m, e);
  if (e->kind == EXPR_none) return (Value){0};
  if (e->kind != EXPR_binary) return ir_number(m->c, m->at, number_of(e));
  Value left = make(m, e->as.binary.left), right = make(m, e->as.binary.right);
  return ir_binary(m->c, m->at, ops[e->as.binary.op], left, right);
}

Value built_expression(Compile *c, const Cursor *at, const char *text, const Value *in, uint32_t n)
{
  Making m = {.c = c, .at = at};
  Ast ast = {0};
  Value v = {0};
  for (uint32_t i = 0; i < n; i++)
    vec_push(c->arena, &m.named, (Named){arena_printf(c->arena, "%c", 'a' + (int)i), in[i]});
  uint32_t base = diag_add_source(c, "expression", text, (uint32_t)strlen(text), false);
  bool good = ast_parse_input(c, base, &ast) && ast.n == 1;
  assert(good);
  const Block *body = &ast.at[0]->as.function.body;
  for (uint32_t i = 0; good && i < body->n; i++) {
    const Stmt *s = body->at[i];
    bool assigns = s->kind == STMT_assign;
    v = make(&m, assigns ? s->as.assign.values.at[0] : s->as.exprs.at[0]);
    if (assigns) vec_push(c->arena, &m.named, (Named){s->as.assign.targets.at[0]->as.name, v});
  }
  return v;
}
