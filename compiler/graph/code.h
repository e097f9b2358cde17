/* The code column of ops.def, parsed once. No other file reads its text.
 *
 * The code of a map op is one statement, the value of an element. The code of a row op is a list of
 * statements about a row; see Note [row programs] in ops.def. An expression is a list of pieces in
 * the order of the text. Emitting it replaces each piece by its text in the kernel. */
#pragma once
#include "compiler/base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  MAX_SIGNATURE = 12,  /* inputs in a signature; a variadic one may stand for more */
  MAX_STATEMENTS = 12, /* in one op's code; argmax and argmin count as two */
};

typedef enum StatementKind {
  STATEMENT_value, /* the code of a map op: an element */
  /* reductions over the row, each with a name */
  STATEMENT_near, /* near the mean: the mean of 4 rows; for parts of channels only */
  STATEMENT_sum,
  STATEMENT_product,
  STATEMENT_max,
  STATEMENT_min,
  STATEMENT_first, /* the first index of the largest or smallest value, `best` */
  /* computed once per row, with a name */
  STATEMENT_let,
  /* results: an op's last statements */
  STATEMENT_each, /* one per element */
  STATEMENT_row   /* one per row */
} StatementKind;

static inline bool statement_reduces(StatementKind k)
{
  return k >= STATEMENT_near && k <= STATEMENT_first;
}

typedef enum PieceKind {
  PIECE_text,      /* operators, numbers, spaces: copied unchanged */
  PIECE_name,      /* a name that an earlier statement defines */
  PIECE_call,      /* a function of templates/device.cuh; the parenthesis is text */
  PIECE_element,   /* $0: an element of an input, or `absent` if there is no such input */
  PIECE_row_value, /* @1: an input's value for this row, or `absent` */
  PIECE_attribute, /* $dim: an attribute of the node */
  PIECE_index,     /* $i: the element's index */
  PIECE_column,    /* $c: the index within the row */
  PIECE_length,    /* $n: the row's length */
  PIECE_size,      /* $size: number of rows that part $c of $rows rows has */
  PIECE_stream     /* $stream: the key of the node's random numbers */
} PieceKind;

typedef struct CodePiece {
  PieceKind kind;
  const char *text; /* points into the table's text; not NUL-terminated */
  uint32_t size;
  uint32_t input;     /* element, row_value: index of the input */
  const char *absent; /* "0" in $1|0: digits; NULL: the input is never absent */
  uint32_t absent_size;
  uint32_t attribute; /* attribute: its index in the signature */
  int condition;      /* index of the attribute that must be nonzero; -1: unconditional */
} CodePiece;

typedef struct CodeStatement {
  StatementKind kind;
  const char *name; /* the name that it defines; NULL for results and values */
  const char *best; /* first: name of the value to find */
  int condition;    /* as in CodePiece */
  uint32_t n_pieces;
  const CodePiece *pieces;
} CodeStatement;

typedef struct OpCode {
  const CodeStatement *statements; /* none if the template contains all code */
  uint32_t n_statements;
  StatementKind result; /* kind of the last statement; STATEMENT_value if there is none */
  bool random;          /* draws random numbers */
  bool dear;            /* calls a function of more than a few instructions */
  bool walks_once;      /* one walk along the row computes all reductions */
  bool uses_length;     /* it contains $n */
  bool uses_index;      /* it contains $i or $c */
  bool chooses;         /* it contains a ? b : c, so some operands may be unused */
  bool reads_element[MAX_SIGNATURE], reads_row_value[MAX_SIGNATURE]; /* for each k: $k, @k occurs */
} OpCode;

struct OpSignature;
/* Parses `text`, the code of op `op`: a row program if `row` is set, else one expression. A mistake
 * in the table ends the program with a message that names the op and the word. The result is
 * allocated in `arena`. */
OpCode code_parse(Arena *arena, const char *op, const char *text,
                  const struct OpSignature *signature, bool row);

/* Converts statement `i` of a row program to the code of a map op. Its input n_inputs + k is the
 * result of statement k. A value of the row becomes an element of an input. */
OpCode code_step(Arena *arena, const OpCode *program, uint32_t i, uint32_t n_inputs);
