/* The interpreter evaluates expressions, statements, calls, and the names of files. */
#pragma once
#include "compiler/lower/elaborate.h"
#include "compiler/lower/evaluate.h"

/* ---- names.c ---- */
File *file_open(Lower *l, const Ast *ast, bool builtin);
void file_add_globals(Lower *l, File *f, bool job);
Global *file_find(File *f, const char *name);
Datum global_value(Lower *l, File *f, Global *g);

/* ---- expr.c ---- */
/* Lists the elements of a list or the children of a Sequential; false after a message. */
bool iterate(Lower *l, Datum d, Span span, DatumVec *out);
bool may_unroll(Lower *l, Datum list, Span span); /* reports a range of a dim, E308 */
bool bind_loop_names(Lower *l, Scope *s, const NameList *names, Datum item, Span span);
Datum apply_binary(Lower *l, Operator op, Datum a, Datum b, Span span);

/* ---- index.c ---- */
Datum eval_index(Lower *l, Scope *s, const Expr *e);

/* ---- type.c ---- */
bool check_param(Lower *l, Scope *s, const Param *p, Datum *value, Span span, Typed what);
void bind_sizes(Lower *l, Scope *s, const TypeExpr *t, Datum value);

/* ---- native.c ---- */
const Native *native_find(const char *name, bool internal);
void native_names(Lower *l, NameVec *out); /* lists natives that are not internal */
extern const Native jvp_natives[], grad_natives[];

/* ---- library.c ---- */
/* Sets l->library. Aborts if a def of the layer library names an optimizer or a schedule that the
 * tables lack, or if no def names an optimizer of the table. */
void open_library(Lower *l);
const Decl *global_decl(Lower *l, Global *g); /* parses a declaration of the library */

/* ---- profile.c ---- */
/* Returns the declaration that `precision auto` or `precision profile("file")` names, or else
 * `decl` itself. NULL: the job has no `precision`, or after a message. */
const Decl *precision_profile(Lower *l, const Decl *decl);
