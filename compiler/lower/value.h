/* Values of the language at compile time, and queries on them that evaluate nothing. */
#pragma once
#include "compiler/graph/optimizers.h"
#include "compiler/graph/own.h"
#include "compiler/syntax/ast.h"
#include "late.h"
#include <string.h>

typedef struct Lower Lower;
typedef struct File File;
typedef struct Scope Scope;
typedef struct Class Class;
typedef struct Instance Instance;
typedef struct Dim Dim; /* infer.h */

/* Kinds of values, each with program text that yields one. */
typedef enum DatumKind {
  D_error,     /* a mistake that has been reported; its users stay silent */
  D_absent,    /* an unknown name or a missing argument; never the value of a variable */
  D_none,      /* none; also the result of a def without `return` */
  D_bool,      /* true, 2 > 1, bias == none */
  D_int,       /* 784, x.size(0) */
  D_float,     /* 0.1, 1 / 2 */
  D_str,       /* "mean" */
  D_list,      /* [1, 2]; with `tuple` set: (1, 2), or several results */
  D_dtype,     /* f16 */
  D_type_of,   /* x.dtype of a float tensor */
  D_word,      /* a name that stands for itself: off, low, promote */
  D_function,  /* a def, a method, a data block */
  D_native,    /* a function written in C: len, range, view */
  D_op,        /* an op of the op table: relu, softmax */
  D_own,       /* an op that the job declares */
  D_class,     /* a module that is not yet built: Linear */
  D_instance,  /* a module that is built: Linear(4, 2) */
  D_param,     /* Parameter([4]); also a tensor: reading it makes the node */
  D_tensor,    /* a node of the graph */
  D_init,      /* normal_(0.0, 0.02): an initialiser, not yet resolved for a parameter */
  D_schedule,  /* linear_schedule(...): a run-time number, computed from compile-time ones */
  D_optimizer, /* Adam(net, lr=1e-3) */
  D_dim,       /* dim S(max=512); in blocks that use it as a size, an int replaces it */
  D_statistics /* f1(logits, y): counts for `metric`, from which the host computes a number */
} DatumKind;

typedef struct Callable { /* a def; a method if `self` is set */
  const Function *def;
  File *file;
  Instance *self;
  bool data; /* a data block: may read sources; no precision clause applies */
} Callable;

typedef enum OwnClause { /* the clauses in the braces of an op */
                         CLAUSE_cast,
                         CLAUSE_threads,
                         CLAUSE_grid,
                         CLAUSE_block,
                         CLAUSE_shared,
                         CLAUSE_cuda,
                         CLAUSE_host,
                         CLAUSE_parts,
                         CLAUSE_COUNT
} OwnClause;

typedef struct OwnDecl {
  const Decl *decl;
  File *file;
  const Expr *clause[CLAUSE_COUNT]; /* NULL: no such clause */
  OwnText text[TARGET_COUNT];
  const Function *backward; /* NULL: no backward */
  bool good;                /* false: mistakes have been reported; calls report no more */
} OwnDecl;

typedef enum InitKind {
  INIT_constant,
  INIT_uniform,
  INIT_normal,
  INIT_xavier_uniform,
  INIT_xavier_normal,
  INIT_kaiming_uniform,
  INIT_kaiming_normal,
  INIT_trunc_normal,
  INIT_eye,
  INIT_dirac,
  INIT_orthogonal,
  INIT_padded,
  INIT_norms,
  INIT_left,
  INIT_right
} InitKind;

typedef struct ParamSlot ParamSlot;

typedef struct Init { /* an initialiser, before the shape of its parameter is known */
  InitKind kind;
  /* numbers as in ampc_init; `a` also holds the gain of xavier_* and the slope of kaiming_* */
  double a, b;
  double low, high;    /* bounds of trunc_normal_ */
  bool fan_out;        /* set by kaiming_* */
  const char *gain;    /* name of the nonlinearity, for kaiming_* */
  const ParamSlot *of; /* the weight from whose initial values the values are computed, or NULL */
} Init;

struct ParamSlot {
  Instance *owner; /* owner and name are the first path; ties add others */
  const char *name;
  uint8_t rank;
  int64_t dim[MAX_RANK];
  DType dtype;          /* type of a buffer; for weights f32 */
  DType store;          /* type in which a weight is read: f32, f16 or bf16; its master is f32 */
  ampc_packing packing; /* how the clause `store` at pack_span quantizes it */
  Span pack_span;
  bool buffer;
  const Init *init; /* from the last `init` clause that names it, else its own */
  Span span, init_span;
  struct ParamSlot *copy_of; /* the original, if this belongs to a copy(); else NULL */
  Value given;               /* functional_call() gives this value in its place; 0: none */
  int index;                 /* into Graph.params; -1 until its model is declared */
  Value node;                /* the node in block `block`, for version `version` */
  bool average;              /* that node reads the average that an optimizer keeps */
  uint16_t block;
  uint32_t version;
};

typedef struct Opt Opt;
typedef struct Native Native;
typedef struct Datum Datum;
struct Datum {
  uint8_t kind;
  bool tuple;     /* a list written with parentheses or none; printed with parentheses */
  uint8_t depth;  /* nesting depth of a list */
  bool sized;     /* an int computed from a dim, or a range of it: not to be unrolled */
  uint32_t n;     /* length of a list or string */
  uint32_t total; /* values in a list and its sublists, with repetitions */
  uint32_t holds; /* bit k: a list or a sublist holds a value of kind k */
  union {
    bool truth;
    int64_t integer;
    double number;
    const char *text; /* strings and words; NUL-terminated */
    const Datum *list;
    DType dtype;
    const Callable *function;
    const Native *native;
    OpKind op;
    const OwnDecl *own;
    const Class *class;
    Instance *instance;
    ParamSlot *param;
    Value tensor;
    const Init *init;
    const Schedule *schedule;
    Opt *optimizer;
    const Dim *dim;
    const Statistics *statistics;
    const void *object; /* any of the pointers above, for comparison */
  } as;
};

typedef VEC(Datum) DatumVec;

/* ---- value.c ---- */
static inline Datum d_of(DatumKind kind)
{
  return (Datum){.kind = (uint8_t)kind};
}
Datum d_bool(bool v);
Datum d_int(int64_t v);
Datum d_float(double v);
Datum d_str(const char *s);
Datum d_word(const char *s);
Datum d_dtype(DType d);
Datum d_list(const Datum *at, uint32_t n);
Datum d_list_of(Lower *l, const DatumVec *v);
Datum d_tensor(Value v);
Datum d_sizes(Lower *l, const int64_t *dim, uint32_t rank);
static inline bool d_is(Datum d, DatumKind kind)
{
  return d.kind == kind;
}
bool d_is_number(Datum d);                /* int, float */
bool d_is_tensor(Datum d);                /* tensor, param, schedule */
bool d_contains(Datum d, DatumKind kind); /* itself, or a value in its lists */
double d_number(Datum d);
/* True if a and b are equal as in Python. Decrements *left for each value and for each
 * BYTES_PER_WORK bytes that it reads, and stops at 0. */
bool d_equal(Datum a, Datum b, uint32_t *left);
extern const char *const type_of_help; /* help text for code that branches on x.dtype */
/* Returns 1, 0, or -1 after E307: a value such as a tensor has no truth value. */
int d_truth(Lower *l, Datum d, Span span, const char *place);
const char *d_text(Lower *l, Datum d); /* "3", "[1, 2]", "f32[32, 10]"; long texts end in "..." */
const char *d_whole_text(Lower *l, Datum d);  /* at most MAX_LIST + 1 bytes */
const char *d_kind_text(Lower *l, Datum d);   /* "int 3", "a list", "f32[32, 10]" */
const char *d_answer_text(Lower *l, Datum d); /* the same as d_kind_text(), but not shortened */

/* Reports an error and returns D_error. */
Datum fail(Lower *l, ErrorCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
#define refuse(...) (fail(__VA_ARGS__), false)
const char *source_text(Lower *l, Span span);
