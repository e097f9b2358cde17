/* The columns of code and gradients in ops.def and of formulas in optimizers.def, parsed. No other
 * file reads their text.
 *
 * The code of a map op is the value of an element, after any number of lets. The code of a row op
 * is a list of statements about a row; see Note [row programs] in ops.def. Their values are
 * formulas. */
#pragma once
#include "compiler/formula/formula.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  MAX_SIGNATURE = 12,  /* inputs in a signature; a variadic input counts once */
  MAX_STATEMENTS = 16, /* in one op's code; argmax and argmin count as two */
  MAX_CODE_NAMES = 24, /* names that code may use before a statement defines any */
};

typedef enum StatementKind {
  STATEMENT_value, /* the code of a map op: an element; the gradient of an input */
  /* reductions over the row; each defines a name */
  STATEMENT_near, /* an estimate of the mean, from 4 rows; for parts of channels only */
  STATEMENT_sum,
  STATEMENT_product,
  STATEMENT_max,
  STATEMENT_min,
  STATEMENT_first, /* the first index of the largest or smallest value, `best` */
  /* a named value: once per row; in code of a map op or of an optimizer once per element */
  STATEMENT_let,
  /* results: one of these is an op's last statement */
  STATEMENT_each, /* one per element */
  STATEMENT_row,  /* one per row */
  STATEMENT_set   /* of an optimizer: the new value of `name` */
} StatementKind;

static inline bool statement_reduces(StatementKind k)
{
  return k >= STATEMENT_near && k <= STATEMENT_first;
}

typedef struct CodeStatement {
  StatementKind kind;
  /* the name that the statement defines; NULL: a result, or the code of a map op */
  const char *name;
  const char *best;     /* STATEMENT_first: name of the value to find */
  int condition;        /* index of the attribute that must be nonzero; -1: unconditional */
  const Formula *value; /* NULL: an input without a gradient */
} CodeStatement;

typedef struct OpCode {
  const CodeStatement *statements; /* empty if the template contains all code */
  uint32_t n_statements;
  StatementKind result; /* kind of the last statement; STATEMENT_value if `statements` is empty */
  const char *random;   /* the random numbers it draws: "uniform", "normal"; NULL: none */
  bool dear;            /* calls an expensive function: one of more than a few instructions */
  bool walks_once;      /* one walk along the row computes all reductions */
  bool uses_length;     /* the code contains $n */
  bool uses_index;      /* the code contains $i or $c */
  bool chooses;         /* the code contains a ? b : c, so some operands may be unused */
  /* For each input k: the code contains $k, @k. */
  bool reads_element[MAX_SIGNATURE], reads_row_value[MAX_SIGNATURE];
} OpCode;

struct OpSignature;
/* Parses `text`, the code of op `op`: a row program if `row` is set, else one expression. A mistake
 * in the table ends the program with a message that names the op and the word. The result is
 * allocated in `arena`. */
OpCode code_parse(Arena *arena, const char *op, const char *text,
                  const struct OpSignature *signature, bool row);

/* Parses formulas with lets: those in by(..), or if `gradient` is not set one of put_forms.def.
 * Each statement is a `let` or the gradient of the next input. An empty formula has value NULL. In
 * gradients, dy and y are names. */
OpCode lets_parse(Arena *arena, const char *op, const char *text,
                  const struct OpSignature *signature, bool gradient);
/* Parses the formula of an optimizer. It may use these names. */
OpCode update_parse(Arena *arena, const char *optimizer, const char *text, const char *const *names,
                    uint32_t n_names);
/* Returns the statement that defines a name; NULL if there is none. */
const CodeStatement *code_statement(const OpCode *code, const char *name);

/* Converts statement `i` of a row program to the code of a map op. Input n_inputs + k of the map op
 * is the result of statement k. Values of a row become elements of these inputs. */
OpCode code_step(Arena *arena, const OpCode *program, uint32_t i, uint32_t n_inputs);
