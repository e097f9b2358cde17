/* The op table in memory: what ops.def expands to. */
#pragma once
#include "code.h"
#include "ops_core.h"
#include "traits.h"
#include <stdatomic.h>

typedef enum AttrKind {
  ATTR_int,
  ATTR_float,
  ATTR_bool,
  ATTR_axis,
  ATTR_axes,
  ATTR_dtype,
  /* these are indices into a table of the graph; -1: not known yet */
  ATTR_source,
  ATTR_param,
  ATTR_setting,
  ATTR_metric,
  ATTR_optimizer,
  ATTR_group, /* a group of the optimizer that attribute `optimizer` names */
  ATTR_output,
  ATTR_loop
} AttrKind;

typedef struct AttrInfo {
  const char *name;
  AttrKind kind;
  bool required;
  Attr value; /* the default; ATTR_axes: a bit mask, 0: no axes given */
} AttrInfo;

typedef struct InputInfo {
  const char *name;
  bool optional;            /* may be absent: value 0 */
  bool variadic;            /* any number of inputs; only the last input can be variadic */
  const char *default_text; /* of a setting, in the language; NULL: it must be given */
} InputInfo;

typedef struct OpSignature {
  InputInfo input[MAX_SIGNATURE];
  AttrInfo attr[MAX_ATTR];
  uint32_t n_inputs, n_attrs;
  bool internal; /* programs cannot call the op */
} OpSignature;

/* The arguments of a file op's kernel. The op's code lists them by these names. */
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
  FILE_random,
  FILE_group_grad,
  FILE_group_weights
} FileArg;
enum { MAX_FILE_ARGS = 4 };

typedef struct OpInfo {
  const char *name;
  const char *signature_text; /* see ops.def */
  /* Sets dims and dtype of n. Returns false after it has reported a mistake of the user. */
  bool (*shape)(Compile *c, Node *n);
  OpPrecision precision;
  /* Adds the gradients of n's inputs to the graph, given dy. Writes a Value (or {0}) for each input
   * to out_dx. NULL: not differentiable, the gradient is zero. */
  void (*gradient)(Compile *c, Value n, Value dy, Value *out_dx);
  const char *gradient_text; /* the formulas of grad_formula, else NULL */
  OpTemplate tmpl;
  uint64_t traits; /* OpTrait */
  const char *code_text;
  const char *doc; /* help text of one line, often a formula; "" for most internal ops */
  OpSignature signature;
  OpCode code; /* only map and row ops have it */
  OpCode back; /* the parsed gradient_text */
  FileArg file_args[MAX_FILE_ARGS];
  uint32_t n_file_args;
  const struct OwnOp *own; /* the declaration of an own op; NULL: an op of the table */
} OpInfo;

/* The rows of the table and of the steps; NULL until op_rows_parse() has parsed the table. */
extern _Atomic(const OpInfo *) op_rows_parsed;
const OpInfo *op_rows_parse(void);
/* Returns the row of an op. The table is parsed at first use, once per process; thread-safe. A
 * mistake in the table ends the program with a message that names the op. */
static inline const OpInfo *op_row(OpKind op)
{
  const OpInfo *rows = atomic_load_explicit(&op_rows_parsed, memory_order_acquire);
  return (rows ? rows : op_rows_parse()) + op;
}
/* Returns the row of a node: its own row or that of the table. It holds all facts about the op. */
static inline const OpInfo *op_of(const Node *n)
{
  return n->row ? n->row : op_row(n->op);
}
static inline bool op_has(const Node *n, OpTrait trait)
{
  return (op_of(n)->traits & (uint64_t)trait) != 0;
}

/* Note [steps]
 * For each statement of a row op there is an elementwise op, a step. Pass split uses steps if a row
 * is too long for one block. They are generated from the table and numbered after its ops:
 * "softmax_m", "softmax_s", "softmax_each". They return f32. A step has the inputs of the row op,
 * then the result of each statement; an input that the step does not read is absent. It has the
 * attributes of the row op, then `length` and `inner` of the row in [outer, length, inner]. */
OpKind op_step(OpKind row, uint32_t statement);
static inline bool op_is_step(const Node *n)
{
  return n->op >= OP_COUNT;
}

bool op_lookup(const char *name, OpKind *out); /* false: no such op, or internal */
/* Returns the op of that name, internal or not. The op must exist. */
OpKind op_named(const char *name);

bool op_input_optional(const OpInfo *op, uint32_t i); /* true if input i may be absent */
bool op_takes(const OpInfo *op, FileArg what);        /* true if its kernel has this argument */
/* True if the vendor library runs the op: a matrix product or a convolution. */
bool op_by_library(const OpInfo *op);
/* True if the op determines its type itself, so that autocast's categories do not apply. */
bool op_says_type(const OpInfo *op);
/* True if the op can add its f32 result to the slot of a gradient: a product, or T_keeps_sum. */
bool op_may_add(const OpInfo *op);
/* Returns the inputs that are images as a bit mask. Pass layout makes these channels last. */
uint32_t op_image_inputs(const OpInfo *op);

/* Reports a wrong use of the table, which is a bug of the compiler: ends the program with the op's
 * name. */
_Noreturn void op_broken(const OpInfo *op, const char *what, const char *word);

/* ---- attributes: by name. An unknown name ends the program. ---- */

int64_t attr_int(const Node *n, const char *name); /* any kind except ATTR_float */
double attr_float(const Node *n, const char *name);
double attr_as_number(const Node *n, uint32_t i); /* attribute i, an integer or a float */
void attr_set_int(Node *n, const char *name, int64_t value);
/* Finds the attribute's index in the signature and in Node.attr, for code that handles many ops.
 * Returns false if the op has no such attribute. */
bool attr_find(const OpInfo *op, const char *name, uint32_t *out);

/* True if n draws random numbers. A random file op draws only if its attribute p is not 0. */
bool op_draws(const Node *n);

/* Finds the bit mask of the axes that n reduces. Returns false if n reduces no set of axes. */
bool op_axes(const Node *n, uint64_t *out);

/* Formulas with lets whose functions are ops, such as gradients. code_op: the op of an operator or
 * function. code_is_number: true if the formula names no input, dy or y; then code_number()
 * computes it. */
OpKind code_op(const Formula *f);
bool code_is_number(const OpCode *code, const Formula *f);
double code_number(const Node *n, const OpCode *code, const Formula *f);

/* gradient_reads_result: true if a formula, or the rule of relu, computes the gradient of the first
 * input from the result of the op.
 * gradient_is_passed: true if the gradients of all inputs are dy or -dy. */
bool gradient_reads_result(const OpInfo *op);
bool gradient_is_passed(const OpInfo *op);

/* True if a condition holds for n: it is -1, or the index of an attribute that is not 0. */
bool code_stands(const Node *n, int condition);
/* Returns the formula, or the operand that stands for it if the attribute of its brackets is 0. The
 * functions below look only at what stands. */
const Formula *code_standing(const Node *n, const Formula *f);
/* Returns how often the formula names `input` in this way: FORMULA_element ($0), FORMULA_row_value
 * (@1). */
uint32_t code_reads(const Node *n, const Formula *f, FormulaKind kind, uint32_t input);
static inline bool code_chooses(const Node *n, const Formula *f) /* true if it has a ? b : c */
{
  return code_reads(n, f, FORMULA_choose, 0) > 0;
}

/* ---- types: rules/promotion.c ---- */

/* Finds the inputs that enter one expression and must have one type: [*first, result). */
uint32_t op_mixed_inputs(const Node *n, uint32_t *first);
/* Returns the common type of these inputs by ordinary promotion, as torch.result_type. For most ops
 * it is also the type of the result. */
DType op_common_type(Compile *c, const Node *n);

/* ---- the three types of an op: rules/arithmetic.c ---- */

/* The names of the types in which a node computes, sums and stores: "f16", "tf32", "f64", "i64". */
typedef struct OpTypes {
  const char *compute;    /* NULL: the node computes nothing, or the text of an own op decides */
  const char *accumulate; /* NULL: the node has no sums */
  const char *store;      /* the node's dtype */
} OpTypes;
OpTypes op_types(Compile *c, const Node *n);

/* True if the sums of n are f64. A job that requests f64 from an op without support is rejected. */
bool op_is_wide(const Compile *c, const Node *n);
/* Returns the reason why an op and its gradient cannot have f64 sums; NULL if they can. */
const char *op_against_wide(const OpInfo *op);

/* ---- the values of integers: rules/range.c ---- */

/* Both bounds are inclusive. An infinite bound is unknown. */
typedef struct Interval {
  double low, high;
} Interval;
/* Returns the range of the values of v, derived from the nodes that v is computed from. */
Interval integer_range(Compile *c, Value v);
/* Returns the range of the values of a source. It reads no file. */
Interval source_range(const ampc_source *s);

/* ---- the values of floats: rules/bounds.c ---- */

/* What is known before a run about the overflow of a value; Note [bounds]. */
typedef enum Verdict {
  VERDICT_open, /* nothing */
  VERDICT_safe, /* if the operands are finite, all elements are finite */
  VERDICT_lost, /* all elements leave the range of the type: they are infinite */
  VERDICT_zero, /* all elements are rounded to 0, and not all of them are 0 before rounding */
} Verdict;
typedef struct ValueBound {
  Interval range; /* VERDICT_lost, VERDICT_zero: before rounding; else of the stored elements */
  Verdict verdict;
} ValueBound;
/* Returns the bounds of all nodes, indexed by node; only those of float nodes without effects are
 * meaningful. The types must be final. Allocates in the compile's arena. */
const ValueBound *bounds_find(Compile *c);
/* Returns the range of the stored elements; VERDICT_lost: before rounding. */
Interval bound_stored(const ValueBound *b);
/* Returns "no" for VERDICT_safe and VERDICT_zero, "yes" for VERDICT_lost, "open"; NULL: no float.
 */
const char *bound_word(const Node *n, const ValueBound *b);
/* Reports W411 for the values of the job with VERDICT_lost and VERDICT_zero. */
void bounds_warn(Compile *c);

/* ---- forward differentiation: rules/tangent.c ---- */

/* The tangents (directional derivatives) of the nodes from `first` on, if x[i] moves in direction
 * along[i], which has the shape of x[i]. Tangents are ordinary nodes. Each is in the region of the
 * node that it differentiates. */
typedef struct Tangents {
  Compile *c;
  uint32_t first;
  uint16_t region; /* the caller's region */
  Span span;       /* the caller's span, for messages */
  uint32_t n;      /* set by tangents_find(): number of nodes before it adds tangents */
  Value *of;       /* indexed by node id below n: the tangent; {0}: the node does not depend on x */
} Tangents;
/* Fills t->of. Returns false after a message if an op between x and the results has no tangent. */
bool tangents_find(Tangents *t, const Value *x, const Value *along, uint32_t n_x);
bool op_has_tangent(OpKind op);

bool shape_step(Compile *c, Node *n);
#define grad_by(text) grad_formula
#define AMPC_OP(name, sig, shape, prec, grad, tmpl, traits, code, doc)                             \
  bool shape_##shape(Compile *c, Node *n);                                                         \
  void grad_##grad(Compile *c, Value n, Value dy, Value *out_dx);
#include "ops.def"
#undef grad_by
