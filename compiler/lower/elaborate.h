/* Declarations for all rooms of pass lower: scopes, arguments, numbers, tensors. */
#pragma once
#include "lower.h"

/* ---- scope.c ---- */
Scope *scope_new(Lower *l, Scope *parent, File *file, Instance *self);
Binding *scope_find(Scope *s, const char *name); /* searches s only, not its parents */
Missing *scope_missing(Scope *s, const char *name);
void scope_bind(Lower *l, Scope *s, const char *name, Datum value, Span span);
/* A mistake in the layer library is a bug in ampc. The first compile reports it and aborts. */
_Noreturn void library_broken(const char *file, const char *what, const char *name);

/* ---- number.c ---- */
Datum number_binary(Lower *l, Operator op, Datum a, Datum b, Span span);
Datum number_unary(Lower *l, Operator op, Datum a, Span span);
bool want_int(Lower *l, Datum d, Span span, const char *what, int64_t *out);
bool want_float(Lower *l, Datum d, Span span, const char *what, double *out);
/* want_count() and want_in() also check that the number is in a range. */
typedef struct Counts {
  int64_t least, most;
} Counts;
bool want_count(Lower *l, Datum d, Span span, const char *what, Counts range, int64_t *out);
bool want_in(Lower *l, Datum d, Span span, const char *what, ampc_domain domain, double *out);
bool want_bool(Lower *l, Datum d, Span span, const char *what, bool *out);
bool want_str(Lower *l, Datum d, Span span, const char *what, const char **out);
bool want_dtype(Lower *l, Datum d, Span span, const char *what, DType *out);
/* Reads a shape: a list of ints or one int. Sizes of -1 stay -1. */
bool want_sizes(Lower *l, Datum d, Span span, const char *what, int64_t *dim, uint32_t *rank);

/* ---- tensor.c ---- */
Value as_tensor(Lower *l, Datum d, Span span); /* value 0: an error was reported */
bool tensor_dims(Lower *l, Datum d, const int64_t **dim, uint32_t *rank);
DType tensor_dtype(Lower *l, Datum d);
Datum append(Lower *l, Span span, OpKind op, const Value *in, uint32_t n_in,
             const NamedAttr *attrs);
Datum tensor_binary(Lower *l, Operator op, Datum a, Datum b, Span span);
Datum tensor_unary(Lower *l, Operator op, Datum a, Span span);
Datum unchanged(Lower *l, Value x, Span span);
Datum reshape_to(Lower *l, Value x, const int64_t *dim, uint32_t rank, Span span);
Datum cast_to(Lower *l, Value x, DType d, Span span);
Datum call_op(Lower *l, OpKind op, Args *args);
bool normal_axis(Lower *l, int64_t axis, uint32_t rank, Datum x, Span span, int64_t *out);

/* ---- type_of.c ---- */
typedef struct AskedType {
  DType dtype; /* the type as pass lower knows it */
  Value like;  /* the type is this value's final type; 0: it is `dtype` */
} AskedType;
Datum type_of_tensor(Lower *l, Datum x, Span span);
/* Reads a type for `.to(..)` or `dtype=`: a dtype or `y.dtype`. want_dtype() rejects `y.dtype` of a
 * float tensor, which only pass precision knows. */
bool want_type(Lower *l, Datum d, Span span, const char *what, AskedType *out);
Datum cast_as(Lower *l, Value x, AskedType type, Span span);

/* ---- foreign.c ---- */
/* Reports a name of another language at `span`, with its cure. Sets l->asked to NULL, so that the
 * caller does not evaluate the arguments of the call. Returns false if the table lacks the name. */
bool foreign_said(Lower *l, const char *key, Span span);
/* Reports `loss.backward()`, whose `loss` is unknown, if the table has the method. */
bool foreign_base_said(Lower *l, const char *base, Span span);
/* Reports `print(..)` as foreign_said(), and notes what it would print. */
bool print_said(Lower *l, Scope *s, Span span);
/* Adds the cure as a help to the last message. Returns false if the table lacks the name. */
bool foreign_help(Lower *l, const char *key);
/* Reports `nn.Linear`, `torch.relu`, `self.fc1`: a name that begins with a module of Python.
 * Returns false for other names. */
bool foreign_prefix_said(Lower *l, Scope *s, const Expr *attr);

/* ---- args.c ---- */
void args_push(Lower *l, Args *a, Datum value, Span span);
Datum wrong_key(Lower *l, const char *callee, const ArgValue *arg, const char *const *names,
                uint32_t n, const char *signature);
/* Reports `cat(x, y)`, whose tensors lack their brackets: `cat([x, y])`. */
bool args_lack_list(Lower *l, const char *name, const Args *args);
typedef struct Callee { /* the parameters of a def, a module or an op of the table */
  const char *name;
  const void *of;
  uint32_t n;
  const char *(*argument)(const void *of, uint32_t i); /* returns the name of argument i */
  bool (*optional)(const void *of, uint32_t i);
  const char *(*text)(Lower *l, const char *name, const void *of); /* returns "f(x, dim=1)" */
} Callee;
/* Sorts arguments into slots as Python does: first by position, then by name. A slot without an
 * argument must be optional. Returns false after a message. */
bool args_sort(Lower *l, const Callee *f, const Args *args, const ArgValue **slot);

/* ---- work.c ---- */
/* Called before and after the body of a def or a module. call_begin() returns false after a message
 * that a limit is exceeded. */
bool call_begin(Lower *l, const char *name, const File *file, Span call);
void call_end(Lower *l);
bool count_work(Lower *l, uint32_t amount, Span span);
/* Counts one more level on the C stack. Decrement l->stack when you leave it. */
bool go_deeper(Lower *l, Span span);

/* ---- option.c ---- */
bool setting_value(Lower *l, const char *key, Datum *value, Span *span);
/* Whether --set or a line of the job sets the key. */
bool setting_given(Lower *l, const char *key);
/* Returns the text that --set gives for the key; NULL if no --set names it. */
const char *setting_text_given(Lower *l, const char *key);
void check_settings(Lower *l); /* reports unknown keys, and lines that set a key twice */
bool const_override(Lower *l, File *f, const Decl *decl, Datum *value);
void check_consts(Lower *l);

/* ---- shape.c ---- */
extern const Native shape_natives[], list_natives[]; /* list.c */
