/* The tree that the parser builds: plain tagged structs in the compile's arena. The grammar knows
 * no shapes, types or op names; all of that begins in passes/lower. Every node has the span of its
 * text. Lists are arrays with a count. */
#pragma once
#include "ast_expr.h"

typedef struct Stmt Stmt;

typedef struct Block { /* { ... } */
  Stmt **at;
  uint32_t n;
  uint32_t height; /* statements one within the other */
  Span span;
} Block;

typedef struct Function { /* def, and the bodies of data and infer */
  Name name;
  ParamList params;
  TypeExpr *results;
  uint32_t n_results;
  Block body;
} Function;

typedef enum StmtKind {
  STMT_expr,     /* value */
  STMT_assign,   /* assign: targets = values; both are lists of expressions */
  STMT_augment,  /* augment: target op= value */
  STMT_return,   /* exprs */
  STMT_assert,   /* exprs */
  STMT_if,       /* branch; other may be empty; `else if` is a block of one STMT_if */
  STMT_for,      /* loop */
  STMT_scan,     /* scan */
  STMT_emit,     /* named: emit name = value */
  STMT_autocast, /* region; without a block (has_block false) it rules the rest of the block */
  STMT_no_grad,  /* region, args empty */
  STMT_every,    /* every */
  STMT_minimize, /* minimize */
  STMT_metric,   /* named: metric name = value */
  STMT_def       /* def, in module bodies and op bodies only */
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
  DECL_expr,      /* value: a call such as manual_seed(1) */
  DECL_body       /* function, without parameters: statements typed at a prompt (ast_parse_input) */
} DeclKind;

typedef struct Decl {
  DeclKind kind;
  Span span;
  Name name; /* of the kinds that have one: for functions that of the function */
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

typedef struct Ast { /* of one source, in source order */
  Decl **at;
  uint32_t n, cap;
} Ast;

/* Parses the source that starts at `base` (diag_add_source). Mistakes are reported and skipped, so
 * the tree holds what could be read; false when there was any. */
bool ast_parse(Compile *c, uint32_t base, Ast *out);

/* The name that a declaration gives to the job's names; NULL where it gives none. */
const Name *ast_decl_name(const Decl *d);

/* What is typed at a prompt: declarations as above, or else statements, which become one DECL_body.
 * A final expression among them is what that returns. */
bool ast_parse_input(Compile *c, uint32_t base, Ast *out);
/* A bracket is still open at the end of the text, so more lines belong to it. */
bool ast_is_open(const char *text, uint32_t size);
/* Adds declarations to a job's; one of the same name takes the place of the earlier. The same holds
 * for `precision`, for calls of the same function, for imports of the same path, and for a train or
 * eval block of the same name=. Bodies are added. */
void ast_merge(Compile *c, Ast *into, const Ast *more);

/* --emit=ast: one node a line, indented by depth, with its kind, text and line:column. */
void ast_print(const Compile *c, const Ast *ast, Text *out);
