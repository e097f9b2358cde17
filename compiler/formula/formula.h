/* Formulas: the expressions in the tables of the compiler, as trees. The text of a formula is part
 * of the compiler. It is read first; everything else works on the tree. formula_text() prints a
 * tree as C.
 *
 *   $0 $1|1   an element of an input; |1 is the value if there is no such input
 *   $step     the element of the input of that name
 *   @1 @1|0   an input's value for this row
 *   $dim      an attribute of the node
 *   $i $c     the element's index, its index within the row
 *   $n        the row's length
 *   $size     the number of rows that part $c of $rows rows has
 *   $uniform $normal          the element's random number
 *   s         a name that an earlier statement defines, or that may be used from the start
 *   max(a, b) a function: in code ampc_max of device.cuh or maths.cuh, in gradients the op
 *   - ! * / + - < <= > >= == != & | && || a ? b : c
 *   a[dim: + b]  [dim: a * ]b   a + b, a * b if attribute `dim` is not 0; else a, b
 *
 * Operators bind as in C. */
#pragma once
#include "compiler/base/arena.h"
#include <stdbool.h>
#include <stdint.h>

typedef enum FormulaKind {
  FORMULA_number,
  FORMULA_name,
  FORMULA_element,
  FORMULA_row_value,
  FORMULA_attribute,
  FORMULA_index,
  FORMULA_column,
  FORMULA_length,
  FORMULA_size,
  FORMULA_uniform,
  FORMULA_normal,
  FORMULA_call,
  FORMULA_minus,
  FORMULA_not,
  FORMULA_mul, /* the first of the operators with two operands */
  FORMULA_div,
  FORMULA_add,
  FORMULA_sub,
  FORMULA_at_most,
  FORMULA_at_least,
  FORMULA_less,
  FORMULA_more,
  FORMULA_equal,
  FORMULA_unequal,
  FORMULA_and,
  FORMULA_or,
  FORMULA_bits_and,
  FORMULA_bits_or,
  FORMULA_choose
} FormulaKind;

typedef struct Formula Formula;
struct Formula {
  FormulaKind kind;
  const char *name;         /* of a function, a name; the text of a number. Else NULL */
  const char *absent;       /* element, row_value: a number; NULL: the input is never absent */
  uint32_t index;           /* element, row_value: of the input; attribute: in the signature */
  int condition;            /* index of the attribute that must not be 0; -1: none */
  const Formula *otherwise; /* the operand that stands for the formula if it is 0 */
  const Formula *const *in; /* operands */
  uint32_t n;
};

/* What the words of a formula may name, and where it stands. A mistake ends the program with a
 * message that names the place. */
typedef struct FormulaWords {
  const char *place; /* "ops.def: code of op softmax" */
  uint32_t n_inputs;
  const char *const *inputs; /* their names; NULL: none may be used */
  const char *const *attributes;
  uint32_t n_attributes;
  const char *const *names; /* those that statements have defined */
  uint32_t n_names;
} FormulaWords;

/* Reads a formula up to `;`, `]` or the end of the text, and moves *at there. */
const Formula *formula_read(Arena *arena, const FormulaWords *words, const char **at);
/* Returns the index of an attribute that the text names. */
uint32_t formula_attribute(const FormulaWords *words, const char *name, size_t size);
_Noreturn void formula_broken(const FormulaWords *words, const char *what, const char *word,
                              size_t size);

/* Return a formula with `n` operands, which are copied; one without operands, with an index. */
Formula *formula_new(Arena *arena, FormulaKind kind, const Formula *const *in, uint32_t n);
const Formula *formula_operand(Arena *arena, FormulaKind kind, uint32_t index);
const Formula *formula_call(Arena *arena, const char *function, const Formula *const *in,
                            uint32_t n);

/* True if the formula, or one that it contains, is of this kind, or is this FORMULA_name. */
bool formula_has(const Formula *f, FormulaKind kind);
bool formula_mentions(const Formula *f, const char *name);

/* How the words of a formula are printed: leaves, and the name of a function. `standing` returns
 * the formula, or the operand that stands for it if its attribute is 0. */
typedef struct FormulaTexts {
  const void *frame;
  const char *(*word)(const void *frame, const Formula *f);
  const Formula *(*standing)(const void *frame, const Formula *f);
} FormulaTexts;

/* Returns the formula as C, with the fewest brackets, except that `a ? b : c` has brackets. */
const char *formula_text(Arena *arena, const FormulaTexts *texts, const Formula *f);
