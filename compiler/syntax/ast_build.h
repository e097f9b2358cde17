/* What the actions of grammar/amp.y call: one function per form of the tree. */
#pragma once
#include "parse.h"

typedef struct SubList {
  Sub *at;
  uint32_t n;
} SubList;

typedef struct TypeList {
  TypeExpr *at;
  uint32_t n;
} TypeList;

/* parse.c */
bool parse_start(Parser *p, Compile *c, uint32_t base, Ast *out); /* up to its tokens */
void parse_run(Parser *p); /* the parser over them, and what was found before */
const Token *parse_next(Parser *p);
void parse_too_deep(Parser *p, Span span);

/* mistakes.c */
enum { MAX_EXPECTED = 64 };
typedef struct SyntaxError { /* what bison knows when it is stuck */
  int state;                 /* after all reductions that need no other token */
  int token;                 /* this and `expected` are bison's symbol kinds */
  int expected[MAX_EXPECTED];
  int n_expected;
} SyntaxError;
void parse_syntax_error(Parser *p, const SyntaxError *e);
const char *parse_symbol_name(int symbol); /* amp.y */

/* Lists: the list with one more. */
ExprList ast_exprs(Parser *p, ExprList list, Expr *e);
ArgList ast_args(Parser *p, ArgList list, Arg arg);
NameList ast_names(Parser *p, NameList list, Name name);
ParamList ast_params(Parser *p, ParamList list, Param param);
TypeList ast_types(Parser *p, TypeList list, const TypeExpr *type);
SubList ast_subs(Parser *p, SubList list, Sub sub);

Expr *ast_name(Parser *p, ExprKind kind, const Token *t, Span span);
Expr *ast_int(Parser *p, const Token *t, Span span);
Expr *ast_float(Parser *p, const Token *t, Span span);
Expr *ast_string(Parser *p, const Token *t, Span span);
Expr *ast_plain(Parser *p, ExprKind kind, Span span);
Expr *ast_list(Parser *p, ArgList items, Span span);
Expr *ast_tuple(Parser *p, Expr *first, ExprList rest, Span span);
Expr *ast_comp(Parser *p, Expr *value, NameList names, Expr *iter, Expr *cond, Span span);
Expr *ast_call(Parser *p, Expr *callee, ArgList args, Span span);
Expr *ast_index(Parser *p, Expr *base, SubList subs, Span span);
Expr *ast_attr(Parser *p, Expr *base, Name name, Span span);
Expr *ast_unary(Parser *p, Operator op, Expr *operand, Span span);
Expr *ast_binary(Parser *p, Operator op, Expr *left, Expr *right, Span span);
Expr *ast_cond(Parser *p, Expr *then, Expr *test, Expr *other, Span span);
Sub ast_slice(Expr *start, Expr *stop, Expr *step, Span span);

/* dims is NULL where no brackets were written. */
TypeExpr *ast_type(Parser *p, const Token *t, const ExprList *dims, Span span);
Param ast_param(Name name, const TypeExpr *type, Expr *value); /* type may be NULL */
Function *ast_function(Parser *p, Name name, ParamList params, TypeList results, const Block *body);

Block *ast_new_block(Parser *p);
Block *ast_add_stmt(Parser *p, Block *block, Stmt *stmt); /* NULL: a statement that was skipped */
Block *ast_block(Block *block, Span span);

Stmt *ast_expr_stmt(Parser *p, ExprList exprs, Span span);
Stmt *ast_assign(Parser *p, ExprList targets, ExprList values, Span span);
Stmt *ast_augment(Parser *p, Expr *target, const Token *op, Expr *value, Span span);
Stmt *ast_exprs_stmt(Parser *p, StmtKind kind, ExprList exprs, Span span);
Stmt *ast_if(Parser *p, Expr *test, const Block *then, const Block *other, Span span);
Block *ast_else_if(Parser *p, Stmt *stmt, Span span);
Stmt *ast_for(Parser *p, NameList names, Expr *iter, const Block *body, Span span);
Stmt *ast_scan(Parser *p, Name name, Expr *iter, NameList carry, const Block *body, Span span);
Stmt *ast_named(Parser *p, StmtKind kind, Name name, Expr *value, Span span);
Stmt *ast_region(Parser *p, StmtKind kind, ArgList args, const Block *body, Span span);
Stmt *ast_every(Parser *p, Expr *interval, const Block *body, Span span);
Stmt *ast_minimize(Parser *p, Expr *loss, NameList optimizers, Span span);
Stmt *ast_def(Parser *p, const Function *function, Span span);

Decl *ast_import(Parser *p, const Token *path, Span span);
Decl *ast_const(Parser *p, Name name, const TypeExpr *type, Expr *value, Span span);
Decl *ast_dim(Parser *p, Name name, ArgList args, Span span);
Decl *ast_module(Parser *p, Name name, ParamList params, const Block *body, Span span);
Decl *ast_op(Parser *p, Name name, ParamList params, ParamList outputs, const Block *body,
             Span span);
Decl *ast_object(Parser *p, DeclKind kind, Name name, Expr *value, const Block *clauses, Span span);
Decl *ast_run(Parser *p, DeclKind kind, NameList names, Expr *source, ArgList with,
              const Block *body, Span span);
Decl *ast_function_decl(Parser *p, DeclKind kind, const Function *function, Span span);
Decl *ast_expr_decl(Parser *p, Expr *value, Span span);
void ast_add_decl(Parser *p, Decl *decl);
