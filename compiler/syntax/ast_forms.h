/* The fields ("parts") of each kind of node, for code that visits trees without a case for each. */
#pragma once
#include "ast.h"

typedef enum PartKind {
  PART_none, /* ends the list of parts */
  /* parts that are printed on the node's own line */
  PART_word, /* const char *, or a Name; NULL: absent */
  PART_integer,
  PART_number,
  PART_string, /* StringText */
  PART_operator,
  PART_names,
  /* parts that are subtrees */
  PART_expr, /* Expr *; NULL: absent */
  PART_exprs,
  PART_args,
  PART_subs,
  PART_type,
  PART_params,
  PART_block, /* Block; no span: absent */
  PART_function
} PartKind;

typedef struct Part {
  PartKind kind;
  const char *label; /* the meaning of the part in the node */
  size_t at;         /* byte offset of the field in the node */
} Part;

enum { MAX_PARTS = 5 };
typedef struct Form {
  const char *word; /* "binary" */
  Part part[MAX_PARTS];
} Form;

extern const Form expr_forms[], stmt_forms[], decl_forms[]; /* indexed by kind */

static inline const void *part_of(const void *node, const Part *part)
{
  return (const char *)node + part->at;
}
