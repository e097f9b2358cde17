/* Builds the tree, and checks the rules that the grammar cannot express: assignment targets, and
 * the depth limits that protect the recursive passes. */
#include "ast_build.h"
#include "ast_forms.h"

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

/* Capacities are 1, 2, 4, ..., so a list is full exactly if its count is a power of two. */
void *ast_grow(Parser *p, void *at, uint32_t n, size_t size)
{
  return n & (n - 1) ? at : arena_grow(p->c->arena, at, n * size, (n ? 2 * n : 1) * size, 16);
}

/* ---- expressions ---- */

/* Updates the height of `e`, the parent of `child`. If it exceeds the limit, `e` becomes `none`; an
 * error is reported once. */
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

static void over_args(Parser *p, Expr *e, const ArgList *args)
{
  for (uint32_t i = 0; i < args->n; i++) over(p, e, args->at[i].value);
}

static void over_subs(Parser *p, Expr *e, const SubList *subs)
{
  for (uint32_t i = 0; i < subs->n; i++) {
    over(p, e, subs->at[i].index);
    over(p, e, subs->at[i].start);
    over(p, e, subs->at[i].stop);
    over(p, e, subs->at[i].step);
  }
}

Expr *ast_expr(Parser *p, Expr e)
{
  Expr *made = arena_new(p->c->arena, Expr);
  *made = e;
  for (const Part *part = expr_forms[e.kind].part; part->kind; part++) {
    const void *at = part_of(&e, part);
    if (part->kind == PART_expr) over(p, made, *(Expr *const *)at);
    if (part->kind == PART_args) over_args(p, made, at);
    if (part->kind == PART_subs) over_subs(p, made, at);
  }
  return made;
}

/* Returns the values of `a, b`, stored like the items of a list. */
ArgList ast_tuple(Parser *p, Expr *first, ExprList rest)
{
  ArgList items = {0};
  APPEND(items, (Arg){.value = first});
  for (uint32_t i = 0; i < rest.n; i++) APPEND(items, (Arg){.value = rest.at[i]});
  return items;
}

/* ---- statements ---- */

Stmt *ast_stmt(Parser *p, Stmt s)
{
  Stmt *made = arena_new(p->c->arena, Stmt);
  *made = s;
  return made;
}

/* Returns the largest height of the blocks in s. */
static uint32_t stmt_height(const Stmt *s)
{
  uint32_t most = 0;
  for (const Part *part = stmt_forms[s->kind].part; part->kind; part++) {
    const Block *b = part->kind == PART_block      ? part_of(s, part)
                     : part->kind == PART_function ? &s->as.def.body
                                                   : NULL;
    if (b && b->height > most) most = b->height;
  }
  return most;
}

/* The passes recurse over statements, so a statement beyond the limit is left out; an error is
 * reported once. The limit on brackets bounds all nesting except `else if`. */
Block ast_add_stmt(Parser *p, Block block, Stmt *stmt)
{
  uint32_t height = stmt ? stmt_height(stmt) : 0;
  if (!stmt) return block;
  if (height >= MAX_HEIGHT) {
    if (!p->too_deep)
      diag_error(p->c, E100, stmt->span, "statements are nested more than %d deep here",
                 MAX_HEIGHT);
    p->too_deep = true;
    return block;
  }
  if (height + 1 > block.height) block.height = height + 1;
  APPEND(block, stmt);
  return block;
}

/* A statement of several values, `a, b`, has no use. It is most likely an assignment without its
 * right side. */
Stmt *ast_expr_stmt(Parser *p, ExprList exprs, Span span)
{
  if (exprs.n == 1) return STMT(expr, span, .as.value = exprs.at[0]);
  diag_error(p->c, E100, span, "a statement is one expression");
  return NULL;
}

/* True for a name or a path of names such as decoder.weight. */
static bool is_path(const Expr *e)
{
  while (e->kind == EXPR_attr) e = e->as.attr.base;
  return e->kind == EXPR_name;
}

/* Checks the target of an assignment. Values are immutable, so `x[0] = 1` is an error. It is
 * frequent in NumPy, so it has a message of its own. */
static bool check_target(Parser *p, const Expr *e)
{
  if (is_path(e)) return true;
  if (e->kind == EXPR_index) {
    diag_error(p->c, E100, e->span, "cannot assign to an element: values are immutable");
    diag_help(p->c, "build a new value, as with `where`, `cat` or `masked_fill`");
  } else {
    diag_error(p->c, E100, e->span, "only a name can stand before `=`");
    if (e->kind == EXPR_attr)
      diag_help(p->c,
                "a Buffer is assigned by names alone, `target.fc.weight = ..`: give the layer a "
                "name in a module; `follow` changes all of a model");
  }
  return false;
}

Stmt *ast_assign(Parser *p, ExprList targets, ExprList values, Span span)
{
  for (uint32_t i = 0; i < targets.n; i++)
    if (!check_target(p, targets.at[i])) return NULL;
  return STMT(assign, span, .as.assign = {targets, values});
}

Stmt *ast_augment(Parser *p, Expr *target, Operator op, Expr *value, Span span)
{
  return check_target(p, target) ? STMT(augment, span, .as.augment = {target, op, value}) : NULL;
}

/* ---- declarations ---- */

void ast_add_decl(Parser *p, Decl d)
{
  Decl *made = arena_new(p->c->arena, Decl);
  *made = d;
  vec_push(p->c->arena, p->out, made);
}

/* At the top level of a file, only expressions that are calls have an effect, such as
 * `manual_seed(1)`. */
void ast_add_call(Parser *p, Expr *call, Span span)
{
  if (call->kind == EXPR_call) {
    DECL(expr, span, .as.value = call);
    return;
  }
  diag_error(p->c, E100, span, "at the top level only a declaration or a call can stand");
  diag_help(p->c, "`const NAME = ...` names a value");
}

static const char *path_text(const Parser *p, const Expr *e)
{
  if (e->kind == EXPR_name) return e->as.name;
  return arena_printf(p->c->arena, "%s.%s", path_text(p, e->as.attr.base), e->as.attr.name.text);
}

/* `opt.lr = 0.01` at the top level of a file changes a setting, as `--set` does. */
void ast_add_setting(Parser *p, const Expr *key, Expr *value, uint32_t end)
{
  Span whole = {key->span.start, end};
  DECL(setting, whole, .name = {path_text(p, key), key->span}, .as.value = value);
}
