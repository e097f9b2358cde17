/* The functions that the actions of grammar/amp.y call. */
#pragma once
#include "parse.h"

/* parse.c */
bool parse_start(Parser *p, Compile *c, uint32_t base, Ast *out); /* everything before the parser */
void parse_run(Parser *p); /* runs the parser, and reports earlier problems too */
const Token *parse_next(Parser *p);
void parse_too_deep(Parser *p, Span span);

/* mistakes.c */
enum { MAX_EXPECTED = 64 };
typedef struct SyntaxError { /* what bison knows at a syntax error */
  int state;                 /* after all reductions that need no further token */
  int token;                 /* `token` and `expected` are bison's symbol kinds */
  int expected[MAX_EXPECTED];
  int n_expected;
} SyntaxError;
void parse_syntax_error(Parser *p, const SyntaxError *e);
const char *parse_symbol_name(int symbol); /* amp.y */

/* ast_build.c: create a node of the tree: EXPR(cond, @$, .as.cond = {..}). After an error, which is
 * reported, an expression becomes `none`, and a statement or declaration is NULL and left out. */
Expr *ast_expr(Parser *p, Expr e);
Stmt *ast_stmt(Parser *p, Stmt s);
#define EXPR(form, place, ...)                                                                     \
  ast_expr(p, (Expr){.kind = EXPR_##form, .span = (place), .height = 1, __VA_ARGS__})
#define STMT(form, place, ...)                                                                     \
  ast_stmt(p, (Stmt){.kind = STMT_##form, .span = (place), __VA_ARGS__})
#define DECL(form, place, ...)                                                                     \
  ast_add_decl(p, (Decl){.kind = DECL_##form, .span = (place), __VA_ARGS__})
void ast_add_decl(Parser *p, Decl d);

/* A list is reallocated when its count is a power of two, so it stores no capacity. */
void *ast_grow(Parser *p, void *at, uint32_t n, size_t size);
#define APPEND(list, ...)                                                                          \
  ((list).at = ast_grow(p, (list).at, (list).n, sizeof *(list).at),                                \
   (list).at[(list).n++] = (__VA_ARGS__))

ArgList ast_tuple(Parser *p, Expr *first, ExprList rest);
Stmt *ast_assign(Parser *p, ExprList targets, ExprList values, Span span);
Stmt *ast_augment(Parser *p, Expr *target, Operator op, Expr *value, Span span);
Stmt *ast_expr_stmt(Parser *p, ExprList exprs, Span span);
Block ast_add_stmt(Parser *p, Block block, Stmt *stmt); /* stmt NULL: it was skipped after an
                                                           error */
void ast_add_call(Parser *p, Expr *call, Span span);
