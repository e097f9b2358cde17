/* Lowers modules, parameters and their initial values, models, and `precision` declarations. */
#pragma once
#include "compiler/lower/elaborate.h"
#include "compiler/lower/evaluate.h"

/* ---- module.c ---- */
Datum instantiate(Lower *l, const Class *class, Args *args);
Datum instance_copy(Lower *l, const Instance *from);
Datum instance_call(Lower *l, Instance *m, Args *args); /* calls m(x): its forward */
Datum instance_method(Lower *l, Instance *m, const Name *name, Args *args);
Datum instance_attr(Lower *l, Instance *m, const char *name, Span span);
Datum binding_value(Lower *l, const Binding *b, Span span);
/* The state of the caller, saved by instance_enter() when a call enters a module. */
typedef struct Entry {
  Instance *inside;
  Span inside_call;
  const char *layer;
  uint16_t region;
  bool training;
} Entry;
Entry instance_enter(Lower *l, Instance *m, Span call); /* m NULL: nothing changes */
void instance_leave(Lower *l, Entry e);
extern const Class class_sequential;

/* ---- member.c ---- */
void bind_member(Lower *l, Scope *s, const char *name, Datum value, Span span);
Datum native_member(Lower *l, Args *args);
Datum native_parametrize(Lower *l, Args *args);
void copy_parametrized(Lower *l, Instance *to, const Instance *from);
void tie(Lower *l, Scope *s, const Expr *target, Datum value, Span span);
/* Visits every module, parameter and buffer below m in the order of definition, with its path. */
typedef struct MemberVisitor {
  void (*module)(Lower *l, Instance *m, const char *path, void *data);
  void (*param)(Lower *l, ParamSlot *p, const char *path, bool alias, void *data);
  void *data;
} MemberVisitor;
void walk_members(Lower *l, Instance *m, const char *path, const MemberVisitor *w);

/* ---- buffer.c ---- */
/* once: the last body of a step assigns; else each body does. mix: the inputs of buffer_update that
 * compute v from the Buffer's value; NULL: it stores v. */
void assign_buffer(Lower *l, ParamSlot *p, const char *name, Datum v, Span span, bool once,
                   const Value *mix);
Datum native_running(Lower *l, Args *args);

/* ---- copy.c ---- */
extern const Native copy_natives[];
bool param_is_weight(const ParamSlot *p); /* true for a parameter, and for a copy of one */
/* Executes `target.fc.weight = v`. */
void assign_path(Lower *l, Scope *s, const Expr *target, Datum v);

/* ---- given.c ---- */
extern const Native given_natives[];
Datum average_module(Lower *l, Instance *m, Span span);
Datum average_call(Lower *l, const Instance *average, Datum callee, Args *args);
Datum average_member(Lower *l, const Binding *b, Span span);
void check_averages_kept(Lower *l);

/* ---- param.c ---- */
Datum make_param(Lower *l, Datum shape, Datum init, Datum dtype, bool buffer, Span span);
/* Returns how many steps of the block so far update the parameter. */
uint32_t param_version(const Lower *l, uint32_t index);
/* Reads a type in which weights can be stored; returns false after a message. */
bool want_store(Lower *l, Datum d, Span span, DType *out);
bool init_resolve(Lower *l, const Init *init, const ParamSlot *p, Span span, ampc_init *out);

/* ---- adapt.c ---- */
/* True after a message if the module of the clause is built: `adapt(LoRA(rank=4), "fc")`. */
bool adapt_is_built(Lower *l, const Expr *clause);
bool is_within_adapter(const Instance *m); /* m NULL: false */
void clause_adapt(Lower *l, Model *model, const Args *args);
/* Marks what runs read from files of `load`, and describes the adapters. Call it after all clauses
 * of the model. */
void adapters_settle(Lower *l, const Model *model);
/* Gives a copy of a module the adapters of its layers. */
void copy_adapters(Lower *l, Instance *to, Instance *from, Span span);
Datum adapter_call(Lower *l, Instance *m, Args *args); /* calls m(x) through its adapter */

/* ---- model.c ---- */
/* Adds the members below a module, which is at `path`, to the graph's tables. */
void register_members(Lower *l, Instance *m, const char *path, const char *model);
Datum declare_model(Lower *l, File *f, const Decl *decl);
void prefix_paths(Lower *l); /* call it after all models are declared */

/* ---- pattern.c ---- */
typedef struct Root { /* a module or parameter, and the path at which its patterns start */
  Datum part;
  const char *path;
} Root;
typedef VEC(Root) RootVec;
/* Calls `param` for every parameter below the roots that the patterns name; with `modules`,
 * `module` for every instance. A pattern without a match is an error: E501. */
typedef struct Match {
  const char *owner; /* name of the model or optimizer, for messages; NULL: all models */
  RootVec roots;
  bool broken; /* building it reported mistakes: a missing name is not reported again */
  bool modules;
  bool initial; /* for `init`: patterns skip buffers, and a layer type skips biases */
  void (*param)(Lower *l, ParamSlot *p, void *data);
  void (*module)(Lower *l, Instance *m, void *data);
  void *data;
} Match;
void match_patterns(Lower *l, const Match *m, const ArgValue *patterns, uint32_t n);
/* Returns the match of a model's patterns. They begin below it: "fc1.weight". */
Match match_of(Lower *l, const Model *model);
/* Returns the patterns that "{q,k}_proj" stands for, in lists; a pattern without braces as it is.
 */
Datum pattern_choices(Lower *l, Datum pattern);

/* ---- pins.c ---- */
/* Reads the type of the clause `autocast(TYPE, PATTERNS)`; returns false after a message. */
bool pin_kind(Lower *l, Scope *s, const Stmt *st, RegionKind *out);
/* Applies such a clause of a model. */
void clause_pins(Lower *l, Scope *s, const Model *model, const Stmt *st);
/* Applies the pins of `precision`, l->pins, whose paths begin with the name of a model. They
 * replace pins of `model`. Call it after all models are declared. */
void job_pins(Lower *l);

/* ---- load.c ---- */
/* Records `load(path, ...)` in a model; a run reads the file when it begins. */
Datum native_load(Lower *l, Args *args);

/* ---- precision.c ---- */
uint16_t region_push(Lower *l, RegionKind kind, bool no_grad, Span span, const char *label);
uint16_t region_checkpoint(Lower *l, Span span);
bool region_kind_of(Lower *l, Scope *s, const Expr *e, RegionKind *out);
bool region_kind_of_datum(Lower *l, Datum d, Span span, RegionKind *out);
void lower_precision(Lower *l, const Decl *decl);

/* ---- storage.c ---- */
void clause_params(Lower *l, const Args *args);
void clause_moments(Lower *l, const Args *args);
/* Returns false after a message if a parameter cannot be stored in the type, because the job has no
 * f32 masters. */
bool store_fits(Lower *l, DType store, Span span);

/* ---- scaler.c ---- */
void lower_no_scaler(Lower *l);
bool needs_scaler(RegionKind kind);
void default_scaler(Lower *l, RegionKind kind, Span span); /* without a `scaler` clause */
Datum native_scaler(Lower *l, Args *args);

/* ---- policy.c ---- */
void clause_policy(Lower *l, const Args *args);
/* Returns the last `policy` for this callee, or NULL. */
const Policy *policy_of(const Lower *l, Datum callee);
/* Called before a def runs. If a `policy` of the job gives the def a category, policy_enter() casts
 * the arguments and turns autocast off. instance_leave() restores the caller's region. */
void policy_enter(Lower *l, const Callable *f, Args *args);
/* Finds the op of the op table that `d` names. A native such as `sum`, which also takes numbers,
 * counts as the op of its name. */
bool policy_table_op(Datum d, OpKind *out);
/* Checks that a clause has a first argument and at least one op; returns false after a message. */
bool first_and_ops(Lower *l, const Args *args, const char *clause, const char *first,
                   const char *example);

/* ---- level.c ---- */
const Level *level_by_name(const char *name); /* returns NULL if unknown */
/* Returns the type in which a parameter is stored unless a clause or its module names one. */
DType level_store(const Lower *l, const ParamSlot *p);
/* Called before and after a call of a module from outside of its model. level_enter() casts float
 * arguments to f16, level_leave() casts the results to f32. level_enter() returns false if the
 * level does not cast; then level_leave() must not be called. */
bool level_enter(Lower *l, const Instance *m, Args *args);
Datum level_leave(Lower *l, Datum result, Span span);

/* ---- accumulate.c ---- */
void clause_accumulate(Lower *l, const Args *args);
/* Called before a def runs, after policy_enter(). Sets the region's type of sums. */
void accumulate_enter(Lower *l, const Callable *f);
