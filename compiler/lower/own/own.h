/* Ops that the job declares: what the files of pass lower share about them. */
#pragma once
#include "compiler/lower/elaborate.h"
#include "compiler/lower/evaluate.h"

/* What can be said without a call: clauses, names, types, texts. */
Datum declare_own(Lower *l, File *f, const Decl *d);
Datum call_own(Lower *l, const OwnDecl *own, Args *args);
/* own_text.c: a string, or file("k.cu"); false after a message. */
bool own_text(Lower *l, File *f, const Expr *e, OwnText *out);
/* own_names.c: names that C, C++ and CUDA keep for themselves, or that two things have. */
bool own_check_names(Lower *l, const OwnDecl *own);
/* own_backward.c: elaborates backward behind the op's node. `s`: the scope of the call. */
void lower_own_backward(Lower *l, const OwnDecl *own, Scope *s, Value op);
