/* The syntax tree of expressions, and of the signatures that contain them. */
#pragma once
#include "compiler/diag/diag.h"

typedef struct Expr Expr;

/* A list that stores no capacity; ast_grow() extends it. */
#define LIST(T)                                                                                    \
  struct {                                                                                         \
    T *at;                                                                                         \
    uint32_t n;                                                                                    \
  }

/* An identifier and its location. `text` is NULL if there is no identifier. */
typedef struct Name {
  const char *text;
  Span span;
} Name;

/* The text of a string literal. It may contain NUL bytes. */
typedef struct StringText {
  const char *text;
  size_t size;
} StringText;

typedef LIST(Name) NameList;

typedef LIST(Expr *) ExprList;

/* An argument or list item: f(x), f(key=x), f(*x), [*x]. */
typedef struct Arg {
  Name key;
  bool star;
  Expr *value;
} Arg;

typedef LIST(Arg) ArgList;

typedef enum SubKind { SUB_index, SUB_ellipsis, SUB_slice } SubKind;
/* One subscript: x[i], x[...], x[a:b:c]. */
typedef struct Sub {
  SubKind kind;
  Span span;
  Expr *index;
  Expr *start, *stop, *step; /* NULL if omitted */
} Sub;

typedef LIST(Sub) SubList;

typedef enum ExprKind {
  EXPR_name,   /* name */
  EXPR_type,   /* name: a type as a value: f16 bf16 f32 i32 i64 u8 bool float int str list */
  EXPR_int,    /* integer */
  EXPR_float,  /* number */
  EXPR_string, /* string, with escapes resolved */
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
  EXPR_binary, /* binary, including `and` and `or` */
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
  uint16_t height; /* levels of its subtree; 1: a leaf; at most 500, so passes may recurse */
  Span span;
  union {
    const char *name;
    int64_t integer;
    double number;
    StringText string;
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
      SubList subs;
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

/* Returns the name of the called function: "f" for `f(x)`; "" if e is NULL or no call of a name. */
static inline const char *called_name(const Expr *e)
{
  bool call = e && e->kind == EXPR_call && e->as.call.callee->kind == EXPR_name;
  return call ? e->as.call.callee->as.name : "";
}

/* A type in a signature: float[N, 3, ...]; unit; int(1, 64); "mean" | "sum". */
typedef struct TypeExpr {
  const char *name; /* "float", "f16", "unit", ..; "one of": texts; NULL: no type */
  bool tensor;      /* written with brackets, which may be empty */
  Expr **dims;      /* the sizes, of which a NULL entry is `...`; both bounds; or the texts */
  uint32_t n_dims;
  Span span;
} TypeExpr;

typedef LIST(TypeExpr) TypeList;

typedef struct Param {
  Name name;
  TypeExpr type;
  Expr *value; /* the default; NULL: none */
} Param;

typedef LIST(Param) ParamList;
