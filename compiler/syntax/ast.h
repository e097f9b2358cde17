/* The tree that the parser builds: tagged structs in the compile's arena. The grammar contains no
 * shapes, types or op names; pass lower adds them. Every node has the span of its text. Lists are
 * arrays with a count. */
#pragma once
#include "ast_expr.h"

typedef struct Stmt Stmt;

typedef struct Block { /* the statements of `{ ... }` */
  Stmt **at;
  uint32_t n;
  uint32_t height; /* levels of nested statements */
  Span span;
} Block;

/* A def, or the declaration of a data or infer statement. */
typedef struct Function {
  Name name;
  ParamList params;
  TypeExpr *results;
  uint32_t n_results;
  Block body;
} Function;

typedef enum StmtKind {
  STMT_expr,    /* value */
  STMT_assign,  /* assign: targets = values; both are lists of expressions */
  STMT_augment, /* augment: target op= value */
  STMT_return,  /* exprs */
  STMT_assert,  /* exprs */
  STMT_if,      /* branch; `other` may be empty; `else if` is a block of one STMT_if */
  STMT_for,     /* loop */
  STMT_scan,    /* scan */
  STMT_emit,    /* named: emit name = value */
  /* region; has_block false: it applies to the rest of the enclosing block */
  STMT_autocast,
  STMT_no_grad,  /* region, without args */
  STMT_every,    /* every */
  STMT_minimize, /* minimize */
  STMT_metric,   /* named: metric name = value */
  STMT_def       /* def, only in the body of a module or an op */
} StmtKind;

struct Stmt {
  StmtKind kind;
  Span span;
  union {
    Expr *value;
    struct {
      ExprList targets, values;
    } assign;
    struct {
      Expr *target;
      Operator op;
      Expr *value;
    } augment;
    ExprList exprs;
    struct {
      Expr *test;
      Block then, other;
    } branch;
    struct {
      NameList names;
      Expr *iter;
      Block body;
    } loop;
    struct {
      Name name;
      Expr *iter;
      NameList carry;
      Block body;
    } scan;
    struct {
      Name name;
      Expr *value;
      ArgList with; /* of `metric` */
    } named;
    struct {
      ArgList args;
      bool has_block;
      Block body;
    } region;
    struct {
      Expr *interval;
      Block body;
    } every;
    struct {
      Expr *loss;
      NameList optimizers;
    } minimize;
    Function def;
  } as;
};

typedef enum DeclKind {
  DECL_import,    /* path */
  DECL_const,     /* constant */
  DECL_dim,       /* args */
  DECL_def,       /* function */
  DECL_module,    /* module */
  DECL_op,        /* op: outputs are in `outputs` */
  DECL_data,      /* function */
  DECL_model,     /* object: value and clauses */
  DECL_optimizer, /* object */
  DECL_precision, /* object, without a name */
  DECL_train,     /* run */
  DECL_eval,      /* run */
  DECL_infer,     /* function */
  DECL_setting,   /* value; its name is a key such as opt.lr */
  DECL_expr,      /* value: a call such as manual_seed(1) */
  DECL_body       /* function without parameters: statements in `amp repl` (ast_parse_input) */
} DeclKind;

typedef struct Decl {
  DeclKind kind;
  Span span;
  Name name; /* name of the declaration, if its kind has one */
  union {
    StringText path;
    struct {
      TypeExpr type;
      Expr *value;
    } constant;
    ArgList args;
    Function function;
    struct {
      ParamList params;
      Block body;
    } module;
    struct {
      ParamList params, outputs;
      Block body;
    } op;
    struct {
      Expr *value;
      Block clauses;
    } object;
    struct {
      NameList names;
      Expr *source;
      ArgList with;
      Block body;
    } run;
    Expr *value;
  } as;
} Decl;

/* The declarations of one source, in the order of the text. */
typedef struct Ast {
  Decl **at;
  uint32_t n, cap;
} Ast;

/* Parses the source that starts at `base` (diag_add_source). Errors are reported and skipped, so
 * the tree contains all declarations that could be parsed. Returns false after an error. */
bool ast_parse(Compile *c, uint32_t base, Ast *out);
/* Parses whole declarations of a built-in source. */
bool ast_parse_part(Compile *c, Span part, Ast *out);

/* Returns reserved word i, for completion; NULL after the last one. *top: it is reserved only where
 * a declaration may begin. */
const char *ast_reserved_word(uint32_t i, bool *top);

/* Returns the name that a declaration defines in the job; NULL if it defines none. */
const Name *ast_decl_name(const Decl *d);

/* Parses text of `amp repl`: declarations, or else statements, which become one DECL_body. If the
 * last statement is an expression, the body returns its value. */
bool ast_parse_input(Compile *c, uint32_t base, Ast *out);
/* True if a bracket is open at the end of the text, so that more lines follow. */
bool ast_is_open(const char *text, uint32_t size);
/* Adds declarations to those of a job. A declaration replaces an earlier one with the same name.
 * `precision`, calls of the same function, imports of the same path, and train or eval blocks with
 * the same `name=` also replace earlier ones. Bodies are appended. */
void ast_merge(Compile *c, Ast *into, const Ast *more);

/* Prints --emit=ast: one node a line, indented by depth, with its kind, text and line:column. */
void ast_print(const Compile *c, const Ast *ast, Text *out);
