/* Declarations for the files that print the row ops of a kernel. */
#pragma once
#include "kernel_parts.h"

typedef struct Statement { /* a statement of a node's row program, as this kernel prints it */
  StatementKind kind;
  const CodeStatement *code;
  const char *as; /* the kernel's variable, once it is known */
} Statement;

typedef struct RowOp {
  Value v;
  const Node *n;
  const NodeAccess *access;
  bool integers; /* its reductions reduce integers */
  bool wide;     /* sums and products are computed in f64 and rounded once */
  Statement code[MAX_STATEMENTS];
  uint32_t n_code, at; /* `at`: the next statement to be printed */
} RowOp;

typedef struct Use { /* a statement of a kernel, and its op */
  const RowOp *op;
  Statement *s;
} Use;
typedef VEC(Use) Uses;

typedef struct RowKernel {
  Kernel *k;
  const RowLoops *loops;
  RowShape shape; /* these three are those of `loops` */
  bool columns;
  uint32_t vector;
  const char *width; /* `vector` as text; "vector_width" if vectors do not divide the row */
  RowOp *ops;
  uint32_t n_ops;
  Chain values; /* values that are loaded once a row, for all loops */
  Uses printed; /* statements that another op may reuse */
} RowKernel;

/* ---- loops: loop.c ---- */

void row_open(const RowKernel *r, const char *line);
void row_close(const RowKernel *r, const char *line);
/* Opens the loop over all elements. `uses` are its reductions, or NULL if it computes results;
 * `elements` are the values that it reads. */
void row_open_elements(const RowKernel *r, const Uses *uses, const Chain *elements);
/* Opens the loop over 4 rows of a part. */
void row_open_near(const RowKernel *r);
/* Declares `i` inside a loop. Called only if the loop uses `i`. */
void row_put_index(const RowKernel *r);
bool row_loads_at_index(const Chain *ch);
/* Opens the loop over the elements of the vector. */
void row_open_vector(const RowKernel *r);
/* Prints VECTOR_LOAD for the values that the chain reads of the thread's vector. `outside`: prints
 * the loads before the loop over rows, of values that all rows share; only for columns. */
void row_put_loads(const RowKernel *r, const Chain *ch, bool outside);
/* Declares the vectors that the nodes of a loop store at `index`. */
void row_put_results(const RowKernel *r, const bool *needed, const Index *index);
/* Draws vectors of the random numbers of the needed nodes, unless vectors are not aligned: odd. */
void row_put_draws(const RowKernel *r, const bool *needed, const Index *index);
/* True if the reduction is a sum that restarts after each stretch: Note [long sums]. */
bool row_has_stretches(const RowKernel *r, const Use *use);
/* True if the reduction's accumulator is a double. The final result is a real. */
bool row_is_wide(const Use *use);

/* ---- accumulators: part.c ---- */

/* Print the accumulator: row_put_start() before the loop, row_put_part() for one element `e` in the
 * loop, row_put_joined() after it, where the result gets its name. */
void row_put_start(const RowKernel *r, const Use *use);
void row_put_part(const RowKernel *r, const Use *use, const char *e);
void row_put_joined(const RowKernel *r, const Use *use);

/* ---- programs: row_code.c ---- */

/* Reads the statements of the op that apply with its attributes. */
void read_program(RowOp *op);
/* True if the statement uses `name`, a name of its program. */
bool statement_mentions(const Statement *s, const char *name);
/* Returns how often the statement reads `$input` (FORMULA_element) or `@input` (FORMULA_row_value).
 */
uint32_t statement_uses(const RowOp *op, const Statement *s, FormulaKind kind, uint32_t input);
/* True if an equal statement of another op is already printed. If so, the statement gets that
 * statement's variable, otherwise a new one. */
bool statement_is_printed(RowKernel *r, const RowOp *op, Statement *s);
/* Returns the statement's expression. in[k]: the element of input k; row[k]: its value for the
 * row. */
const char *statement_text(const RowKernel *r, const RowOp *op, const Statement *s,
                           const Operand *in, const char *const *row);
