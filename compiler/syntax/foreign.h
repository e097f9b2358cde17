/* The table of names and statements of PyTorch and Python, and how a job says them: foreign.def. */
#pragma once
#include "compiler/diag/diag.h"

typedef struct Foreign {
  const char *key;
  const char *found; /* of a statement: what the message says; NULL for a name */
  const char *cure;  /* contains $args, .. */
} Foreign;

/* The texts of the program that a cure quotes; NULL: the program has none. */
typedef enum QuoteKind { Q_args, Q_1, Q_2, Q_value, Q_base, Q_word, QUOTE_COUNT } QuoteKind;
typedef struct Quotes {
  const char *at[QUOTE_COUNT];
} Quotes;

extern const Foreign foreign[]; /* the last entry has a key of NULL */

/* Returns the row of a name, a ".method" or an "argument="; NULL if the table has none. */
const Foreign *foreign_name(const char *key);
/* Returns the cure, with the quotes in it. */
const char *foreign_cure(Arena *arena, const Foreign *f, const Quotes *q);

typedef struct Parser Parser;
typedef struct Stuck { /* a statement with a syntax error: tokens from..to-1, error at token `at` */
  uint32_t from, at, to;
} Stuck;
/* Reports a syntax error if the statement, or a name in it, is in the table. */
bool foreign_statement(Parser *p, Stuck s);
