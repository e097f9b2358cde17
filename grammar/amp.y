/* The grammar of ampc. It only builds the tree: every action creates one node. It is LALR(1)
 * without conflicts and without precedence declarations; docs/grammar.md explains what makes that
 * possible. lex_tokens.c decides statement ends (NL) and reserved words before the parser gets the
 * tokens. */
%code requires {
#include "compiler/syntax/ast_build.h"
}
%code {
#include <stdlib.h>
static int amp_lex(AMP_STYPE *value, AMP_LTYPE *place, Parser *p);
static void amp_error(const AMP_LTYPE *place, Parser *p, const char *text);
#define BINARY(op, left, right, place) EXPR(binary, place, .as.binary = {op, left, right})
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
  TypeExpr type;
  TypeList types;
  Param param;
  ParamList params;
  Stmt *stmt;
  Block block;
  Function function;
}

%token <token> NL "newline" NAME "name" INT FLOAT STRING DTYPE "type name"
%token IMPORT CONST DIM DEF MODULE OP DATA MODEL OPTIMIZER PRECISION TRAIN EVAL INFER
%token RETURN IF ELSE FOR IN SCAN CARRY EMIT AUTOCAST NO_GRAD MINIMIZE WITH METRIC EVERY ASSERT
%token AND OR NOT TRUE FALSE NONE
%token ARROW "->" POW "**" FDIV "//" LE "<=" GE ">=" EQ "==" NE "!="
%token SETS "=" /* behind a key at the top level: `opt.lr = 0.01` */
%token <token> AUG "augmented assignment" DOTS "..."

%nterm <function> def
%nterm <params> params params_opt paramlist
%nterm <param> param
%nterm <args> args callargs_opt arglist with_opt kwargs items
%nterm <arg> arg kwarg item
%nterm <type> type type_opt
%nterm <types> types ret_opt
%nterm <exprs> dims dimlist exprs exprs_tail choices
%nterm <names> names
%nterm <name> name
%nterm <block> block block_opt body stmts members
%nterm <stmt> stmt if_stmt
%nterm <op> cmpop
%nterm <expr> dim expr or and not cmp bor band sum term unary power postfix atom comp_if opt
%nterm <subs> subs
%nterm <sub> sub
%%
/* After a syntax error the parser continues after a statement end that mistakes.c has chosen. The
 * rules with `body` consume the braces of a declaration that could not be parsed. */
program: %empty
  | program decl
  | program expr NL                             { ast_add_call(p, $2, @2); }
  | program expr SETS expr NL                   { ast_add_setting(p, $2, $4, @4.end); }
  | program error NL                            { yyerrok; }
  | program error body NL                       { yyerrok; }
  ;

decl: IMPORT STRING NL                          { DECL(import, @$, .as.path = $2->as.string); }
  | CONST name type_opt '=' expr NL
      { DECL(const, @$, .name = $2, .as.constant = {$3, $5}); }
  | DIM name callargs_opt NL                    { DECL(dim, @$, .name = $2, .as.args = $3); }
  | def                                 { DECL(def, @$, .name = $1.name, .as.function = $1); }
  | MODULE name params_opt body NL      { DECL(module, @$, .name = $2, .as.module = {$3, $4}); }
  | OP name '(' params ')' ARROW '(' params ')' body NL
      { DECL(op, @$, .name = $2, .as.op = {$4, $8, $10}); }
  | DATA name params_opt block NL
      { DECL(data, @$, .name = $2, .as.function = {$2, $3, NULL, 0, $4}); }
  | MODEL name '=' expr block_opt NL    { DECL(model, @$, .name = $2, .as.object = {$4, $5}); }
  | OPTIMIZER name '=' expr block_opt NL
      { DECL(optimizer, @$, .name = $2, .as.object = {$4, $5}); }
  | PRECISION expr block_opt NL                 { DECL(precision, @$, .as.object = {$2, $3}); }
  | TRAIN names IN expr with_opt block NL       { DECL(train, @$, .as.run = {$2, $4, $5, $6}); }
  | EVAL names IN expr with_opt block NL        { DECL(eval, @$, .as.run = {$2, $4, $5, $6}); }
  | INFER name '(' params ')' ret_opt block NL
      { DECL(infer, @$, .name = $2, .as.function = {$2, $4, $6.at, $6.n, $7}); }
  ;
def: DEF name '(' params ')' ret_opt block NL   { $$ = (Function){$2, $4, $6.at, $6.n, $7}; } ;
name: NAME                                      { $$ = (Name){$1->as.name, @1}; } ;
params_opt: %empty                              { $$ = (ParamList){0}; }
  | '(' params ')'                              { $$ = $2; }
  ;
callargs_opt: %empty                            { $$ = (ArgList){0}; }
  | '(' args ')'                                { $$ = $2; }
  ;
block_opt: %empty                               { $$ = (Block){0}; }
  | block
  ;
with_opt: %empty                                { $$ = (ArgList){0}; }
  | WITH kwargs                                 { $$ = $2; }
  ;
kwargs: kwarg                                   { $$ = (ArgList){0}; APPEND($$, $1); }
  | kwargs ',' kwarg                            { $$ = $1; APPEND($$, $3); }
  ;
kwarg: name '=' expr                            { $$ = (Arg){.key = $1, .value = $3}; } ;
type_opt: %empty                                { $$ = (TypeExpr){0}; }
  | ':' type                                    { $$ = $2; }
  ;
ret_opt: %empty                                 { $$ = (TypeList){0}; }
  | ARROW type                                  { $$ = (TypeList){0}; APPEND($$, $2); }
  | ARROW '(' types ')'                         { $$ = $3; }
  | ARROW '(' types ',' ')'                     { $$ = $3; }
  ;
types: type                                     { $$ = (TypeList){0}; APPEND($$, $1); }
  | types ',' type                              { $$ = $1; APPEND($$, $3); }
  ;
type: DTYPE                                    { $$ = (TypeExpr){.name = $1->as.name, .span = @$}; }
  | DTYPE '[' dims ']'                      { $$ = (TypeExpr){$1->as.name, true, $3.at, $3.n, @$}; }
  | DTYPE '(' exprs ')'                    { $$ = (TypeExpr){$1->as.name, false, $3.at, $3.n, @$}; }
  | choices                                { $$ = (TypeExpr){"one of", false, $1.at, $1.n, @$}; }
  ;
choices: STRING
      { $$ = (ExprList){0}; APPEND($$, EXPR(string, @1, .as.string = $1->as.string)); }
  | choices '|' STRING
      { $$ = $1; APPEND($$, EXPR(string, @3, .as.string = $3->as.string)); }
  ;
dims: %empty                                    { $$ = (ExprList){0}; }
  | dimlist
  | dimlist ','
  ;
dimlist: dim                                    { $$ = (ExprList){0}; APPEND($$, $1); }
  | dimlist ',' dim                             { $$ = $1; APPEND($$, $3); }
  ;
dim: expr
  | DOTS                                        { $$ = NULL; }
  ;
params: %empty                                  { $$ = (ParamList){0}; }
  | paramlist
  | paramlist ','
  ;
paramlist: param                                { $$ = (ParamList){0}; APPEND($$, $1); }
  | paramlist ',' param                         { $$ = $1; APPEND($$, $3); }
  ;
param: name type_opt                            { $$ = (Param){$1, $2, NULL}; }
  | name type_opt '=' expr                      { $$ = (Param){$1, $2, $4}; }
  ;
names: name                                     { $$ = (NameList){0}; APPEND($$, $1); }
  | names ',' name                              { $$ = $1; APPEND($$, $3); }
  ;

/* A block contains statements. A body, of a module or an op, contains statements and defs. */
block: '{' stmts '}'                            { $$ = $2; $$.span = @$; } ;
stmts: %empty                                   { $$ = (Block){0}; }
  | stmts stmt                                  { $$ = ast_add_stmt(p, $1, $2); }
  ;
body: '{' members '}'                           { $$ = $2; $$.span = @$; } ;
members: %empty                                 { $$ = (Block){0}; }
  | members stmt                                { $$ = ast_add_stmt(p, $1, $2); }
  | members def                           { $$ = ast_add_stmt(p, $1, STMT(def, @2, .as.def = $2)); }
  ;

stmt: exprs NL                                  { $$ = ast_expr_stmt(p, $1, @$); }
  | exprs '=' exprs NL                          { $$ = ast_assign(p, $1, $3, @$); }
  | expr AUG expr NL                            { $$ = ast_augment(p, $1, $2->as.op, $3, @$); }
  | RETURN exprs NL                             { $$ = STMT(return, @$, .as.exprs = $2); }
  | if_stmt NL
  | FOR names IN expr block NL                  { $$ = STMT(for, @$, .as.loop = {$2, $4, $5}); }
  | SCAN name IN expr CARRY names block NL  { $$ = STMT(scan, @$, .as.scan = {$2, $4, $6, $7}); }
  | EMIT name '=' expr NL                       { $$ = STMT(emit, @$, .as.named = {$2, $4, {0}}); }
  | AUTOCAST '(' args ')' block_opt NL
      { $$ = STMT(autocast, @$, .as.region = {$3, $5.span.end != 0, $5}); }
  | NO_GRAD block NL                    { $$ = STMT(no_grad, @$, .as.region = {{0}, true, $2}); }
  | EVERY expr block NL                         { $$ = STMT(every, @$, .as.every = {$2, $3}); }
  | MINIMIZE expr WITH names NL              { $$ = STMT(minimize, @$, .as.minimize = {$2, $4}); }
  | METRIC name '=' expr with_opt NL        { $$ = STMT(metric, @$, .as.named = {$2, $4, $5}); }
  | ASSERT exprs NL                             { $$ = STMT(assert, @$, .as.exprs = $2); }
  | error NL                                    { $$ = NULL; yyerrok; }
  | error block NL                              { $$ = NULL; yyerrok; }
  | error block ELSE block NL                   { $$ = NULL; yyerrok; }
  | error block ELSE if_stmt NL                 { $$ = NULL; yyerrok; }
  ;
/* The NL that ends an `if` follows its last `}`, so `} else {` must be on one line. */
if_stmt: IF expr block                 { $$ = STMT(if, @$, .as.branch = {.test = $2, .then = $3}); }
  | IF expr block ELSE block                    { $$ = STMT(if, @$, .as.branch = {$2, $3, $5}); }
  | IF expr block ELSE if_stmt
      {
        Block other = ast_add_stmt(p, (Block){.span = @5}, $5); /* a block with one `if` */
        $$ = STMT(if, @$, .as.branch = {$2, $3, other});
      }
  ;

exprs: expr                                     { $$ = (ExprList){0}; APPEND($$, $1); }
  | exprs ',' expr                              { $$ = $1; APPEND($$, $3); }
  ;
/* One rule for each precedence, the loosest first. A comparison takes two operands of the next
 * rule, so a chain `a < b < c` is an error, which has its own message. */
expr: or
  | or IF or ELSE expr                          { $$ = EXPR(cond, @$, .as.cond = {$3, $1, $5}); }
  ;
or: and
  | or OR and                                   { $$ = BINARY(OPER_or, $1, $3, @$); }
  ;
and: not
  | and AND not                                 { $$ = BINARY(OPER_and, $1, $3, @$); }
  ;
not: cmp
  | NOT not                                    { $$ = EXPR(unary, @$, .as.unary = {OPER_not, $2}); }
  ;
cmp: bor
  | bor cmpop bor                               { $$ = BINARY($2, $1, $3, @$); }
  ;
cmpop: '<'                                      { $$ = OPER_lt; }
  | '>'                                         { $$ = OPER_gt; }
  | LE                                          { $$ = OPER_le; }
  | GE                                          { $$ = OPER_ge; }
  | EQ                                          { $$ = OPER_eq; }
  | NE                                          { $$ = OPER_ne; }
  ;
bor: band
  | bor '|' band                                { $$ = BINARY(OPER_bitor, $1, $3, @$); }
  ;
band: sum
  | band '&' sum                                { $$ = BINARY(OPER_bitand, $1, $3, @$); }
  ;
sum: term
  | sum '+' term                                { $$ = BINARY(OPER_add, $1, $3, @$); }
  | sum '-' term                                { $$ = BINARY(OPER_sub, $1, $3, @$); }
  ;
term: unary
  | term '*' unary                              { $$ = BINARY(OPER_mul, $1, $3, @$); }
  | term '/' unary                              { $$ = BINARY(OPER_div, $1, $3, @$); }
  | term FDIV unary                           { $$ = BINARY(OPER_floordiv, $1, $3, @$); }
  | term '%' unary                              { $$ = BINARY(OPER_mod, $1, $3, @$); }
  | term '@' unary                              { $$ = BINARY(OPER_matmul, $1, $3, @$); }
  ;
unary: power
  | '-' unary                                  { $$ = EXPR(unary, @$, .as.unary = {OPER_neg, $2}); }
  | '~' unary                               { $$ = EXPR(unary, @$, .as.unary = {OPER_invert, $2}); }
  ;
power: postfix
  | postfix POW unary                           { $$ = BINARY(OPER_pow, $1, $3, @$); }
  ;
postfix: atom
  | postfix '(' args ')'                        { $$ = EXPR(call, @$, .as.call = {$1, $3}); }
  | postfix '[' subs ']'                        { $$ = EXPR(index, @$, .as.index = {$1, $3}); }
  | postfix '[' subs ',' ']'                    { $$ = EXPR(index, @$, .as.index = {$1, $3}); }
  | postfix '.' name                            { $$ = EXPR(attr, @$, .as.attr = {$1, $3}); }
  ;
atom: NAME                                      { $$ = EXPR(name, @$, .as.name = $1->as.name); }
  | DTYPE                                       { $$ = EXPR(type, @$, .as.name = $1->as.name); }
  | INT                                        { $$ = EXPR(int, @$, .as.integer = $1->as.integer); }
  | FLOAT                                      { $$ = EXPR(float, @$, .as.number = $1->as.number); }
  | STRING                                    { $$ = EXPR(string, @$, .as.string = $1->as.string); }
  | TRUE                                        { $$ = EXPR(true, @$); }
  | FALSE                                       { $$ = EXPR(false, @$); }
  | NONE                                        { $$ = EXPR(none, @$); }
  | '(' expr ')'                                { $$ = $2; }
  | '(' expr ',' exprs_tail ')'           { $$ = EXPR(tuple, @$, .as.args = ast_tuple(p, $2, $4)); }
  | '[' ']'                                     { $$ = EXPR(list, @$); }
  | '[' items ']'                               { $$ = EXPR(list, @$, .as.args = $2); }
  | '[' items ',' ']'                           { $$ = EXPR(list, @$, .as.args = $2); }
  | '[' expr FOR names IN or comp_if ']'       { $$ = EXPR(comp, @$, .as.comp = {$2, $4, $6, $7}); }
  ;
exprs_tail: %empty                              { $$ = (ExprList){0}; }
  | exprs
  | exprs ','
  ;
comp_if: %empty                                 { $$ = NULL; }
  | IF or                                       { $$ = $2; }
  ;
items: item                                     { $$ = (ArgList){0}; APPEND($$, $1); }
  | items ',' item                              { $$ = $1; APPEND($$, $3); }
  ;
item: expr                                      { $$ = (Arg){.value = $1}; }
  | '*' expr                                    { $$ = (Arg){.star = true, .value = $2}; }
  ;
args: %empty                                    { $$ = (ArgList){0}; }
  | arglist
  | arglist ','
  ;
arglist: arg                                    { $$ = (ArgList){0}; APPEND($$, $1); }
  | arglist ',' arg                             { $$ = $1; APPEND($$, $3); }
  ;
arg: expr                                       { $$ = (Arg){.value = $1}; }
  | name '=' expr                               { $$ = (Arg){.key = $1, .value = $3}; }
  | '*' expr                                    { $$ = (Arg){.star = true, .value = $2}; }
  ;
subs: sub                                       { $$ = (SubList){0}; APPEND($$, $1); }
  | subs ',' sub                                { $$ = $1; APPEND($$, $3); }
  ;
sub: expr                                { $$ = (Sub){.kind = SUB_index, .span = @$, .index = $1}; }
  | DOTS                                        { $$ = (Sub){.kind = SUB_ellipsis, .span = @$}; }
  | opt ':' opt                                 { $$ = (Sub){SUB_slice, @$, NULL, $1, $3, NULL}; }
  | opt ':' opt ':' opt                         { $$ = (Sub){SUB_slice, @$, NULL, $1, $3, $5}; }
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
  (void)text; /* with custom errors, bison calls this only for "memory exhausted" */
  parse_too_deep(p, *place);
}

/* Returns the rule by which this state reduces before this token; 0 if it does not reduce. */
static int reduction(int state, int token)
{
  int at = yypact[state];
  if (!yypact_value_is_default(at)) {
    at += token;
    if (0 <= at && at <= YYLAST && yycheck[at] == token) return yytable[at] < 0 ? -yytable[at] : 0;
  }
  return yydefact[state];
}

/* Returns the state that cannot continue. Look-ahead correction finds an error before any
 * reduction, so the state on top of the stack is too general: after `if a` it is the state after
 * any name. So this function makes the reductions that are still possible, on a copy of the states
 * above `real`. */
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
