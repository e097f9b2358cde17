/* Cases: one op on given inputs in one type, what it must give and what it gave. What an op's cases
 * are, and its reference, stands in its entry (OpTest) in ops/FAMILY.c; see ops/entry.h.
 *
 * All cases of a suite go into one graph, so that one JIT compile serves hundreds of them. Numbers
 * are doubles on this side; they are rounded to the case's types before anything is computed from
 * them, so that the reference and the kernel start from equal values.
 *
 * Note [bounds]
 * A reference gives, for each element, the exact result r and a scale s (|r| unless the arithmetic
 * cancels: then the size of what cancels). With u = ulps(op) * ulp_f32(s), the accepted results are
 * those from store(f32(r - u)) to store(f32(r + u)): the compute result may be `ulps` off, then it
 * is rounded once to the type it is stored in. With 0 ulps that is one value: the op is exact or
 * correctly rounded. In real64 graphs ulp_f32 becomes ulp_f64.
 *
 * The limits of single functions are those that templates/maths.cuh states for them (the CUDA guide
 * has 1 to 2 for its own). The limits of compositions are sums of those. A result that is summed
 * from n terms may be off by half an ulp more for each addition that follows another: see SUMS in
 * ops/entry.h. */
#pragma once
#include "compiler/driver.h"
#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"
#include "number.h"

enum { TEST_MAX_IN = 7 }; /* inputs of a case: of batch_norm_backward */

typedef struct Tensor {
  bool present; /* an optional input may be absent */
  DType dtype;
  uint32_t rank;
  int64_t dim[MAX_RANK], n;
  double *at; /* n values, row by row; the arena's */
} Tensor;

typedef struct Case Case;

/* Sets rank and dims of y. */
typedef void ShapeOf(const Case *t, Tensor *y);
/* Fills y->at and scale, both of y->n elements. */
typedef void Reference(const Case *t, Tensor *y, double *scale);
/* One element of a map op: from its inputs' elements and the attributes as numbers. */
typedef double Element(const double *x, const double *a, double *scale);
/* Turns the place of element i of the result into that of input 0 which goes there; false: none. */
typedef bool Move(const Case *t, int64_t i, int64_t *at);
/* How many terms one result is summed from. */
typedef double Terms(const Case *t);
/* Note [rows]
 * A row of cases is text, a word each: first the types, letters of number_type, a case for each;
 * then the inputs: "7x33 l:33 s 2{1,nan} 3~p -" are dims, another type than the case's, a scalar,
 * given values, how to fill (tensor_fill), absent; then attributes: "dim=1 keepdim=1 shape=3x4",
 * and of the case: result=f (the type, where inputs are of several), tf32=1 (in a region of that
 * kind). */
typedef struct RowWord {
  const char *at;
  size_t size, key; /* of an attribute: the size of its name; 0: an input */
} RowWord;
/* The next word of a row, which *s moves behind; false: there is none. The first is the types. */
bool row_word(const char **s, RowWord *out);
const char *row_words(const char *row); /* behind the types */

typedef struct ChainRow { /* gradients of a graph: inputs as in other rows, the last one is dy */
  const char *graph;      /* built_expression, of the others */
  const char *row;
} ChainRow;

/* All that selftest knows of one op. Lists end with NULL; NULL: there are none. */
typedef struct OpTest {
  OpKind op;
  const char *fills;  /* how to fill each input, a letter each: see tensor_fill */
  const char *result; /* type of the result: "=" that of input 0 (condition aside), "d" that of
                         attribute dtype, or a letter of number_type */
  ShapeOf *shape;
  Reference *reference;
  Element *element;                   /* of map ops: what reference_map calls */
  Move *move;                         /* what reference_moved and reference_picked call */
  double ulps;                        /* see Note [bounds] */
  double per_term;                    /* ulps more for each of the terms */
  Terms *terms;                       /* NULL: per_term is 0 */
  bool narrow;                        /* a GPU's library rounds factors to the case's type */
  const char *why;                    /* the reason for the bound */
  const char *const *cases;           /* rows, forward */
  const char *const *gradients;       /* of the op's gradient rule, at small smooth points */
  const ChainRow *chains;             /* gradients of graphs, counted for this op */
  const char *no_cases, *no_gradient; /* why there are none here */
} OpTest;

struct Case {
  const OpTest *test;
  const char *words; /* of its row, behind the types */
  DType type;
  Tensor in[TEST_MAX_IN];
  uint32_t n_in;
  Attr attr[MAX_ATTR];
  int64_t shape[MAX_RANK + 1]; /* of "shape=": rank, sizes */
  bool tf32;
  bool by_gpu; /* it was run there */
  char result;
  Value value; /* in the graph that is being built */
  uint32_t first_source, output;
  Tensor want, got;
  double *scale; /* of each element of `want` */
};
typedef VEC(Case) CaseList;

/* Attributes as numbers; 0 for one that the op does not have. */
double case_attr(const Case *t, const char *name);
int64_t case_int(const Case *t, const char *name);
int case_axis(const Case *t);    /* `dim`, counted from the left, of input 0 */
double case_ulps(const Case *t); /* once the case has run */

/* Adds the forward cases of all ops, or of the one that the filter names, ready to run. */
void cases_make(Arena *a, const char *filter, CaseList *out);
/* Adds the cases of one row, inputs filled and rounded, without what they must give. */
void case_row_make(Arena *a, const OpTest *test, const char *row, CaseList *out);
/* Expected result of a case: want and scale. */
void case_expect(Arena *a, Case *t);

void tensor_fill(Tensor *t, char how, uint64_t *random);
bool tensor_same_bits(const Tensor *x, const Tensor *y);
Tensor tensor_like(Arena *a, DType d, uint32_t rank, const int64_t *dim);

/* Worst error of `got` in units of the bound; above 1: wrong. -1: shape or type differ. `at`: the
 * index of the worst element. */
double case_error(const Case *t, bool real64, int64_t *at);
double element_error(DType d, bool real64, double ulps, double got, double want, double scale);
