/* The tree that the parser builds: plain tagged structs in the compile's arena. The grammar knows
 * no shapes, types or op names; all of that begins in passes/lower. Every node has the span of its
 * text. Lists are arrays with a count. */
#pragma once
#include "compiler/diag/diag.h"

typedef struct Expr Expr;
typedef struct Stmt Stmt;
typedef struct Decl Decl;

typedef struct Name { /* an identifier and where it stands; text is NULL when absent */
  const char *text;
  Span span;
} Name;

typedef struct NameList {
  Name *at;
  uint32_t n;
} NameList;

typedef struct ExprList {
  Expr **at;
  uint32_t n;
} ExprList;

typedef struct Arg { /* f(x), f(key=x), f(*x), [*x] */
  Name key;
  bool star;
  Expr *value;
} Arg;

typedef struct ArgList {
  Arg *at;
  uint32_t n;
} ArgList;

typedef enum SubKind { SUB_index, SUB_ellipsis, SUB_slice } SubKind;
typedef struct Sub { /* one subscript: x[i], x[...], x[a:b:c] */
  SubKind kind;
  Span span;
  Expr *index;
  Expr *start, *stop, *step; /* NULL when left out */
} Sub;

typedef enum ExprKind {
  EXPR_name,   /* name */
  EXPR_type,   /* name: f16 bf16 f32 i32 i64 u8 bool float int str list, as a value */
  EXPR_int,    /* integer */
  EXPR_float,  /* number */
  EXPR_string, /* string, escapes already resolved */
  EXPR_true,
  EXPR_false,
  EXPR_none,
  EXPR_list,   /* args: [a, *b] */
  EXPR_tuple,  /* args: (a, b), also `return a, b` */
  EXPR_comp,   /* comp: [value for names in iter if cond] */
  EXPR_call,   /* call */
  EXPR_index,  /* index */
  EXPR_attr,   /* attr: base.name */
  EXPR_unary,  /* unary */
  EXPR_binary, /* binary; `and` and `or` too */
  EXPR_cond    /* cond: then if test else other */
} ExprKind;

typedef enum Operator {
  OPER_add,
  OPER_sub,
  OPER_mul,
  OPER_div,
  OPER_floordiv,
  OPER_mod,
  OPER_matmul,
  OPER_pow,
  OPER_lt,
  OPER_gt,
  OPER_le,
  OPER_ge,
  OPER_eq,
  OPER_ne,
  OPER_bitand,
  OPER_bitor,
  OPER_and,
  OPER_or,
  OPER_neg,
  OPER_invert,
  OPER_not,
  OPER_count
} Operator;
const char *operator_text(Operator op); /* "+", "//", "and", ... */

struct Expr {
  ExprKind kind;
  uint16_t height; /* levels of the tree below, 1 for a leaf; at most 500, so passes may recurse */
  Span span;
  union {
    const char *name;
    int64_t integer;
    double number;
    struct {
      const char *text;
      size_t size;
    } string;
    ArgList args;
    struct {
      Expr *value;
      NameList names;
      Expr *iter, *cond;
    } comp;
    struct {
      Expr *callee;
      ArgList args;
    } call;
    struct {
      Expr *base;
      Sub *subs;
      uint32_t n;
    } index;
    struct {
      Expr *base;
      Name name;
    } attr;
    struct {
      Operator op;
      Expr *operand;
    } unary;
    struct {
      Operator op;
      Expr *left, *right;
    } binary;
    struct {
      Expr *test, *then, *other;
    } cond;
  } as;
};

typedef struct TypeExpr TypeExpr; /* float[N, 3, ...] in a signature */
struct TypeExpr {
  const char *name; /* "float", "f16", ... ; NULL when no type was written */
  bool tensor;      /* brackets were there, perhaps empty */
  Expr **dims;      /* a NULL entry is `...` */
  uint32_t n_dims;
  Span span;
};

typedef struct Param {
  Name name;
  TypeExpr type;
  Expr *value; /* default, or NULL */
} Param;

typedef struct ParamList {
  Param *at;
  uint32_t n;
} ParamList;

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
  DECL_import,    /* import: path */
  DECL_const,     /* constant */
  DECL_dim,       /* dim */
  DECL_def,       /* function */
  DECL_module,    /* module */
  DECL_op,        /* op: outputs are in `outputs` */
  DECL_data,      /* function */
  DECL_model,     /* object: value and clauses */
  DECL_optimizer, /* object */
  DECL_precision, /* object, name absent */
  DECL_train,     /* run */
  DECL_eval,      /* run */
  DECL_infer,     /* function */
  DECL_expr,      /* value: a call such as manual_seed(1) */
  DECL_body       /* function, without parameters: statements typed at a prompt (ast_parse_input) */
} DeclKind;

struct Decl {
  DeclKind kind;
  Span span;
  union {
    struct {
      const char *path;
    } import;
    struct {
      Name name;
      TypeExpr type;
      Expr *value;
    } constant;
    struct {
      Name name;
      ArgList args;
    } dim;
    Function function;
    struct {
      Name name;
      ParamList params;
      Block body;
    } module;
    struct {
      Name name;
      ParamList params, outputs;
      Block body;
    } op;
    struct {
      Name name;
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
};

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
