/* Values of the language at compile time, and what is known of them without running anything. */
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

/* What a value is at compile time, with the program text that makes one. */
typedef enum DatumKind {
  D_error,    /* a mistake that has been reported: whatever uses it stays silent */
  D_absent,   /* no such name, or an argument that was not given; never a variable's value */
  D_none,     /* none; what a def without return gives */
  D_bool,     /* true, 2 > 1, bias == none */
  D_int,      /* 784, x.size(0) */
  D_float,    /* 0.1, 1 / 2 */
  D_str,      /* "mean" */
  D_list,     /* [1, 2]; with `tuple`, (1, 2) and what several results are */
  D_dtype,    /* f16 */
  D_type_of,  /* x.dtype of a float tensor */
  D_word,     /* a name that stands for itself: off, low, promote */
  D_function, /* a def, a method, a data block */
  D_native,   /* a function that C does: len, range, view */
  D_op,       /* an op of the table: relu, softmax */
  D_own,      /* an op that the job declares */
  D_class,    /* a module that is not built: Linear */
  D_instance, /* a module that is: Linear(4, 2) */
  D_param,    /* Parameter([4]); a tensor as well, whose node is made where it is read */
  D_tensor,   /* a node of the graph */
  D_init,     /* normal_(0.0, 0.02): an initialiser that has not met its parameter */
  D_schedule, /* linear_schedule(...): a number of the running program, made of compile-time ones */
  D_optimizer, /* Adam(net, lr=1e-3) */
  D_dim,       /* dim S(max=512); in blocks of which it is a size, an int takes its place */
  D_statistics /* f1(logits, y): counts that only `metric` takes; the host makes a number of them */
} DatumKind;

typedef struct Callable { /* a def; with self, a method */
  const Function *def;
  File *file;
  Instance *self;
  bool data; /* a data block: under no precision clause, may read sources */
} Callable;

typedef enum OwnClause { /* what stands in the braces of an op */
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
  const Expr *clause[CLAUSE_COUNT]; /* NULL: not said */
  OwnText text[TARGET_COUNT];
  const Function *backward; /* NULL: none */
  bool good;                /* else mistakes have been reported, and calls keep silent */
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
  INIT_padded
} InitKind;

typedef struct Init { /* an initialiser before it knows its parameter's shape */
  InitKind kind;
  double a, b;      /* as ampc_init; gain of xavier_*, slope `a` of kaiming_* */
  double low, high; /* trunc_normal_ */
  bool fan_out;     /* kaiming_* */
  const char *gain; /* nonlinearity of kaiming_* */
} Init;

typedef struct ParamSlot {
  Instance *owner; /* with `name` the canonical place: a tie adds others */
  const char *name;
  uint8_t rank;
  int64_t dim[MAX_RANK];
  DType dtype; /* of a buffer; weights lie in f32 */
  DType store; /* how a weight is stored where it is read: f32, f16 or bf16; its master is f32 */
  bool buffer;
  const Init *init; /* that of the last `init` clause, else its own */
  Span span, init_span;
  int index;  /* into Graph.params; -1 until its model is declared */
  Value node; /* the one of block `block` and version `version` */
  uint16_t block;
  uint32_t version;
} ParamSlot;

typedef struct Opt Opt;
typedef struct Native Native;
typedef struct Datum Datum;
struct Datum {
  uint8_t kind;
  bool tuple;     /* a list written without brackets: printed so */
  uint8_t depth;  /* of a list: lists within lists */
  bool sized;     /* an int made of a dim, or its range: not to be unrolled */
  uint32_t n;     /* of a list or string */
  uint32_t total; /* of a list: values in it and in its lists, each as often as it stands there */
  uint32_t holds; /* of a list: bit k: it or its lists hold a value of kind k */
  union {
    bool truth;
    int64_t integer;
    double number;
    const char *text; /* strings and words; ends in a zero */
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
    const void *object; /* whichever of the pointers above it is */
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
bool d_contains(Datum d, DatumKind kind); /* itself or somewhere in its lists */
double d_number(Datum d);
/* Counts down *left for each value and each BYTES_PER_WORK bytes that it reads, and ends at 0. */
bool d_equal(Datum a, Datum b, uint32_t *left);
extern const char *const type_of_help; /* where the program asks what x.dtype is */
/* 1, 0; -1 when the value has no truth (a tensor): reported as E307 at span. */
int d_truth(Lower *l, Datum d, Span span, const char *place);
const char *d_text(Lower *l, Datum d); /* "3", "[1, 2]", "f32[32, 10]": long ones end in "..." */
const char *d_whole_text(Lower *l,
                         Datum d);          /* up to MAX_LIST bytes, and one more if it is longer */
const char *d_kind_text(Lower *l, Datum d); /* "int 3", "a list", "f32[32, 10]" */
const char *d_answer_text(Lower *l, Datum d); /* the same, with all that a list has */

/* Reports and gives D_error. */
Datum fail(Lower *l, ErrorCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
#define refuse(...) (fail(__VA_ARGS__), false)
const char *source_text(Lower *l, Span span);
