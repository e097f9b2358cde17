/* What the names and calls of a job mean, recorded while pass lower runs. `amp lsp` shows it. */
#pragma once
#include "lower.h"

typedef struct Meaning {
  Span span; /* of a name */
  Datum value;
  uint32_t order; /* number of earlier records */
  bool result;    /* the name is called, and the call has this value */
} Meaning;

struct Meanings {
  VEC(Meaning) at; /* a loop or a second instance repeats spans */
  bool sorted;     /* by span, then by order: describe.c */
};

/* Record the value of an expression, or that a name is bound. They do nothing for the library, and
 * for values whose name says all, such as functions. */
void meaning_add_expression(Lower *l, const File *file, const Expr *e, Datum value);
void meaning_add_binding(Lower *l, const File *file, Span name, Datum value);
