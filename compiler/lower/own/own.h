/* Ops that the job declares: the functions that the files of this room share. */
#pragma once
#include "compiler/lower/elaborate.h"
#include "compiler/lower/evaluate.h"

/* Checks a declaration without its calls: clauses, names, types, texts. */
Datum declare_own(Lower *l, File *f, const Decl *d);
Datum call_own(Lower *l, const OwnDecl *own, Args *args);
/* own_text.c: reads a string or file("k.cu"); returns false after a message. */
bool own_text(Lower *l, File *f, const Expr *e, OwnText *out);
/* own_names.c: checks that names are not reserved in C, C++ and CUDA, and are unique. */
bool own_check_names(Lower *l, const OwnDecl *own);
/* own_backward.c: elaborates backward after the op's node. `s`: the scope of the call. */
void lower_own_backward(Lower *l, const OwnDecl *own, Scope *s, Value op);
