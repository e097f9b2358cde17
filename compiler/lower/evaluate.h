/* The interpreter as the rooms see it that it calls. It builds a module, and the module's body runs
 * in it again. So the calls back stand here, below all rooms, and the files named below define
 * them; without a room's name they are in interpret/. */
#pragma once
#include "lower.h"

/* ---- names.c ---- */
/* A name of the file, its imports or the built-ins; D_absent if there is none. */
Datum lookup_global(Lower *l, File *f, const char *name, Span span);
Datum lookup_quiet(Lower *l, Scope *s, const char *name, Span span); /* D_absent if unknown */
Datum lookup(Lower *l, Scope *s, const char *name, Span span);       /* reports unknown names */

/* ---- expr.c ---- */
Datum eval(Lower *l, Scope *s, const Expr *e);
bool unpack(Lower *l, Datum v, uint32_t n, Span span, Datum *out);

/* ---- call.c ---- */
bool eval_args(Lower *l, Scope *s, const ArgList *list, Args *out);
Datum call(Lower *l, Datum callee, Args *args);
Datum call_function(Lower *l, const Callable *f, Args *args);
Datum function_result(Lower *l, const Frame *f, const Function *def); /* checked */
bool bind_params(Lower *l, Scope *s, const char *callee, const ParamList *params, Args *args);

/* ---- type.c ---- */
bool check_type(Lower *l, Scope *s, const TypeExpr *t, Datum *value, Span span, const char *what);

/* ---- stmt.c ---- */
void exec_block(Lower *l, Frame *f, const Block *b);
/* A node is called after the first variable of the job that holds it. */
void name_node(Lower *l, const Scope *s, const char *name, Datum v);

/* ---- native.c ---- */
Datum library_call(Lower *l, const char *name, Args *args); /* of a def of the layer library */

/* ---- model/param.c ---- */
Value param_value(Lower *l, ParamSlot *p, Span span);

/* ---- optimizer/schedule.c ---- */
/* Arithmetic in a setting; `attr` NULL: the op's defaults. */
Datum schedule_of(Lower *l, OpKind op, const Datum *operand, uint32_t n, const Attr *attr,
                  Span span);
/* Outside of optimizers: of the steps of the run. */
Value schedule_value(Lower *l, const Schedule *s, Span span);

/* ---- scan.c ---- */
/* What a random node in a loop becomes: numbers of all rounds, drawn before the loop. Value 0 after
 * a message. */
Value draw_before_scan(Lower *l, Value v);
