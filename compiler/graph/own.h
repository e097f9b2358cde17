/* Own ops: `op name(x: float[N, D]) -> (y: float[N, D]) { ... }`, whose kernels are the user's
 * text.
 *
 * Each call has its own row (Node.row), since the sizes and numbers of the call are constants of
 * the text. All its other columns are those of the table's row `own`. The row's tensors and the
 * node's inputs are in the order of the op's signature. The node of the call stands for one output,
 * `main`. Each further output is an `own_result` node right after it. That node reads the call's
 * node and is always computed by its kernel.
 *
 * Note [own backward]
 * The backward of an own op is written in the language. In a train block it is elaborated after
 * each call, in a region with autocast off, so it is checked and typed like any code. `own_operand`
 * nodes stand for the values that backward receives. An `own_backward` node ends the backward and
 * lists the gradients; no other node reads them. Pass gradient copies the nodes of the backward for
 * each loss. It replaces the operands by the real values, and by zeros if an output has no
 * gradient. Pass simplify removes the originals. */
#pragma once
#include "ops.h"

/* `cast`: how a region f16, bf16 or f32 casts float inputs. */
typedef enum OwnCast {
  OWN_region,  /* no `cast` clause: a region f32 casts to f32, other regions do not cast */
  OWN_none,    /* inputs are not cast */
  OWN_promote, /* cast to the widest type of the float inputs */
  OWN_low,     /* cast to the type of the region */
  OWN_type     /* cast to OwnOp.type */
} OwnCast;

enum { MAX_RESULTS = 8 };

/* An input or output in the signature. */
typedef struct OwnTensor {
  const char *name, *type; /* "x", "float" */
  Span span;
  uint32_t rank; /* set for outputs only */
  int64_t dim[MAX_RANK];
} OwnTensor;

/* A constant of the text: a size, or a number from the call. */
typedef struct OwnNumber {
  const char *name;
  bool is_float;
  Attr value;
} OwnNumber;

typedef struct OwnText {
  const char *text; /* NULL: no text for this target */
  uint32_t size;
  Span span; /* span of the text itself, in the job or in its own file */
  bool raw;  /* the text is exactly as in the file; false: the literal contains escapes */
} OwnText;

typedef struct OwnOp {
  const char *name;
  Span span; /* span of the name */
  const OwnTensor *input, *output;
  const OwnNumber *number;
  uint32_t n_inputs, n_outputs, n_numbers;
  uint32_t main; /* index of the output that the node stands for: the first of floats, else 0 */
  OwnCast cast;
  DType type;
  OwnText text[TARGET_COUNT];
  int64_t threads;     /* CUDA: one thread for each i of [0, threads); -1: the job gives a grid */
  int64_t grid, block; /* CUDA: blocks of a launch, threads of a block */
  int64_t shared;      /* bytes of `shared` memory; 0: none */
  int64_t parts;       /* CPU: the text runs for each `part` of [0, parts); -1: it runs once */
} OwnOp;

/* Returns the OwnOp of a node whose kernel is the job's text; NULL for an op of the table. */
static inline const OwnOp *own_of(const Node *n)
{
  return n->row ? n->row->own : NULL;
}

/* Appends the node of a call. Returns value 0 after a message. */
Value own_append(Compile *c, const Cursor *at, const OwnOp *own, const Value *in);
/* Writes the nodes of all outputs to `out`: `op` itself, and `own_result` nodes that it appends. */
void own_append_results(Compile *c, const Cursor *at, Value op, Value *out);
/* Returns the node of output i; 0 if the output has no node, because no node reads it. */
Value own_result(const Graph *g, Value op, uint32_t i);
/* Returns the type of output i, which follows from the types of the inputs. */
DType own_output_type(Compile *c, const Node *n, uint32_t i);
/* Adds a node for an operand of backward; i counts inputs, outputs, gradients of outputs. */
Value own_operand(Compile *c, const Cursor *at, Value op, uint32_t i);
/* Adds the node that ends backward. `gradients` has a value for each input; {0}: no gradient. */
void own_backward(Compile *c, const Cursor *at, Value op, const Value *gradients);
/* Computes the gradients of the inputs from `dy`, those of the outputs; {0}: no gradient. */
void own_gradients(Compile *c, Value op, const Value *dy, Value *out_dx);
/* True if the elements of n are computed from the elements of input i, not only from its shape or
 * type. False for operand nodes, which stand for operands until backward is copied. */
bool own_reads_elements(const Node *n, uint32_t i);
/* True if the call has a backward to copy. */
bool own_has_backward(const Graph *g, Value op);
/* True if the tensor names one type such as f32 or f16, not a kind of types such as `float`. */
bool own_exact_type(const OwnTensor *t, DType *out);
