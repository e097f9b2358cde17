/* What each node of the tree consists of: for those who walk over it without asking what it is. */
#pragma once
#include "ast.h"

typedef enum PartKind {
  PART_none, /* ends a list */
  /* its own text */
  PART_word, /* const char *, or a Name; NULL: it is absent */
  PART_integer,
  PART_number,
  PART_string, /* StringText */
  PART_operator,
  PART_names,
  /* what stands below it */
  PART_expr, /* Expr *; NULL: it is absent */
  PART_exprs,
  PART_args,
  PART_subs,
  PART_type,
  PART_params,
  PART_block, /* Block; without a span it is absent */
  PART_function
} PartKind;

typedef struct Part {
  PartKind kind;
  const char *label; /* what it is to the node */
  size_t at;         /* bytes from the node */
} Part;

enum { MAX_PARTS = 5 };
typedef struct Form {
  const char *word; /* "binary" */
  Part part[MAX_PARTS];
} Form;

extern const Form expr_forms[], stmt_forms[], decl_forms[]; /* by kind */

static inline const void *part_of(const void *node, const Part *part)
{
  return (const char *)node + part->at;
}
