/* Building the tree, and the few rules of syntax that the grammar cannot say: what may be assigned
 * to, and that an expression is not too deep for the passes, which recurse. */
#include "ast_build.h"
#include <string.h>

const char *operator_text(Operator op)
{
  static const char *const text[OPER_count] = {
      [OPER_add] = "+",       [OPER_sub] = "-", [OPER_mul] = "*",    [OPER_div] = "/",
      [OPER_floordiv] = "//", [OPER_mod] = "%", [OPER_matmul] = "@", [OPER_pow] = "**",
      [OPER_lt] = "<",        [OPER_gt] = ">",  [OPER_le] = "<=",    [OPER_ge] = ">=",
      [OPER_eq] = "==",       [OPER_ne] = "!=", [OPER_bitand] = "&", [OPER_bitor] = "|",
      [OPER_and] = "and",     [OPER_or] = "or", [OPER_neg] = "-",    [OPER_invert] = "~",
      [OPER_not] = "not",
  };
  return text[op];
}

/* ---- lists: they grow when their count is a power of two, so they need no capacity ---- */

/* Room for one element more: NULL where there is some. Sizes are 1, 2, 4, ..., so a list is
 * full exactly when its count is a power of two. */
static void *grow(Parser *p, const void *at, uint32_t n, size_t size)
{
  if (n & (n - 1)) return NULL;
  return arena_grow(p->c->arena, at, n * size, (n ? 2 * n : 1) * size, 16);
}

#define APPEND(list, item)                                                                         \
  do {                                                                                             \
    void *bigger = grow(p, (list).at, (list).n, sizeof *(list).at);                                \
    if (bigger) (list).at = bigger;                                                                \
    (list).at[(list).n++] = (item);                                                                \
  } while (0)

ExprList ast_exprs(Parser *p, ExprList list, Expr *e)
{
  APPEND(list, e);
  return list;
}

ArgList ast_args(Parser *p, ArgList list, Arg arg)
{
  APPEND(list, arg);
  return list;
}

NameList ast_names(Parser *p, NameList list, Name name)
{
  APPEND(list, name);
  return list;
}

ParamList ast_params(Parser *p, ParamList list, Param param)
{
  APPEND(list, param);
  return list;
}

TypeList ast_types(Parser *p, TypeList list, const TypeExpr *type)
{
  APPEND(list, *type);
  return list;
}

SubList ast_subs(Parser *p, SubList list, Sub sub)
{
  APPEND(list, sub);
  return list;
}

/* ---- expressions ---- */

/* An expression without operands has height 1. */
static Expr *new_expr(Parser *p, ExprKind kind, Span span)
{
  Expr *e = arena_new(p->c->arena, Expr);
  e->kind = kind;
  e->span = span;
  e->height = 1;
  return e;
}

/* Notes that `e` stands above `child`. The passes recurse over expressions, so their height
 * has a limit: past it `e` becomes `none`, after one message. */
static void over(Parser *p, Expr *e, const Expr *child)
{
  if (!child || child->height < e->height) return;
  if (child->height < MAX_HEIGHT) {
    e->height = (uint16_t)(child->height + 1);
  } else {
    *e = (Expr){.kind = EXPR_none, .span = e->span, .height = 1};
    if (p->too_deep) return;
    p->too_deep = true;
    diag_error(p->c, E100, child->span, "the expression is more than %d operations deep",
               MAX_HEIGHT);
    diag_help(p->c, "give parts of it names");
  }
}

static void over_args(Parser *p, Expr *e, ArgList args)
{
  for (uint32_t i = 0; i < args.n; i++) over(p, e, args.at[i].value);
}

/* A name or a type; the parser knows which. */
Expr *ast_name(Parser *p, ExprKind kind, const Token *t, Span span)
{
  Expr *e = new_expr(p, kind, span);
  e->as.name = t->as.name;
  return e;
}

Expr *ast_int(Parser *p, const Token *t, Span span)
{
  Expr *e = new_expr(p, EXPR_int, span);
  e->as.integer = t->as.integer;
  return e;
}

Expr *ast_float(Parser *p, const Token *t, Span span)
{
  Expr *e = new_expr(p, EXPR_float, span);
  e->as.number = t->as.number;
  return e;
}

Expr *ast_string(Parser *p, const Token *t, Span span)
{
  Expr *e = new_expr(p, EXPR_string, span);
  e->as.string.text = t->as.string.text;
  e->as.string.size = t->as.string.size;
  return e;
}

/* true, false, none: the kind says it all. */
Expr *ast_plain(Parser *p, ExprKind kind, Span span)
{
  return new_expr(p, kind, span);
}

Expr *ast_list(Parser *p, ArgList items, Span span)
{
  Expr *e = new_expr(p, EXPR_list, span);
  e->as.args = items;
  over_args(p, e, items);
  return e;
}

/* `a, b`: held like the items of a list. */
Expr *ast_tuple(Parser *p, Expr *first, ExprList rest, Span span)
{
  Expr *e = new_expr(p, EXPR_tuple, span);
  ArgList items = ast_args(p, (ArgList){0}, (Arg){.value = first});
  for (uint32_t i = 0; i < rest.n; i++) items = ast_args(p, items, (Arg){.value = rest.at[i]});
  e->as.args = items;
  over_args(p, e, items);
  return e;
}

/* `[value for names in iter if cond]`; cond may be NULL. */
Expr *ast_comp(Parser *p, Expr *value, NameList names, Expr *iter, Expr *cond, Span span)
{
  Expr *e = new_expr(p, EXPR_comp, span);
  e->as.comp.value = value;
  e->as.comp.names = names;
  e->as.comp.iter = iter;
  e->as.comp.cond = cond;
  over(p, e, value);
  over(p, e, iter);
  over(p, e, cond);
  return e;
}

Expr *ast_call(Parser *p, Expr *callee, ArgList args, Span span)
{
  Expr *e = new_expr(p, EXPR_call, span);
  e->as.call.callee = callee;
  e->as.call.args = args;
  over(p, e, callee);
  over_args(p, e, args);
  return e;
}

/* `base[subs]` */
Expr *ast_index(Parser *p, Expr *base, SubList subs, Span span)
{
  Expr *e = new_expr(p, EXPR_index, span);
  e->as.index.base = base;
  e->as.index.subs = subs.at;
  e->as.index.n = subs.n;
  over(p, e, base);
  for (uint32_t i = 0; i < subs.n; i++) {
    over(p, e, subs.at[i].index);
    over(p, e, subs.at[i].start);
    over(p, e, subs.at[i].stop);
    over(p, e, subs.at[i].step);
  }
  return e;
}

Expr *ast_attr(Parser *p, Expr *base, Name name, Span span)
{
  Expr *e = new_expr(p, EXPR_attr, span);
  e->as.attr.base = base;
  e->as.attr.name = name;
  over(p, e, base);
  return e;
}

Expr *ast_unary(Parser *p, Operator op, Expr *operand, Span span)
{
  Expr *e = new_expr(p, EXPR_unary, span);
  e->as.unary.op = op;
  e->as.unary.operand = operand;
  over(p, e, operand);
  return e;
}

Expr *ast_binary(Parser *p, Operator op, Expr *left, Expr *right, Span span)
{
  Expr *e = new_expr(p, EXPR_binary, span);
  e->as.binary.op = op;
  e->as.binary.left = left;
  e->as.binary.right = right;
  over(p, e, left);
  over(p, e, right);
  return e;
}

/* `then if test else other` */
Expr *ast_cond(Parser *p, Expr *then, Expr *test, Expr *other, Span span)
{
  Expr *e = new_expr(p, EXPR_cond, span);
  e->as.cond.test = test;
  e->as.cond.then = then;
  e->as.cond.other = other;
  over(p, e, then);
  over(p, e, test);
  over(p, e, other);
  return e;
}

Sub ast_slice(Expr *start, Expr *stop, Expr *step, Span span)
{
  return (Sub){.kind = SUB_slice, .span = span, .start = start, .stop = stop, .step = step};
}

/* ---- signatures ---- */

/* `f32[N, 784]` has sizes and is a tensor; `int` has none. `...` among the sizes is NULL. */
TypeExpr *ast_type(Parser *p, const Token *t, const ExprList *dims, Span span)
{
  TypeExpr *type = arena_new(p->c->arena, TypeExpr);
  type->name = t->as.name;
  type->span = span;
  if (dims) {
    type->tensor = true;
    type->dims = dims->at;
    type->n_dims = dims->n;
  }
  return type;
}

/* `name: type = value`; both may be missing. */
Param ast_param(Name name, const TypeExpr *type, Expr *value)
{
  return (Param){.name = name, .type = type ? *type : (TypeExpr){0}, .value = value};
}

Function *ast_function(Parser *p, Name name, ParamList params, TypeList results, const Block *body)
{
  Function *f = arena_new(p->c->arena, Function);
  *f = (Function){
      .name = name, .params = params, .results = results.at, .n_results = results.n, .body = *body};
  return f;
}
