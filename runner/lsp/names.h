/* The names that are visible at a place of a file, from its syntax tree. */
#pragma once
#include "analysis.h"

typedef struct VisibleName {
  const char *text;
  Span span;
  uint32_t from;    /* offset from which the name has this meaning */
  uint32_t level;   /* 0: of the innermost function or block; then the module, the file, imports */
  const Decl *decl; /* the declaration that has the name; or NULL */
  const Function *method; /* the method that has the name; or NULL */
  const Expr *value;      /* the value that an assignment gives it; or NULL */
} VisibleName;
typedef VEC(VisibleName) VisibleNames;

/* Adds all names that are visible at q->offset. A name that has several meanings is listed with
 * each. */
void names_visible(const Query *q, VisibleNames *out);
/* Returns the meaning of a name at q->offset: NULL if it is no name of the files. */
const VisibleName *names_find(const Query *q, const char *name);
/* The same for the name at `span`, which may be a member: `fc1` of `net.fc1`. */
const VisibleName *names_meant(const Query *q, const char *name, Span span);
/* Lists the members of `path`, such as "net.fc1", at q->offset. Returns false if it is no module
 * that the files declare. */
bool names_members(const Query *q, const char *path, VisibleNames *out);
/* Returns the names and brackets before the dot that ends at `end`: "net.h[0]" of "net.h[0].". Sets
 * *end to where they start. NULL: there is no dot. */
const char *names_path(const Query *q, uint32_t *end);
/* The statements in a declaration's braces, and its parameters; NULL if it has none. */
const Block *names_body(const Decl *d);
const ParamList *names_params(const Decl *d);
/* Calls `visit` for each statement of a block, in the order of the text, inner ones included. */
void names_walk(const Block *b, void (*visit)(void *data, const Stmt *st), void *data);
