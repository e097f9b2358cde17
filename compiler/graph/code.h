/* The code column of ops.def, parsed once: nobody else looks into its text.
 *
 * The code of a map op is one statement, the value of an element. That of a row op is a list of
 * statements about a row, see Note [row programs] in ops.def. An expression is a list of pieces, in
 * the order of the text; printing it is replacing each piece. */
#pragma once
#include "compiler/base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  MAX_SIGNATURE = 12,  /* inputs of an op's row; a variadic one may stand for more */
  MAX_STATEMENTS = 12, /* of an op's code; argmax and argmin count as two */
};

typedef enum StatementKind {
  STATEMENT_value, /* the code of a map op: the element */
  /* reductions over the row, each with a name */
  STATEMENT_near, /* about the mean: that of 4 rows; of parts of channels only */
  STATEMENT_sum,
  STATEMENT_product,
  STATEMENT_max,
  STATEMENT_min,
  STATEMENT_first, /* the first index that has the greatest or smallest value `best` */
  /* once a row, with a name */
  STATEMENT_let,
  /* results: an op's last statements */
  STATEMENT_each, /* one an element */
  STATEMENT_row   /* one a row */
} StatementKind;

static inline bool statement_reduces(StatementKind k)
{
  return k >= STATEMENT_near && k <= STATEMENT_first;
}

typedef enum PieceKind {
  PIECE_text,      /* operators, numbers, spaces: stands as it is */
  PIECE_name,      /* a name that a statement before has defined */
  PIECE_call,      /* a function of templates/device.cuh; the parenthesis is text */
  PIECE_element,   /* $0: an element of an input; absent: what stands for an absent input */
  PIECE_row_value, /* @1: an input's one value of this row; absent as above */
  PIECE_attribute, /* $dim: an attribute of the node */
  PIECE_index,     /* $i: the element's index */
  PIECE_column,    /* $c: the index within the row */
  PIECE_length,    /* $n: the row's length */
  PIECE_size,      /* $size: rows of the part of $rows that row $c of an op joins */
  PIECE_stream     /* $stream: what keys the random numbers of the node */
} PieceKind;

typedef struct CodePiece {
  PieceKind kind;
  const char *text; /* as it stands in the table; not ended by a zero */
  uint32_t size;
  uint32_t input;     /* element, row_value: which */
  const char *absent; /* "0" of $1|0: digits; NULL: the input is never absent */
  uint32_t absent_size;
  uint32_t attribute; /* attribute: its index in the signature */
  int condition;      /* index of the attribute that must not be 0 for this to stand; -1: none */
} CodePiece;

typedef struct CodeStatement {
  StatementKind kind;
  const char *name; /* of what it defines; NULL for results and values */
  const char *best; /* first: the name of the value that is looked for */
  int condition;    /* as of a piece */
  uint32_t n_pieces;
  const CodePiece *pieces;
} CodeStatement;

typedef struct OpCode {
  const CodeStatement *statements; /* none: the op's template knows */
  uint32_t n_statements;
  StatementKind result; /* kind of the last one; STATEMENT_value where there is none */
  bool random;          /* draws numbers */
  bool dear;            /* calls a function of more than a few instructions */
  bool walks_once;      /* all its reductions can be made in one walk along the row */
  bool uses_length;     /* $n stands in it */
  bool uses_index;      /* $i or $c does */
  bool chooses;         /* a ? b : c stands in it: not every operand is used for each element */
  bool reads_element[MAX_SIGNATURE], reads_row_value[MAX_SIGNATURE]; /* by input: $k, @k */
} OpCode;

struct OpSignature;
/* Parses `text` of op `op`, whose statements are about a row or else are one value. A mistake in
 * the table ends the program with a message that names the op and the word. What it consists of
 * lies in `arena`. */
OpCode code_parse(Arena *arena, const char *op, const char *text,
                  const struct OpSignature *signature, bool row);

/* Statement `i` of a row program as the code of a map op: what statement k has named is its input
 * n_inputs + k, and what was one value a row is an element. */
OpCode code_step(Arena *arena, const OpCode *program, uint32_t i, uint32_t n_inputs);
