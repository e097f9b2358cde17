/* The op table in memory: what ops.def expands to. */
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
  /* an index into a table of the graph; -1: not known yet */
  ATTR_source,
  ATTR_param,
  ATTR_setting,
  ATTR_metric,
  ATTR_optimizer,
  ATTR_group, /* a group of the optimizer in attribute `optimizer` */
  ATTR_output,
  ATTR_loop
} AttrKind;

typedef struct AttrInfo {
  const char *name;
  AttrKind kind;
  bool required;
  Attr value; /* default; ATTR_axes: bit mask, 0 means none given */
} AttrInfo;

typedef struct InputInfo {
  const char *name;
  bool optional; /* may be absent: value 0 */
  bool variadic; /* the last input stands for any number of them */
} InputInfo;

typedef struct OpSignature {
  InputInfo input[MAX_SIGNATURE];
  AttrInfo attr[MAX_ATTR];
  uint32_t n_inputs, n_attrs;
  bool internal; /* not callable from the language */
} OpSignature;

/* Arguments of a file op's kernel; the op's code lists them by these names. */
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
  bool (*shape)(Compile *c, Node *n); /* sets dims and dtype of n; reports mistakes of users */
  OpPrecision precision;
  /* Adds the gradients of n's inputs to the graph, given dy. Writes a Value (or {0}) for each input
   * to out_dx. NULL: not differentiable, the gradient is zero. */
  void (*gradient)(Compile *c, Value n, Value dy, Value *out_dx);
  OpTemplate tmpl;
  uint64_t traits; /* OpTrait */
  const char *code_text;
  const char *doc; /* one line, often a formula; "" for most internal ops */
  OpSignature signature;
  OpCode code; /* of map and row ops */
  FileArg file_args[MAX_FILE_ARGS];
  uint32_t n_file_args;
  const struct OwnOp *own; /* of an op of the job */
} OpInfo;

/* The row of an op. The table is parsed at first use, once per process; thread-safe. A mistake in
 * the table ends the program with a message that names the op. */
const OpInfo *op_row(OpKind op);
/* The row of a node: its own row or that of the table. Everything that is known about an op is
 * found through it. */
static inline const OpInfo *op_of(const Node *n)
{
  return n->row ? n->row : op_row(n->op);
}
static inline bool op_has(const Node *n, OpTrait trait)
{
  return (op_of(n)->traits & (uint64_t)trait) != 0;
}

/* Note [steps]
 * Each statement of a row op, as an elementwise op. Pass split uses these ops if a row
 * is too long for one block. They are generated from the table and numbered after its ops:
 * "softmax_m", "softmax_s", "softmax_each", of f32. Their inputs are those of the row op, then the
 * result of each statement; an input that the statement does not read is absent. Their attributes
 * are those of the row op, and `length` and `inner` of the row in [outer, length, inner]. */
OpKind op_step(OpKind row, uint32_t statement);
static inline bool op_is_step(const Node *n)
{
  return n->op >= OP_COUNT;
}

bool op_lookup(const char *name, OpKind *out); /* not for internal ops */
/* The op of that name, internal or not. It must exist. */
OpKind op_named(const char *name);

bool op_input_optional(const OpInfo *op, uint32_t i); /* input i of a node may be absent */
bool op_takes(const OpInfo *op, FileArg what);        /* its kernel has this argument */
bool op_by_library(
    const OpInfo *op); /* a matrix product or convolution, which the vendor library runs */
bool op_says_type(const OpInfo *op); /* autocast's categories do not apply */
/* It can add its f32 result directly to the slot of a gradient: a product, or T_keeps_sum. */
bool op_may_add(const OpInfo *op);
/* Bit mask of the inputs that are images, which pass layout makes channels last; 0: none. */
uint32_t op_image_inputs(const OpInfo *op);

/* Reports a wrong use of the table, which is a bug of the compiler: ends the program with the op's
 * name. */
_Noreturn void op_broken(const OpInfo *op, const char *what, const char *word);

/* ---- attributes: by name. An unknown name ends the program. ---- */

int64_t attr_int(const Node *n, const char *name); /* of any kind except ATTR_float */
double attr_float(const Node *n, const char *name);
void attr_set_int(Node *n, const char *name, int64_t value);
/* The attribute's index in the signature and in Node.attr; false: the op has no such attribute. For
 * code that handles many ops. */
bool attr_find(const OpInfo *op, const char *name, uint32_t *out);

/* True if n draws random numbers. A file op that can do so draws if its attribute p is not 0. */
bool op_draws(const Node *n);

/* The mask of axes that n reduces; false: it does not reduce a set of axes. */
bool op_axes(const Node *n, uint64_t *out);

/* True if n's kernel includes a piece or statement with this condition. */
bool code_stands(const Node *n, int condition);

/* ---- types: rules/promotion.c ---- */

/* The inputs of n that enter one expression and must have one type: [*first, result). */
uint32_t op_mixed_inputs(const Node *n, uint32_t *first);
/* Their common type by ordinary promotion, as torch.result_type. For most ops it is also the type
 * of the result. */
DType op_common_type(Compile *c, const Node *n);

/* ---- the three types of an op: rules/arithmetic.c ---- */

/* The types in which a node computes, sums and stores, as words: "f16", "tf32", "f32", "f64",
 * "i64". */
typedef struct OpTypes {
  const char *compute;    /* NULL: it computes nothing, or its own text decides */
  const char *accumulate; /* NULL: it has no sums */
  const char *store;      /* its dtype */
} OpTypes;
OpTypes op_types(Compile *c, const Node *n);

/* True if its sums are f64: the job requests it and the op supports it (else the job is
 * rejected). */
bool op_is_wide(const Compile *c, const Node *n);
/* Why an op and its gradient cannot have f64 sums; NULL: they can. */
const char *op_against_wide(const OpInfo *op);

/* ---- the values of integers: rules/range.c ---- */

typedef struct IntegerRange { /* inclusive; infinite: no bound is known */
  double low, high;
} IntegerRange;
/* The range of the values of v, from the nodes that v is computed from. */
IntegerRange integer_range(Compile *c, Value v);
/* The range of the values of a source, without reading a file. */
IntegerRange source_range(const ampc_source *s);

/* ---- forward differentiation: rules/tangent.c ---- */

/* The directional derivatives of the nodes from `first` on, when x[i] moves in direction along[i],
 * which has the shape of x[i]. They are ordinary nodes. Each is in the region of the node that it
 * differentiates. */
typedef struct Tangents {
  Compile *c;
  uint32_t first;
  uint16_t region; /* of the caller */
  Span span;       /* of the caller, for messages */
  uint32_t n;      /* number of nodes before; set by tangents_find */
  Value *of;       /* indexed by id, below n: the tangent; {0}: the node does not depend on x */
} Tangents;
/* Returns false after a message if an op between x and the results has no tangent. */
bool tangents_find(Tangents *t, const Value *x, const Value *along, uint32_t n_x);
bool op_has_tangent(OpKind op);

bool shape_step(Compile *c, Node *n);
#define AMPC_OP(name, sig, shape, prec, grad, tmpl, traits, code, doc)                             \
  bool shape_##shape(Compile *c, Node *n);                                                         \
  void grad_##grad(Compile *c, Value n, Value dy, Value *out_dx);
#include "ops.def"
