/* Functions of the interpreter that the other rooms call. The interpreter calls a room, for example
 * to build a module, and the room calls back to run the module's body. They are declared here,
 * below all rooms. The headings below name the files that define them; a file without a room name
 * is in interpret/. */
#pragma once
#include "lower.h"

/* ---- names.c ---- */
/* Returns the value of a name of the file, its imports or the built-ins, or D_absent. */
Datum lookup_global(Lower *l, File *f, const char *name, Span span);
void visible_functions(Lower *l, NameVec *out); /* lists the built-ins, for suggestions */
/* Returns D_absent if unknown. */
Datum lookup_quiet(Lower *l, Scope *s, const char *name, Span span);
Datum lookup(Lower *l, Scope *s, const char *name, Span span); /* reports unknown names */

/* ---- expr.c ---- */
Datum eval(Lower *l, Scope *s, const Expr *e);
bool unpack(Lower *l, Datum v, uint32_t n, Span span, Datum *out);

/* ---- call.c ---- */
bool eval_args(Lower *l, Scope *s, const ArgList *list, Args *out);
Datum call(Lower *l, Datum callee, Args *args);
Datum call_function(Lower *l, const Callable *f, Args *args);
/* Returns a function's result after a check against the declared result types. */
Datum function_result(Lower *l, const Frame *f, const Function *def);
bool bind_params(Lower *l, Scope *s, const char *callee, const ParamList *params, Args *args);

/* ---- type.c ---- */
/* What has a type, for messages: a parameter `name` of the function `of`; `of` NULL: `name`. */
typedef struct Typed {
  const char *name, *of;
} Typed;
bool check_type(Lower *l, Scope *s, const TypeExpr *t, Datum *value, Span span, Typed what);
/* If the job or --set sets `object.NAME`, where NAME is parameter i of the def of the library,
 * *value becomes that setting, which is checked as an argument, and *span its place. */
bool setting_argument(Lower *l, const char *def, uint32_t i, const char *object, Datum *value,
                      Span *span);

/* ---- stmt.c ---- */
void exec_block(Lower *l, Frame *f, const Block *b);
/* Names a node after the first variable of the job that holds it. */
void name_node(Lower *l, const Scope *s, const char *name, Datum v);

/* ---- native.c ---- */
Datum library_call(Lower *l, const char *name, Args *args); /* calls a def of the layer library */

/* ---- model/param.c ---- */
Value param_value(Lower *l, ParamSlot *p, Span span);

/* ---- optimizer/schedule.c ---- */
/* Returns arithmetic in a setting. `attr` NULL: the op's default attributes. */
Datum schedule_of(Lower *l, OpKind op, const Datum *operand, uint32_t n, const Attr *attr,
                  Span span);
/* Returns the value of a schedule outside of optimizers; it counts the steps of the run. */
Value schedule_value(Lower *l, const Schedule *s, Span span);

/* ---- scan.c ---- */
/* Replaces a random node in a loop by a slice of numbers that are drawn for all iterations before
 * the loop. Returns value 0 after a message. */
Value draw_before_scan(Lower *l, Value v);
