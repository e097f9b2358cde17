/* A case is one op on given inputs in one type, with the expected result and the actual one. The
 * cases of an op and its reference are in its entry (OpTest) in ops/FAMILY.c; ops/entry.h says how
 * to write one.
 *
 * All cases of a suite are compiled as one graph, so that one JIT compile serves hundreds of them.
 * On this side, all numbers are doubles. Inputs are rounded to the case's types first, so that the
 * reference and the kernel start from equal values.
 *
 * Note [bounds]
 * For each element, a reference returns the exact result r and a scale s. The scale is |r|, unless
 * the arithmetic cancels: then it is the size of the terms that cancel. With u = ulps(op) *
 * ulp_f32(s), a case accepts all results from store(f32(r - u)) to store(f32(r + u)). So the
 * computed result may be `ulps` off, and it is rounded once to the type in which it is stored. With
 * 0 ulps exactly one value is accepted: the op is exact or correctly rounded. In real64 graphs u is
 * (4096 + 16 ulps(op)) * 2^-52 * s, and nothing is rounded.
 *
 * The bound of a single function is the one that templates/maths.cuh states. (CUDA's own functions
 * have 1 to 2 ulps, says its guide.) The bound of a composition is the sum of its functions'
 * bounds. A result that is a sum of n terms may be off by half an ulp more for each sequential
 * addition: see SUMS in ops/entry.h. */
#pragma once
#include "compiler/driver.h"
#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"
#include "number.h"

enum { TEST_MAX_IN = 7 }; /* inputs of a case; batch_norm_backward has 7 */

typedef struct Tensor {
  bool present; /* false: an optional input that is absent */
  DType dtype;
  uint32_t rank;
  int64_t dim[MAX_RANK], n;
  double *at; /* n values in row-major order; owned by the arena */
} Tensor;

typedef struct Case Case;

/* Sets rank and dims of y. */
typedef void ShapeOf(const Case *t, Tensor *y);
/* Fills y->at and scale; each has y->n elements. */
typedef void Reference(const Case *t, Tensor *y, double *scale);
/* Computes one element of a map op from the elements of its inputs and from its attributes. */
typedef double Element(const double *x, const double *a, double *scale);
/* Replaces `at`, the coordinates of element i of the result, by those of the element of input 0
 * that is moved there. Returns false if no element is moved there. */
typedef bool Move(const Case *t, int64_t i, int64_t *at);
/* Returns how many terms are added for one result. */
typedef double Terms(const Case *t);
/* Note [rows]
 * A row of cases is text, separated by spaces. The first word lists the types, as letters of
 * number_type; each makes a case. Next come the inputs, "7x33 l:33 s 2{1,nan} 3~p -": dims, a type
 * other than the case's, a scalar, given values, how to fill it (tensor_fill), absent. Last come
 * attributes, "dim=1 keepdim=1 shape=3x4". Two more set the case: result=f its result type, if its
 * inputs have several; tf32=1 a tf32 region. */
typedef struct RowWord {
  const char *at;
  size_t size, key; /* for an attribute, the length of its name; 0: an input */
} RowWord;
/* Reads the next word of a row, the types first, and moves *s past it. False at the row's end. */
bool row_word(const char **s, RowWord *out);
const char *row_words(const char *row); /* the words of the row after the types */

typedef struct ChainRow { /* gradients of a graph: inputs as in other rows; the last input is dy */
  const char *graph;      /* an expression of the other inputs: see built_expression */
  const char *row;
} ChainRow;

/* All that selftest knows about one op. Lists end with NULL; a NULL pointer is an empty list. */
typedef struct OpTest {
  OpKind op;
  const char *fills;  /* how to fill each input, one letter for each: see tensor_fill */
  const char *result; /* type of the result. "=": that of input 0, or of input 1 of `where`. "d":
                         attribute dtype. Else a letter of number_type */
  ShapeOf *shape;
  Reference *reference;
  Element *element;             /* of map ops; called by reference_map */
  Move *move;                   /* of moves; called by reference_moved and reference_picked */
  double ulps;                  /* see Note [bounds] */
  double per_term;              /* ulps added for each term */
  Terms *terms;                 /* NULL: per_term is 0 */
  bool narrow;                  /* a GPU's kernel or library rounds factors to the case's type */
  const char *why;              /* the reason for the bound */
  const char *const *cases;     /* rows of the forward cases */
  const char *const *gradients; /* rows for the gradient rule, at small smooth points */
  const ChainRow *chains;       /* gradients of graphs that contain this op */
  const char *no_cases, *no_gradient; /* why the entry has no cases or gradients */
} OpTest;

struct Case {
  const OpTest *test;
  const char *words; /* the row, without the types */
  DType type;
  Tensor in[TEST_MAX_IN];
  uint32_t n_in;
  Attr attr[MAX_ATTR];
  int64_t shape[MAX_RANK + 1]; /* attribute "shape=": rank, sizes */
  bool tf32;
  bool by_gpu;  /* the case ran on a GPU */
  bool by_cuda; /* its kernels are the text for GPUs */
  char result;
  Value value; /* its node in the graph */
  uint32_t first_source, output;
  Tensor want, got;
  double *scale; /* one for each element of `want` */
};
typedef VEC(Case) CaseList;

/* Return an attribute as a number; 0 if the op has no such attribute. */
double case_attr(const Case *t, const char *name);
int64_t case_int(const Case *t, const char *name);
int case_axis(const Case *t);    /* attribute `dim`: an axis of input 0, counted from the left */
double case_ulps(const Case *t); /* returns the bound in ulps; call it after the case has run */

/* Adds the cases of one row: inputs filled and rounded, but no expected results. */
void case_row_make(Arena *a, const OpTest *test, const char *row, CaseList *out);
/* Computes the expected result of a case: want and scale. */
void case_expect(Arena *a, Case *t);

void tensor_fill(Tensor *t, char how, uint64_t *random);
bool tensor_same_bits(const Tensor *x, const Tensor *y);
Tensor tensor_like(Arena *a, DType d, uint32_t rank, const int64_t *dim);

/* Returns the largest error of `got`, in units of the bound; the case fails above 1. Returns -1 if
 * shape or type differ from `want`. Sets `at` to the index of the element with that error. */
double case_error(const Case *t, bool real64, int64_t *at);
double element_error(DType d, bool real64, double ulps, double got, double want, double scale);
