/* The proof of ops: what the files of `amp selftest` share.
 *
 * A case is one op on given inputs in one type. All cases of a suite go into one graph, so that
 * one JIT compile serves hundreds of them. Numbers are doubles on this side; they are rounded to
 * the case's types before anything is computed from them, so that the reference and the kernel
 * start from equal values.
 *
 * Note [bounds]
 * A reference gives, for each element, the exact result r and a scale s (|r| unless the arithmetic
 * cancels: then the size of what cancels). With u = ulps(op) * ulp_f32(s), the accepted results are
 * those from store(f32(r - u)) to store(f32(r + u)): the compute result may be `ulps` off, then it
 * is rounded once to the type it is stored in. With 0 ulps that is one value: the op is exact or
 * correctly rounded. In real64 graphs ulp_f32 becomes ulp_f64. The table of ulps, with the reason
 * of each, is in selftest_ops.c. */
#pragma once
#include <stdio.h>
#include "ampc_rt.h"
#include "compiler/driver.h"
#include "runner/jit/jit.h"
#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"

enum { TEST_MAX_IN = 7, TEST_ROW_TYPES = 7 };

typedef struct Tensor {
  bool present; /* an optional input may be absent */
  DType dtype;
  uint32_t rank;
  int64_t dim[MAX_RANK], n;
  double *at;
} Tensor;

typedef struct Case Case;
typedef struct OpTest OpTest;

/* Fills y->at and scale, both of y->n elements. */
typedef void Reference(const Case *t, Tensor *y, double *scale);
/* Sets rank and dims of y. */
typedef void ShapeOf(const Case *t, Tensor *y);
/* One element of a map op from its inputs' elements and the attributes as numbers. */
typedef double Element(const double *x, const double *a, double *scale);

struct OpTest {
  OpKind op;
  const char *fills;  /* how to fill each input, a letter each: see tensor_fill */
  const char *result; /* type of the result: "=" that of input 0 (condition aside), or a letter */
  ShapeOf *shape;
  Reference *reference;
  double ulps;     /* see Note [bounds] */
  double per_n;    /* more ulps for each element of the reduced row */
  const char *why; /* the reason for both */
};

/* A row of the case table: makes one case for each letter of `types`. */
typedef struct CaseRow {
  OpKind op;
  const char *types;  /* f f32, h f16, b bf16, i i32, l i64, u u8, o bool */
  const char *inputs; /* "7x33 l:33 s 2{1,nan} 3~p -": dims, other type than the case's, given
                         values, how to fill, absent */
  const char *attrs;  /* "dim=1 keepdim=1 shape=3x4", result=f, tf32=1 */
} CaseRow;

struct Case {
  const OpTest *test;
  const CaseRow *row;
  DType type;
  Tensor in[TEST_MAX_IN];
  uint32_t n_in;
  Attr attr[MAX_ATTR];
  int64_t shape[MAX_RANK + 1]; /* of "shape=": rank, sizes */
  bool tf32;                   /* in a region of that kind */
  char result;                 /* of "result=": type, where inputs are of several types; or 0 */
  Value value;                 /* in the graph that is being built */
  uint32_t first_source, output;
  Tensor want, got;
  double *scale;
};

/* ---- numbers: selftest_number.c ---------------------------------------------------------------
 */
double number_round(DType d, double x);         /* to the nearest value of the type, ties to even */
double number_ulp(DType d, double x);           /* distance of neighbours at |x| */
double number_round_bits(double x, int digits); /* to so many significant bits */
bool number_same(double a, double b);           /* equal, or both NaN */
void number_encode(DType d, bool real64, const double *from, int64_t n, void *to);
void number_decode(DType d, bool real64, const void *from, int64_t n, double *to);
DType number_type(char letter);
int64_t number_size(DType d, bool real64);
uint64_t number_random(uint64_t *state); /* SplitMix64 */
double number_uniform(uint64_t *state);  /* [0, 1) */

/* ---- tables: selftest_ops.c, selftest_cases.c --------------------------------------------------
 */
extern const OpTest op_tests[];
extern const uint32_t n_op_tests;
extern const CaseRow case_rows[];
extern const uint32_t n_case_rows;
const OpTest *op_test_find(OpKind op);
double case_attr(const Case *t, const char *name); /* an attribute as a number */
int case_axis(const Case *t);                      /* `dim`, counted from the left, of input 0 */
double case_ulps(const Case *t);

/* Makes the cases of the rows, inputs filled and rounded. */
typedef VEC(Case) CaseList;
void cases_make(Arena *a, const CaseRow *rows, uint32_t n_rows, const char *filter, CaseList *out);
void tensor_fill(Tensor *t, char how, uint64_t *random);
bool tensor_same_bits(const Tensor *x, const Tensor *y);
Tensor tensor_like(Arena *a, DType d, uint32_t rank, const int64_t *dim);

/* Expected result of a case: want and scale. */
void case_expect(Arena *a, Case *t);
/* Worst error of `got` in units of the bound; above 1: wrong. -1: shape or type differ. `at`: the
 * index of the worst element. */
double case_error(const Case *t, bool real64, int64_t *at);
double element_error(DType d, bool real64, double ulps, double got, double want, double scale);

/* ---- the run
 * ------------------------------------------------------------------------------------- */

typedef struct Tally {           /* of one op */
  uint32_t types, cases, failed; /* types: bit mask */
  double worst;                  /* error in units of the bound */
} Tally;

/* twin: a GPU's results against those of the cpu */
typedef enum Proof { PROOF_forward, PROOF_backward, PROOF_twin, PROOF_COUNT } Proof;

typedef struct TestRun {
  const char *device, *filter;   /* filter: name of one op, or NULL */
  char target[AMPC_TARGET_ROOM]; /* that runs on the device */
  char **jobs;                   /* to be compared whole */
  uint32_t n_jobs;
  bool verbose, json;
  TextEdit *edit; /* changes the kernels before they are built: mutations */
  void *edit_data;
  uint32_t edits; /* how many were made */
  Tally tally[OP_COUNT][PROOF_COUNT];
} TestRun;

/* Counts a case. `what` says in words what was compared; printed when error is not within 0 to 1.
 */
void test_report(TestRun *run, OpKind op, Proof proof, DType type, double error, const char *what);
/* Something that holds or does not. */
void test_check(TestRun *run, OpKind op, DType type, bool good, const char *what);
bool test_wanted(const TestRun *run, OpKind op);
/* For a job that is compiled for the run's device. */
Options test_options(const TestRun *run, int optimize);
bool test_on_gpu(const TestRun *run);
TestRun test_on_cpu(const TestRun *run);     /* the same on the cpu, counting nothing */
bool mutation_set(TestRun *run, char *text); /* "FROM=>TO"; keeps and cuts the text */

/* Suites; a status is a failure of the machinery, not of a case. Arena: for all that they keep. */
ampc_status suite_forward(Arena *a, TestRun *run);
ampc_status suite_backward(Arena *a, TestRun *run);
ampc_status suite_random(Arena *a, TestRun *run);
ampc_status suite_step(Arena *a, TestRun *run);
ampc_status suite_running(Arena *a, TestRun *run);
ampc_status suite_layout(Arena *a, TestRun *run);
ampc_status suite_fusion(Arena *a, TestRun *run);
ampc_status suite_model(Arena *a, TestRun *run);
ampc_status suite_twin(Arena *a, TestRun *run);
ampc_status suite_jobs(Arena *a, TestRun *run);

/* ---- graphs by hand: selftest_graph.c ----------------------------------------------------------
 */

typedef struct Built {
  const TestRun *run;
  Compile *c;
  Jit *jit;
  ampc_runtime *rt;
  bool real64;
} Built;

void built_open(Built *b, const TestRun *run, bool real64, int optimize);
Cursor built_cursor(bool tf32);
Value built_source(Built *b, const Tensor *t); /* index: graph->sources.n before the call */
uint32_t built_output(Built *b, Value v);      /* its index */
ampc_status built_load(Built *b);              /* compiles, loads, makes the runtime */
ampc_status built_start(Built *b);             /* the same for what has been compiled */
void built_close(Built *b);
ampc_status built_write(Built *b, uint32_t source, const Tensor *t);
ampc_status built_step(Built *b);
ampc_status built_read(Built *b, Arena *a, uint32_t output, Tensor *out);
/* Runs all cases in one graph and reads `got`. */
ampc_status cases_run(Arena *a, const TestRun *run, bool real64, int optimize, CaseList *cases);

/* ---- references: selftest_map.c, selftest_row.c, selftest_move.c -------------------------------
 */
void shape_of_first(const Case *t, Tensor *y);
int64_t broadcast_index(const Tensor *from, const Tensor *to, int64_t i);
