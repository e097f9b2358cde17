/* Ops of the job: `op name(x: float[N, D]) -> (y: float[N, D]) { ... }`, whose kernels are the
 * user's text.
 *
 * Each call has a row of its own (Node.row), as the sizes and numbers of the call are constants of
 * its text; all that is not said here is as in the table's row `own`. The row's tensors are in the
 * order of its signature, and so are the node's inputs. The node is one output, `main`; each
 * further one is an `own_result` node right behind it, which reads it and is always of its kernel.
 *
 * Note [own backward]
 * The rule of such an op is written in the language. It is elaborated behind each call in a train
 * block, in a region with autocast off, as nodes that nobody reads: `own_operand` nodes stand for
 * what backward is given, an `own_backward` node ends it and names the gradients. So it is checked
 * and typed like any code. Pass gradient copies it for each loss, with the true values in the place
 * of the operands, zeros where an output has no gradient; simplify drops the first one. */
#pragma once
#include "ops.h"

/* `cast`: what becomes of float inputs in a region f16, bf16 or f32. */
typedef enum OwnCast {
  OWN_region,  /* not said: f32 where the region is, else nothing */
  OWN_none,    /* nothing */
  OWN_promote, /* the widest of them */
  OWN_low,     /* the type of the region */
  OWN_type     /* OwnOp.type */
} OwnCast;

enum { MAX_RESULTS = 8 };

typedef struct OwnTensor { /* a parameter of the signature */
  const char *name, *type; /* "x", "float" */
  Span span;
  uint32_t rank; /* of outputs */
  int64_t dim[MAX_RANK];
} OwnTensor;

typedef struct OwnNumber { /* a constant of the text: a size, or a number of the call */
  const char *name;
  bool is_float;
  Attr value;
} OwnNumber;

typedef struct OwnText {
  const char *text; /* NULL: there is none */
  uint32_t size;
  Span span; /* of the text itself, in the job or in its own file */
  bool raw;  /* character for character; else there were escapes */
} OwnText;

typedef struct OwnOp {
  const char *name;
  Span span; /* of the name */
  const OwnTensor *input, *output;
  const OwnNumber *number;
  uint32_t n_inputs, n_outputs, n_numbers;
  uint32_t main; /* the first output of floats, else 0: that of the node */
  OwnCast cast;
  DType type;
  OwnText text[TARGET_COUNT];
  int64_t threads;     /* CUDA: one runs the text for each i of [0, threads); -1: a grid is given */
  int64_t grid, block; /* the launch */
  int64_t shared;      /* bytes of `shared`; 0: none */
  int64_t parts;       /* CPU: the text is run for each `part` of [0, parts); -1: once */
} OwnOp;

/* That of a node whose kernel is the job's text; NULL: it is an op of the table. */
static inline const OwnOp *own_of(const Node *n)
{
  return n->row ? n->row->own : NULL;
}

/* The node of a call: `row` is complete but for what the table's row gives. Value 0 after a
 * message. */
Value own_append(Compile *c, const Cursor *at, const OwnOp *own, const Value *in);
/* The nodes of all outputs, `op` and those that are appended here. */
void own_append_results(Compile *c, const Cursor *at, Value op, Value *out);
/* The node of output i; 0: it has none, for nobody reads it. */
Value own_result(const Graph *g, Value op, uint32_t i);
/* The type of output `i`, by the types of the inputs. */
DType own_output_type(Compile *c, const Node *n, uint32_t i);
/* Stands in backward for input i; then for outputs, then for their gradients. */
Value own_operand(Compile *c, const Cursor *at, Value op, uint32_t i);
/* Ends backward: a gradient, or nothing, for each input. */
void own_backward(Compile *c, const Cursor *at, Value op, const Value *gradients);
/* The gradients of the inputs, by those of the outputs; {0}: that one has none. */
void own_gradients(Compile *c, Value op, const Value *dy, Value *out_dx);
/* Whether the elements of n are made of those of input i, and not of its shape or type alone. What
 * stands for an op's operands until its backward is copied is made of nothing. */
bool own_reads_elements(const Node *n, uint32_t i);
/* Whether the call has a backward to be copied. */
bool own_has_backward(const Graph *g, Value op);
/* f32, f16, ...: the name is one of them, and no kind of types such as `float`. */
bool own_exact_type(const OwnTensor *t, DType *out);
