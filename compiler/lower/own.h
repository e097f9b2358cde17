/* Ops that the job declares: what the files of pass lower share about them. */
#pragma once
#include "compiler/graph/own.h"
#include "lower.h"

typedef enum OwnClause { /* what stands in the braces of an op */
                         CLAUSE_cast,
                         CLAUSE_threads,
                         CLAUSE_grid,
                         CLAUSE_block,
                         CLAUSE_shared,
                         CLAUSE_cuda,
                         CLAUSE_host,
                         CLAUSE_parts,
                         CLAUSE_COUNT
} OwnClause;

typedef struct OwnDecl {
  const Decl *decl;
  File *file;
  const Expr *clause[CLAUSE_COUNT]; /* NULL: not said */
  OwnText cuda, host;
  const Function *backward; /* NULL: none */
  bool good;                /* else mistakes have been reported, and calls keep silent */
} OwnDecl;

/* What can be said without a call: clauses, names, types, texts. */
Datum declare_own(Lower *l, File *f, const Decl *d);
Datum call_own(Lower *l, const OwnDecl *own, Args *args);
/* own_text.c: a string, or file("k.cu"); false after a message. */
bool own_text(Lower *l, File *f, const Expr *e, OwnText *out);
/* own_names.c: names that C, C++ and CUDA keep for themselves, or that two things have. */
bool own_check_names(Lower *l, const OwnDecl *own);
/* own_backward.c: elaborates backward behind the op's node. `s`: the scope of the call. */
void lower_own_backward(Lower *l, const OwnDecl *own, Scope *s, Value op);
