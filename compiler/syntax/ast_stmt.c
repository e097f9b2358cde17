/* Building the tree: statements and declarations. */
#include "ast_build.h"

Block *ast_new_block(Parser *p)
{
  return arena_new(p->c->arena, Block);
}

/* Of the statements in it. */
static uint32_t stmt_height(const Stmt *s)
{
  uint32_t then;
  switch (s->kind) {
  case STMT_if:
    then = s->as.branch.then.height;
    return then > s->as.branch.other.height ? then : s->as.branch.other.height;
  case STMT_for:
    return s->as.loop.body.height;
  case STMT_scan:
    return s->as.scan.body.height;
  case STMT_autocast:
  case STMT_no_grad:
    return s->as.region.body.height;
  case STMT_every:
    return s->as.every.body.height;
  case STMT_def:
    return s->as.def.body.height;
  default:
    return 0;
  }
}

/* The passes recurse over statements: past the limit one is left out, after one message. Brackets
 * bound all that nests but `else if`. */
static bool is_too_high(Parser *p, const Stmt *stmt)
{
  if (stmt_height(stmt) < MAX_HEIGHT) return false;
  if (!p->too_deep)
    diag_error(p->c, E100, stmt->span, "statements are more than %d deep here", MAX_HEIGHT);
  return p->too_deep = true;
}

/* A statement that was reported and left out is NULL. */
Block *ast_add_stmt(Parser *p, Block *block, Stmt *stmt)
{
  if (!stmt || is_too_high(p, stmt)) return block;
  if (stmt_height(stmt) + 1 > block->height) block->height = stmt_height(stmt) + 1;
  if (!(block->n & (block->n - 1))) /* as all lists: grows when the count is a power of two */
    block->at = arena_grow(p->c->arena, block->at, block->n * sizeof(Stmt *),
                           (block->n ? 2 * block->n : 1) * sizeof(Stmt *), sizeof(Stmt *));
  block->at[block->n++] = stmt;
  return block;
}

/* The span is known when the `}` has been read. */
Block *ast_block(Block *block, Span span)
{
  block->span = span;
  return block;
}

static Stmt *new_stmt(Parser *p, StmtKind kind, Span span)
{
  Stmt *s = arena_new(p->c->arena, Stmt);
  s->kind = kind;
  s->span = span;
  return s;
}

/* A statement of several values, `a, b`, computes nothing that can be used: it is most likely an
 * assignment without its right side. */
Stmt *ast_expr_stmt(Parser *p, ExprList exprs, Span span)
{
  if (exprs.n > 1) {
    diag_error(p->c, E100, span, "a statement is one expression");
    return NULL;
  }
  Stmt *s = new_stmt(p, STMT_expr, span);
  s->as.value = exprs.at[0];
  return s;
}

/* A name, or a path of names such as decoder.weight. */
static bool is_path(const Expr *e)
{
  while (e->kind == EXPR_attr) e = e->as.attr.base;
  return e->kind == EXPR_name;
}

/* Values never change, so `x[0] = 1` cannot be: the most frequent habit from NumPy gets a
 * message of its own. */
static bool check_target(Parser *p, const Expr *e)
{
  if (is_path(e)) return true;
  if (e->kind == EXPR_index) {
    diag_error(p->c, E100, e->span, "an element cannot be assigned to: values never change");
    diag_help(p->c, "build a new value, as with `where`, `cat` or `masked_fill`");
  } else {
    diag_error(p->c, E100, e->span, "only a name can stand before `=`");
  }
  return false;
}

Stmt *ast_assign(Parser *p, ExprList targets, ExprList values, Span span)
{
  for (uint32_t i = 0; i < targets.n; i++)
    if (!check_target(p, targets.at[i])) return NULL;
  Stmt *s = new_stmt(p, STMT_assign, span);
  s->as.assign.targets = targets;
  s->as.assign.values = values;
  return s;
}

Stmt *ast_augment(Parser *p, Expr *target, const Token *op, Expr *value, Span span)
{
  if (!check_target(p, target)) return NULL;
  Stmt *s = new_stmt(p, STMT_augment, span);
  s->as.augment.target = target;
  s->as.augment.op = op->as.op;
  s->as.augment.value = value;
  return s;
}

/* return, emit: any number of values. */
Stmt *ast_exprs_stmt(Parser *p, StmtKind kind, ExprList exprs, Span span)
{
  Stmt *s = new_stmt(p, kind, span);
  s->as.exprs = exprs;
  return s;
}

Stmt *ast_if(Parser *p, Expr *test, const Block *then, const Block *other, Span span)
{
  Stmt *s = new_stmt(p, STMT_if, span);
  s->as.branch.test = test;
  s->as.branch.then = *then;
  if (other) s->as.branch.other = *other;
  return s;
}

/* `else if` is an else block that holds one `if`. */
Block *ast_else_if(Parser *p, Stmt *stmt, Span span)
{
  return ast_block(ast_add_stmt(p, ast_new_block(p), stmt), span);
}

Stmt *ast_for(Parser *p, NameList names, Expr *iter, const Block *body, Span span)
{
  Stmt *s = new_stmt(p, STMT_for, span);
  s->as.loop.names = names;
  s->as.loop.iter = iter;
  s->as.loop.body = *body;
  return s;
}

Stmt *ast_scan(Parser *p, Name name, Expr *iter, NameList carry, const Block *body, Span span)
{
  Stmt *s = new_stmt(p, STMT_scan, span);
  s->as.scan.name = name;
  s->as.scan.iter = iter;
  s->as.scan.carry = carry;
  s->as.scan.body = *body;
  return s;
}

/* `metric name = value` */
Stmt *ast_named(Parser *p, StmtKind kind, Name name, Expr *value, Span span)
{
  Stmt *s = new_stmt(p, kind, span);
  s->as.named.name = name;
  s->as.named.value = value;
  return s;
}

/* autocast and no_grad. Without a block an autocast holds to the end of the one around it. */
Stmt *ast_region(Parser *p, StmtKind kind, ArgList args, const Block *body, Span span)
{
  Stmt *s = new_stmt(p, kind, span);
  s->as.region.args = args;
  s->as.region.has_block = body != NULL;
  if (body) s->as.region.body = *body;
  return s;
}

Stmt *ast_every(Parser *p, Expr *interval, const Block *body, Span span)
{
  Stmt *s = new_stmt(p, STMT_every, span);
  s->as.every.interval = interval;
  s->as.every.body = *body;
  return s;
}

Stmt *ast_minimize(Parser *p, Expr *loss, NameList optimizers, Span span)
{
  Stmt *s = new_stmt(p, STMT_minimize, span);
  s->as.minimize.loss = loss;
  s->as.minimize.optimizers = optimizers;
  return s;
}

Stmt *ast_def(Parser *p, const Function *function, Span span)
{
  Stmt *s = new_stmt(p, STMT_def, span);
  s->as.def = *function;
  return s;
}

/* ---- declarations ---- */

static Decl *new_decl(Parser *p, DeclKind kind, Span span)
{
  Decl *d = arena_new(p->c->arena, Decl);
  d->kind = kind;
  d->span = span;
  return d;
}

Decl *ast_import(Parser *p, const Token *path, Span span)
{
  Decl *d = new_decl(p, DECL_import, span);
  d->as.import.path = path->as.string.text;
  return d;
}

Decl *ast_const(Parser *p, Name name, const TypeExpr *type, Expr *value, Span span)
{
  Decl *d = new_decl(p, DECL_const, span);
  d->as.constant.name = name;
  if (type) d->as.constant.type = *type;
  d->as.constant.value = value;
  return d;
}

Decl *ast_dim(Parser *p, Name name, ArgList args, Span span)
{
  Decl *d = new_decl(p, DECL_dim, span);
  d->as.dim.name = name;
  d->as.dim.args = args;
  return d;
}

Decl *ast_module(Parser *p, Name name, ParamList params, const Block *body, Span span)
{
  Decl *d = new_decl(p, DECL_module, span);
  d->as.module.name = name;
  d->as.module.params = params;
  d->as.module.body = *body;
  return d;
}

Decl *ast_op(Parser *p, Name name, ParamList params, ParamList outputs, const Block *body,
             Span span)
{
  Decl *d = new_decl(p, DECL_op, span);
  d->as.op.name = name;
  d->as.op.params = params;
  d->as.op.outputs = outputs;
  d->as.op.body = *body;
  return d;
}

/* model, optimizer, precision: a value, and clauses in braces. */
Decl *ast_object(Parser *p, DeclKind kind, Name name, Expr *value, const Block *clauses, Span span)
{
  Decl *d = new_decl(p, kind, span);
  d->as.object.name = name;
  d->as.object.value = value;
  if (clauses) d->as.object.clauses = *clauses;
  return d;
}

/* train and eval: `train x, y in source with batch=64 { ... }`. */
Decl *ast_run(Parser *p, DeclKind kind, NameList names, Expr *source, ArgList with,
              const Block *body, Span span)
{
  Decl *d = new_decl(p, kind, span);
  d->as.run.names = names;
  d->as.run.source = source;
  d->as.run.with = with;
  d->as.run.body = *body;
  return d;
}

/* def, data and infer. */
Decl *ast_function_decl(Parser *p, DeclKind kind, const Function *function, Span span)
{
  Decl *d = new_decl(p, kind, span);
  d->as.function = *function;
  return d;
}

/* Of expressions only calls do something at the top of a file, such as `manual_seed(1)`. */
Decl *ast_expr_decl(Parser *p, Expr *value, Span span)
{
  if (value->kind != EXPR_call) {
    diag_error(p->c, E100, span, "at the top level only a declaration or a call can stand");
    diag_help(p->c, "`const NAME = ...` names a value");
    return NULL;
  }
  Decl *d = new_decl(p, DECL_expr, span);
  d->as.value = value;
  return d;
}

void ast_add_decl(Parser *p, Decl *decl)
{
  if (decl) vec_push(p->c->arena, p->out, decl);
}
