/* The functions that the actions of grammar/amp.y call. */
#pragma once
#include "parse.h"

/* parse.c */
/* runs the stages before the parser */
bool parse_start(Parser *p, Compile *c, uint32_t base, Ast *out);
void parse_run(Parser *p); /* runs the parser; also reports the problems of earlier stages */
const Token *parse_next(Parser *p);
void parse_too_deep(Parser *p, Span span);

/* mistakes.c */
enum { MAX_EXPECTED = 64 };
/* The data of bison about a syntax error. */
typedef struct SyntaxError {
  int state; /* state after all reductions that need no further token */
  int token; /* a symbol kind of bison, like `expected` */
  int expected[MAX_EXPECTED];
  int n_expected;
} SyntaxError;
void parse_syntax_error(Parser *p, const SyntaxError *e);
const char *parse_symbol_name(int symbol); /* amp.y */

/* ast_build.c: these create a node of the tree: EXPR(cond, @$, .as.cond = {..}). An error is
 * reported; the expression then becomes `none`, and a statement or declaration becomes NULL and is
 * left out. */
Expr *ast_expr(Parser *p, Expr e);
Stmt *ast_stmt(Parser *p, Stmt s);
#define EXPR(form, place, ...)                                                                     \
  ast_expr(p, (Expr){.kind = EXPR_##form, .span = (place), .height = 1, __VA_ARGS__})
#define STMT(form, place, ...)                                                                     \
  ast_stmt(p, (Stmt){.kind = STMT_##form, .span = (place), __VA_ARGS__})
#define DECL(form, place, ...)                                                                     \
  ast_add_decl(p, (Decl){.kind = DECL_##form, .span = (place), __VA_ARGS__})
void ast_add_decl(Parser *p, Decl d);

/* Makes space for one more element and returns the array. Lists store no capacity: a list is
 * reallocated when its count is a power of two. */
void *ast_grow(Parser *p, void *at, uint32_t n, size_t size);
#define APPEND(list, ...)                                                                          \
  ((list).at = ast_grow(p, (list).at, (list).n, sizeof *(list).at),                                \
   (list).at[(list).n++] = (__VA_ARGS__))

ArgList ast_tuple(Parser *p, Expr *first, ExprList rest);
Stmt *ast_assign(Parser *p, ExprList targets, ExprList values, Span span);
Stmt *ast_augment(Parser *p, Expr *target, Operator op, Expr *value, Span span);
Stmt *ast_expr_stmt(Parser *p, ExprList exprs, Span span);
/* stmt NULL: it was skipped after an error */
Block ast_add_stmt(Parser *p, Block block, Stmt *stmt);
void ast_add_call(Parser *p, Expr *call, Span span);
void ast_add_setting(Parser *p, const Expr *key, Expr *value, uint32_t end);
