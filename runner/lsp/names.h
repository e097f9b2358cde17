/* The names that are visible at a place of a file, from its syntax tree. */
#pragma once
#include "analysis.h"

typedef struct VisibleName {
  const char *text;
  Span span;
  uint32_t from; /* offset from which the name has this meaning */
  int level; /* 0: of the function or block; then the module, the file, imports; below 0: of `[..
                for ..]` */
  const void *scope; /* names with the same text in the same scope are one name */
  const Decl
      *within;      /* the declaration whose own scope it is, as a module of its members; or NULL */
  bool param;       /* of a function or module */
  bool size;        /* a size in the type of a parameter: N of `x: float[N]` */
  const Decl *decl; /* the declaration that has the name; or NULL */
  const Function *method; /* the method that has the name; or NULL */
  const Expr *value;      /* the value that an assignment gives it; or NULL */
} VisibleName;
typedef VEC(VisibleName) VisibleNames;

static inline bool names_within(const VisibleName *n, DeclKind kind)
{
  return n->within && n->within->kind == kind;
}

/* Adds all names that are visible at q->offset. A name that has several meanings is listed with
 * each. */
void names_visible(const Query *q, VisibleNames *out);
/* Returns the meaning that a name has at q->offset; NULL: none. */
const VisibleName *names_found(const Query *q, const char *name);
/* Returns the meaning of a name, which may be a member: `fc1` of `net.fc1`. NULL: it is no name of
 * the files. */
const VisibleName *names_meant(const Query *q, const Token *name);
/* Returns the name before a dot and brackets: `h` of `net.h[0].`; NULL: there is none. */
const Token *names_base(const Query *q, const Token *dot);
/* The meaning of what is before a dot: `net.h[0]` of `net.h[0].`. */
const VisibleName *names_owner(const Query *q, const Token *dot);
/* Returns the name of the module that a name stands for, or of those in its list: "Block" for
 * `[Block(c) for i in range(n)]`. "": it is none. */
const char *names_class(const Query *q, const VisibleName *n);
/* Lists the members of a name. Returns false if it is no module that the files declare. */
bool names_members(const Query *q, const VisibleName *n, VisibleNames *out);
const ParamList *names_params(const VisibleName *n); /* NULL: it takes none */
/* The statements in a declaration's braces; NULL if it has none. */
const Block *names_body(const Decl *d);
/* Returns what a call of the name calls: a function, a module, or `forward` of an instance; NULL:
 * none of the files. */
const VisibleName *names_called(const Query *q, const VisibleName *n);
/* Calls `visit` for each statement of a block, in the order of the text, inner ones included. */
void names_walk(const Block *b, void (*visit)(void *data, const Stmt *st), void *data);
