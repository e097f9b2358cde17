/* What expands from ops.def, the one table of ops. */
#pragma once
#include "code.h"
#include "ops_core.h"
#include "traits.h"

typedef enum AttrKind {
  ATTR_int,
  ATTR_float,
  ATTR_bool,
  ATTR_axis,
  ATTR_axes,
  ATTR_dtype,
  /* an index into one of the graph's tables; -1: not known yet */
  ATTR_source,
  ATTR_param,
  ATTR_setting,
  ATTR_metric,
  ATTR_optimizer,
  ATTR_group, /* of the optimizer that the attribute `optimizer` names */
  ATTR_output,
  ATTR_loop
} AttrKind;

typedef struct AttrInfo {
  const char *name;
  AttrKind kind;
  bool required;
  Attr value; /* default; ATTR_axes: bit mask, 0 is "none given" */
} AttrInfo;

typedef struct InputInfo {
  const char *name;
  bool optional; /* may be value 0 */
  bool variadic; /* the last one: any number */
} InputInfo;

typedef struct OpSignature {
  InputInfo input[MAX_SIGNATURE];
  AttrInfo attr[MAX_ATTR];
  uint32_t n_inputs, n_attrs;
  bool internal; /* not callable from the language */
} OpSignature;

/* What the kernel of a file op takes, in the words of its code. */
typedef enum FileArg {
  FILE_inputs,
  FILE_out,
  FILE_state,
  FILE_metric,
  FILE_const_state,
  FILE_optimizer,
  FILE_const_optimizer,
  FILE_buffer,
  FILE_grad,
  FILE_ranges,
  FILE_moments,
  FILE_weights,
  FILE_random
} FileArg;
enum { MAX_FILE_ARGS = 4 };

typedef struct OpInfo {
  const char *name;
  const char *signature_text;         /* see ops.def */
  bool (*shape)(Compile *c, Node *n); /* sets dims and dtype kind of n; reports user mistakes */
  OpPrecision precision;
  /* Adds to the graph what n's inputs' gradients are, given dy; writes a Value (or none) for each
   * input to out_dx. NULL: not differentiable, the gradient is zero. */
  void (*gradient)(Compile *c, Value n, Value dy, Value *out_dx);
  OpTemplate tmpl;
  uint64_t traits; /* OpTrait */
  const char *code_text;
  const char *doc; /* one line; the source of a formula; "" for internal ops */
  OpSignature signature;
  OpCode code; /* of map and row ops */
  FileArg file_args[MAX_FILE_ARGS];
  uint32_t n_file_args;
  const struct OwnOp *own; /* of an op of the job */
} OpInfo;

/* The row of an op. The table is parsed at first use, once a process; thread-safe. A mistake in it
 * ends the program with a message that names the op. */
const OpInfo *op_row(OpKind op);
/* The row of a node's op, which it may bring itself: the way to all that is known about it. */
static inline const OpInfo *op_of(const Node *n)
{
  return n->row ? n->row : op_row(n->op);
}
static inline bool op_has(const Node *n, OpTrait trait)
{
  return (op_of(n)->traits & (uint64_t)trait) != 0;
}

/* Note [steps] The statements of a row op, each as an elementwise op of its own: pass split
 * makes of them what a row program computes where a row is too long for one block. They follow from
 * the table and stand behind its ops: "softmax_m", "softmax_s", "softmax_each" of f32. Inputs are
 * those of the row op, then what each statement has given; absent is what it does not read.
 * Attributes are those of the row op, the row's `length` and `inner`, of [outer, length, inner]. */
OpKind op_step(OpKind row, uint32_t statement);
static inline bool op_is_step(const Node *n)
{
  return n->op >= OP_COUNT;
}

bool op_lookup(const char *name, OpKind *out); /* language names only: internal ops are not found */
/* The op that a pass or a rule knows to be there; any name of the table. */
OpKind op_named(const char *name);

bool op_input_optional(const OpInfo *op, uint32_t i); /* input i of a node may be absent */
bool op_takes(const OpInfo *op, FileArg what);        /* its kernel, as its code says */
bool op_by_library(
    const OpInfo *op); /* a matrix product or convolution: the vendor library runs it */
bool op_says_type(const OpInfo *op); /* its precision is none of autocast's categories */
/* Its f32 result may be added to the slot of a gradient as it is made: a product, a T_keeps_sum. */
bool op_may_add(const OpInfo *op);
/* Bit mask of the inputs that are images and which pass layout lays channels last; 0: none. */
uint32_t op_image_inputs(const OpInfo *op);

/* A use of the table that does not fit it is our mistake: the program ends with the op's name. */
_Noreturn void op_broken(const OpInfo *op, const char *what, const char *word);

/* ---- attributes: by name. A name that the op does not have ends the program. ---- */

int64_t attr_int(const Node *n, const char *name); /* of every kind but ATTR_float */
double attr_float(const Node *n, const char *name);
void attr_set_int(Node *n, const char *name, int64_t value);
/* The attribute's place in the signature and Node.attr; false: the op has none of that name. For
 * code that treats many ops alike. */
bool attr_find(const OpInfo *op, const char *name, uint32_t *out);

/* It draws random numbers: a file op that may does so where its attribute p is not 0. */
bool op_draws(const Node *n);

/* The mask of axes that n reduces; false: it does not reduce a set of axes. */
bool op_axes(const Node *n, uint64_t *out);

/* Whether a piece or statement of code with this condition stands for n. */
bool code_stands(const Node *n, int condition);

/* ---- types: rules/promotion.c ---- */

/* The inputs of n that meet in one expression and must have one type: [*first, result). */
uint32_t op_mixed_inputs(const Node *n, uint32_t *first);
/* The type they meet in by ordinary promotion, as torch.result_type. For most ops it is the type of
 * the result too. */
DType op_common_type(Compile *c, const Node *n);

/* ---- the three types of an op: rules/arithmetic.c ---- */

/* What a node computes in, adds up in and stores, as words: "f16", "tf32", "f32", "f64", "i64". */
typedef struct OpTypes {
  const char *compute;    /* NULL: it computes nothing, or what its own text says */
  const char *accumulate; /* NULL: it adds nothing up */
  const char *store;      /* its dtype */
} OpTypes;
OpTypes op_types(Compile *c, const Node *n);

/* Its sums are f64: the job asks for that and they can be (else the job was refused). */
bool op_is_wide(const Compile *c, const Node *n);
/* Why the sums of an op and of its gradient cannot be f64; NULL: they can. */
const char *op_against_wide(const OpInfo *op);

/* ---- what integers may be: rules/range.c ---- */

typedef struct IntegerRange { /* inclusive; infinite: nothing is known */
  double low, high;
} IntegerRange;
/* Of the values of v, by what it is made of. */
IntegerRange integer_range(Compile *c, Value v);
/* Of what data give, without a look into a file. */
IntegerRange source_range(const ampc_source *s);

/* ---- forward differentiation: rules/tangent.c ---- */

/* The derivatives of nodes from `first` on when x[i] moves along along[i], which has its shape.
 * They are nodes like those of the program, each in the region of the one that it belongs to. */
typedef struct Tangents {
  Compile *c;
  uint32_t first;
  uint16_t region; /* of who asks */
  Span span;       /* the same, for messages */
  uint32_t n;      /* how many nodes there were; set by tangents_find */
  Value *of;       /* by id, below n: the tangent; {0}: the node does not depend on x */
} Tangents;
/* False after a message: an op on the way has none. */
bool tangents_find(Tangents *t, const Value *x, const Value *along, uint32_t n_x);
bool op_has_tangent(OpKind op);

bool shape_step(Compile *c, Node *n);
#define AMPC_OP(name, sig, shape, prec, grad, tmpl, traits, code, doc)                             \
  bool shape_##shape(Compile *c, Node *n);                                                         \
  void grad_##grad(Compile *c, Value n, Value dy, Value *out_dx);
#include "ops.def"
