/* The grammar of ampc. It only builds the tree: every action is one ast_ call. LALR(1) without
 * conflicts and without precedence declarations; docs/grammar.md tells what makes that possible.
 * Statement ends (NL) and reserved words are decided before tokens come here (lex_tokens.c). */
%code requires {
#include "compiler/syntax/ast_build.h"
}
%code {
#include <stdlib.h>
static int amp_lex(AMP_STYPE *value, AMP_LTYPE *place, Parser *p);
static void amp_error(const AMP_LTYPE *place, Parser *p, const char *text);
#define YYMAXDEPTH 6000 /* entries, 32 bytes each */
#define YYLLOC_DEFAULT(current, rhs, n)                                                            \
  ((current).start = (n) ? YYRHSLOC(rhs, 1).start : YYRHSLOC(rhs, 0).end,                          \
   (current).end = YYRHSLOC(rhs, n).end)
}
%define api.pure full
%define api.prefix {amp_}
%define api.token.prefix {TOK_}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {Parser *p}

%union {
  const Token *token;
  Name name;
  NameList names;
  Expr *expr;
  ExprList exprs;
  Arg arg;
  ArgList args;
  Sub sub;
  SubList subs;
  Operator op;
  TypeExpr *type;
  TypeList types;
  Param param;
  ParamList params;
  Stmt *stmt;
  Block *block;
  Function *function;
  Decl *decl;
}

%token <token> NL "newline" NAME "name" INT FLOAT STRING DTYPE "type name"
%token IMPORT CONST DIM DEF MODULE OP DATA MODEL OPTIMIZER PRECISION TRAIN EVAL INFER
%token RETURN IF ELSE FOR IN SCAN CARRY EMIT AUTOCAST NO_GRAD MINIMIZE WITH METRIC EVERY ASSERT
%token AND OR NOT TRUE FALSE NONE
%token ARROW "->" POW "**" FDIV "//" LE "<=" GE ">=" EQ "==" NE "!="
%token <token> AUG "augmented assignment" DOTS "..."

%nterm <decl> decl
%nterm <function> def
%nterm <params> params params_opt paramlist
%nterm <param> param
%nterm <args> args callargs_opt arglist with_opt kwargs items
%nterm <arg> arg kwarg item
%nterm <type> type type_opt
%nterm <types> types ret_opt
%nterm <exprs> dims dimlist exprs exprs_tail
%nterm <names> names
%nterm <name> name
%nterm <block> block block_opt body stmts members
%nterm <stmt> stmt if_stmt
%nterm <op> cmpop
%nterm <expr> dim expr or and not cmp bor band sum term unary power postfix atom comp_if opt
%nterm <subs> subs
%nterm <sub> sub
%%
/* After a mistake the parser goes on behind the next end of a statement; mistakes.c has chosen
 * where that is. The rules with `body` take up the braces of a declaration that could not be read.
 */
program: %empty
  | program decl                                { ast_add_decl(p, $2); }
  | program expr NL                             { ast_add_decl(p, ast_expr_decl(p, $2, @2)); }
  | program error NL                            { yyerrok; }
  | program error body NL                       { yyerrok; }
  ;

decl: IMPORT STRING NL                          { $$ = ast_import(p, $2, @$); }
  | CONST name type_opt '=' expr NL             { $$ = ast_const(p, $2, $3, $5, @$); }
  | DIM name callargs_opt NL                    { $$ = ast_dim(p, $2, $3, @$); }
  | def                                         { $$ = ast_function_decl(p, DECL_def, $1, @$); }
  | MODULE name params_opt body NL              { $$ = ast_module(p, $2, $3, $4, @$); }
  | OP name '(' params ')' ARROW '(' params ')' body NL
                                                { $$ = ast_op(p, $2, $4, $8, $10, @$); }
  | DATA name params_opt block NL
      { $$ = ast_function_decl(p, DECL_data, ast_function(p, $2, $3, (TypeList){0}, $4), @$); }
  | MODEL name '=' expr block_opt NL            { $$ = ast_object(p, DECL_model, $2, $4, $5, @$); }
  | OPTIMIZER name '=' expr block_opt NL     { $$ = ast_object(p, DECL_optimizer, $2, $4, $5, @$); }
  | PRECISION expr block_opt NL       { $$ = ast_object(p, DECL_precision, (Name){0}, $2, $3, @$); }
  | TRAIN names IN expr with_opt block NL       { $$ = ast_run(p, DECL_train, $2, $4, $5, $6, @$); }
  | EVAL names IN expr with_opt block NL        { $$ = ast_run(p, DECL_eval, $2, $4, $5, $6, @$); }
  | INFER name '(' params ')' ret_opt block NL
      { $$ = ast_function_decl(p, DECL_infer, ast_function(p, $2, $4, $6, $7), @$); }
  ;
def: DEF name '(' params ')' ret_opt block NL   { $$ = ast_function(p, $2, $4, $6, $7); } ;
name: NAME                                      { $$ = (Name){$1->as.name, @1}; } ;
params_opt: %empty                              { $$ = (ParamList){0}; }
  | '(' params ')'                              { $$ = $2; }
  ;
callargs_opt: %empty                            { $$ = (ArgList){0}; }
  | '(' args ')'                                { $$ = $2; }
  ;
block_opt: %empty                               { $$ = NULL; }
  | block
  ;
with_opt: %empty                                { $$ = (ArgList){0}; }
  | WITH kwargs                                 { $$ = $2; }
  ;
kwargs: kwarg                                   { $$ = ast_args(p, (ArgList){0}, $1); }
  | kwargs ',' kwarg                            { $$ = ast_args(p, $1, $3); }
  ;
kwarg: name '=' expr                            { $$ = (Arg){.key = $1, .value = $3}; } ;
type_opt: %empty                                { $$ = NULL; }
  | ':' type                                    { $$ = $2; }
  ;
ret_opt: %empty                                 { $$ = (TypeList){0}; }
  | ARROW type                                  { $$ = ast_types(p, (TypeList){0}, $2); }
  | ARROW '(' types ')'                         { $$ = $3; }
  | ARROW '(' types ',' ')'                     { $$ = $3; }
  ;
types: type                                     { $$ = ast_types(p, (TypeList){0}, $1); }
  | types ',' type                              { $$ = ast_types(p, $1, $3); }
  ;
type: DTYPE                                     { $$ = ast_type(p, $1, NULL, @$); }
  | DTYPE '[' dims ']'                          { $$ = ast_type(p, $1, &$3, @$); }
  ;
dims: %empty                                    { $$ = (ExprList){0}; }
  | dimlist
  | dimlist ','
  ;
dimlist: dim                                    { $$ = ast_exprs(p, (ExprList){0}, $1); }
  | dimlist ',' dim                             { $$ = ast_exprs(p, $1, $3); }
  ;
dim: expr
  | DOTS                                        { $$ = NULL; }
  ;
params: %empty                                  { $$ = (ParamList){0}; }
  | paramlist
  | paramlist ','
  ;
paramlist: param                                { $$ = ast_params(p, (ParamList){0}, $1); }
  | paramlist ',' param                         { $$ = ast_params(p, $1, $3); }
  ;
param: name type_opt                            { $$ = ast_param($1, $2, NULL); }
  | name type_opt '=' expr                      { $$ = ast_param($1, $2, $4); }
  ;
names: name                                     { $$ = ast_names(p, (NameList){0}, $1); }
  | names ',' name                              { $$ = ast_names(p, $1, $3); }
  ;

/* A block holds statements, a body those and defs: of a module, or of an op. */
block: '{' stmts '}'                            { $$ = ast_block($2, @$); } ;
stmts: %empty                                   { $$ = ast_new_block(p); }
  | stmts stmt                                  { $$ = ast_add_stmt(p, $1, $2); }
  ;
body: '{' members '}'                           { $$ = ast_block($2, @$); } ;
members: %empty                                 { $$ = ast_new_block(p); }
  | members stmt                                { $$ = ast_add_stmt(p, $1, $2); }
  | members def                                 { $$ = ast_add_stmt(p, $1, ast_def(p, $2, @2)); }
  ;

stmt: exprs NL                                  { $$ = ast_expr_stmt(p, $1, @$); }
  | exprs '=' exprs NL                          { $$ = ast_assign(p, $1, $3, @$); }
  | expr AUG expr NL                            { $$ = ast_augment(p, $1, $2, $3, @$); }
  | RETURN exprs NL                             { $$ = ast_exprs_stmt(p, STMT_return, $2, @$); }
  | if_stmt NL
  | FOR names IN expr block NL                  { $$ = ast_for(p, $2, $4, $5, @$); }
  | SCAN name IN expr CARRY names block NL      { $$ = ast_scan(p, $2, $4, $6, $7, @$); }
  | EMIT name '=' expr NL                       { $$ = ast_named(p, STMT_emit, $2, $4, @$); }
  | AUTOCAST '(' args ')' block_opt NL          { $$ = ast_region(p, STMT_autocast, $3, $5, @$); }
  | NO_GRAD block NL                     { $$ = ast_region(p, STMT_no_grad, (ArgList){0}, $2, @$); }
  | EVERY expr block NL                         { $$ = ast_every(p, $2, $3, @$); }
  | MINIMIZE expr WITH names NL                 { $$ = ast_minimize(p, $2, $4, @$); }
  | METRIC name '=' expr NL                     { $$ = ast_named(p, STMT_metric, $2, $4, @$); }
  | ASSERT exprs NL                             { $$ = ast_exprs_stmt(p, STMT_assert, $2, @$); }
  | error NL                                    { $$ = NULL; yyerrok; }
  | error block NL                              { $$ = NULL; yyerrok; }
  | error block ELSE block NL                   { $$ = NULL; yyerrok; }
  | error block ELSE if_stmt NL                 { $$ = NULL; yyerrok; }
  ;
/* The NL that ends an `if` stands behind its last `}`, so that `} else {` is one line. */
if_stmt: IF expr block                          { $$ = ast_if(p, $2, $3, NULL, @$); }
  | IF expr block ELSE block                    { $$ = ast_if(p, $2, $3, $5, @$); }
  | IF expr block ELSE if_stmt               { $$ = ast_if(p, $2, $3, ast_else_if(p, $5, @5), @$); }
  ;

exprs: expr                                     { $$ = ast_exprs(p, (ExprList){0}, $1); }
  | exprs ',' expr                              { $$ = ast_exprs(p, $1, $3); }
  ;
/* One rule for each level of precedence, the loosest first. A comparison takes two operands of the
 * next level, so a chain `a < b < c` does not fit: it has a message of its own. */
expr: or
  | or IF or ELSE expr                          { $$ = ast_cond(p, $1, $3, $5, @$); }
  ;
or: and
  | or OR and                                   { $$ = ast_binary(p, OPER_or, $1, $3, @$); }
  ;
and: not
  | and AND not                                 { $$ = ast_binary(p, OPER_and, $1, $3, @$); }
  ;
not: cmp
  | NOT not                                     { $$ = ast_unary(p, OPER_not, $2, @$); }
  ;
cmp: bor
  | bor cmpop bor                               { $$ = ast_binary(p, $2, $1, $3, @$); }
  ;
cmpop: '<'                                      { $$ = OPER_lt; }
  | '>'                                         { $$ = OPER_gt; }
  | LE                                          { $$ = OPER_le; }
  | GE                                          { $$ = OPER_ge; }
  | EQ                                          { $$ = OPER_eq; }
  | NE                                          { $$ = OPER_ne; }
  ;
bor: band
  | bor '|' band                                { $$ = ast_binary(p, OPER_bitor, $1, $3, @$); }
  ;
band: sum
  | band '&' sum                                { $$ = ast_binary(p, OPER_bitand, $1, $3, @$); }
  ;
sum: term
  | sum '+' term                                { $$ = ast_binary(p, OPER_add, $1, $3, @$); }
  | sum '-' term                                { $$ = ast_binary(p, OPER_sub, $1, $3, @$); }
  ;
term: unary
  | term '*' unary                              { $$ = ast_binary(p, OPER_mul, $1, $3, @$); }
  | term '/' unary                              { $$ = ast_binary(p, OPER_div, $1, $3, @$); }
  | term FDIV unary                             { $$ = ast_binary(p, OPER_floordiv, $1, $3, @$); }
  | term '%' unary                              { $$ = ast_binary(p, OPER_mod, $1, $3, @$); }
  | term '@' unary                              { $$ = ast_binary(p, OPER_matmul, $1, $3, @$); }
  ;
unary: power
  | '-' unary                                   { $$ = ast_unary(p, OPER_neg, $2, @$); }
  | '~' unary                                   { $$ = ast_unary(p, OPER_invert, $2, @$); }
  ;
power: postfix
  | postfix POW unary                           { $$ = ast_binary(p, OPER_pow, $1, $3, @$); }
  ;
postfix: atom
  | postfix '(' args ')'                        { $$ = ast_call(p, $1, $3, @$); }
  | postfix '[' subs ']'                        { $$ = ast_index(p, $1, $3, @$); }
  | postfix '[' subs ',' ']'                    { $$ = ast_index(p, $1, $3, @$); }
  | postfix '.' name                            { $$ = ast_attr(p, $1, $3, @$); }
  ;
atom: NAME                                      { $$ = ast_name(p, EXPR_name, $1, @$); }
  | DTYPE                                       { $$ = ast_name(p, EXPR_type, $1, @$); }
  | INT                                         { $$ = ast_int(p, $1, @$); }
  | FLOAT                                       { $$ = ast_float(p, $1, @$); }
  | STRING                                      { $$ = ast_string(p, $1, @$); }
  | TRUE                                        { $$ = ast_plain(p, EXPR_true, @$); }
  | FALSE                                       { $$ = ast_plain(p, EXPR_false, @$); }
  | NONE                                        { $$ = ast_plain(p, EXPR_none, @$); }
  | '(' expr ')'                                { $$ = $2; }
  | '(' expr ',' exprs_tail ')'                 { $$ = ast_tuple(p, $2, $4, @$); }
  | '[' ']'                                     { $$ = ast_list(p, (ArgList){0}, @$); }
  | '[' items ']'                               { $$ = ast_list(p, $2, @$); }
  | '[' items ',' ']'                           { $$ = ast_list(p, $2, @$); }
  | '[' expr FOR names IN or comp_if ']'        { $$ = ast_comp(p, $2, $4, $6, $7, @$); }
  ;
exprs_tail: %empty                              { $$ = (ExprList){0}; }
  | exprs
  | exprs ','
  ;
comp_if: %empty                                 { $$ = NULL; }
  | IF or                                       { $$ = $2; }
  ;
items: item                                     { $$ = ast_args(p, (ArgList){0}, $1); }
  | items ',' item                              { $$ = ast_args(p, $1, $3); }
  ;
item: expr                                      { $$ = (Arg){.value = $1}; }
  | '*' expr                                    { $$ = (Arg){.star = true, .value = $2}; }
  ;
args: %empty                                    { $$ = (ArgList){0}; }
  | arglist
  | arglist ','
  ;
arglist: arg                                    { $$ = ast_args(p, (ArgList){0}, $1); }
  | arglist ',' arg                             { $$ = ast_args(p, $1, $3); }
  ;
arg: expr                                       { $$ = (Arg){.value = $1}; }
  | name '=' expr                               { $$ = (Arg){.key = $1, .value = $3}; }
  | '*' expr                                    { $$ = (Arg){.star = true, .value = $2}; }
  ;
subs: sub                                       { $$ = ast_subs(p, (SubList){0}, $1); }
  | subs ',' sub                                { $$ = ast_subs(p, $1, $3); }
  ;
sub: expr                                { $$ = (Sub){.kind = SUB_index, .span = @$, .index = $1}; }
  | DOTS                                        { $$ = (Sub){.kind = SUB_ellipsis, .span = @$}; }
  | opt ':' opt                                 { $$ = ast_slice($1, $3, NULL, @$); }
  | opt ':' opt ':' opt                         { $$ = ast_slice($1, $3, $5, @$); }
  ;
opt: %empty                                     { $$ = NULL; }
  | expr
  ;
%%

static int amp_lex(AMP_STYPE *value, AMP_LTYPE *place, Parser *p)
{
  const Token *t = parse_next(p);
  value->token = t;
  *place = t->span;
  return t->kind;
}

static void amp_error(const AMP_LTYPE *place, Parser *p, const char *text)
{
  (void)text; /* with custom errors only "memory exhausted" comes here */
  parse_too_deep(p, *place);
}

/* The rule to reduce by in this state before this token, 0 if there is none. */
static int reduction(int state, int token)
{
  int at = yypact[state];
  if (!yypact_value_is_default(at)) {
    at += token;
    if (0 <= at && at <= YYLAST && yycheck[at] == token) return yytable[at] < 0 ? -yytable[at] : 0;
  }
  return yydefact[state];
}

/* The look-ahead correction finds a mistake before any reduction, so the state on top of the stack
 * says little: after `if a` it is that of any name. This does the reductions that are still
 * possible, on a copy of what is above `real`, and gives the state that is truly stuck. */
static int settled_state(const yypcontext_t *context)
{
  enum { MOST = 64 };
  const yy_state_t *real = context->yyssp;
  int above[MOST], n = 0, rule;
  for (int state = *real; n < MOST && (rule = reduction(state, context->yytoken)) != 0;) {
    int pop = yyr2[rule], from_above = pop < n ? pop : n;
    n -= from_above;
    real -= pop - from_above;
    int below = n ? above[n - 1] : *real, lhs = yyr1[rule] - YYNTOKENS, at = yypgoto[lhs] + below;
    bool listed = 0 <= at && at <= YYLAST && yycheck[at] == below;
    state = listed ? yytable[at] : yydefgoto[lhs];
    above[n++] = state;
  }
  return n ? above[n - 1] : *real;
}

static int yyreport_syntax_error(const yypcontext_t *context, Parser *p)
{
  SyntaxError e = {.state = settled_state(context), .token = context->yytoken};
  yysymbol_kind_t expected[MAX_EXPECTED];
  int n = yypcontext_expected_tokens(context, expected, MAX_EXPECTED);
  for (e.n_expected = 0; e.n_expected < n; e.n_expected++)
    e.expected[e.n_expected] = expected[e.n_expected];
  parse_syntax_error(p, &e);
  return 0;
}

const char *parse_symbol_name(int symbol)
{
  return yysymbol_name((yysymbol_kind_t)symbol);
}
