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
/* Returns the meaning of a name, which may be a member: `fc1` of `net.fc1`. NULL: it is no name of
 * the files. */
const VisibleName *names_meant(const Query *q, const Token *name);
/* The same for what is before a dot: `net.h[0]` of `net.h[0].`. */
const VisibleName *names_owner(const Query *q, const Token *dot);
/* Returns the name of the module that a name stands for, or of those in its list: "Block" for
 * `[Block(c) for i in range(n)]`. "": it is none. */
const char *names_class(const VisibleName *n);
/* Lists the members of a name. Returns false if it is no module that the files declare. */
bool names_members(const Query *q, const VisibleName *n, VisibleNames *out);
const ParamList *names_params(const VisibleName *n); /* NULL: it takes none */
/* The statements in a declaration's braces; NULL if it has none. */
const Block *names_body(const Decl *d);
/* Calls `visit` for each statement of a block, in the order of the text, inner ones included. */
void names_walk(const Block *b, void (*visit)(void *data, const Stmt *st), void *data);
