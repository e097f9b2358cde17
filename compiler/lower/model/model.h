/* Lowers modules, parameters and their initial values, models, and `precision` declarations. */
#pragma once
#include "compiler/lower/elaborate.h"
#include "compiler/lower/evaluate.h"

/* ---- module.c ---- */
Datum instantiate(Lower *l, const Class *class, Args *args);
Datum instance_copy(Lower *l, const Instance *from);
Datum instance_call(Lower *l, Instance *m, Args *args); /* m(x): its forward */
Datum instance_method(Lower *l, Instance *m, const Name *name, Args *args);
Datum instance_attr(Lower *l, Instance *m, const char *name, Span span);
/* While a def of m runs, called from outside of m: its pin, and where messages say we are. */
typedef struct Entry {
  Instance *inside;
  Span inside_call;
  const char *layer;
  uint16_t region;
  bool training;
} Entry;
Entry instance_enter(Lower *l, Instance *m, Span call); /* m may be NULL */
void instance_leave(Lower *l, Entry e);
extern const Class class_sequential;

/* ---- member.c ---- */
void bind_member(Lower *l, Scope *s, const char *name, Datum value, Span span);
Datum native_member(Lower *l, Args *args);
void tie(Lower *l, Scope *s, const Expr *target, Datum value, Span span);
/* Every module, parameter and buffer below m in the order of definition, with its path. */
typedef struct MemberVisitor {
  void (*module)(Lower *l, Instance *m, const char *path, void *data);
  void (*param)(Lower *l, ParamSlot *p, const char *path, bool alias, void *data);
  void *data;
} MemberVisitor;
void walk_members(Lower *l, Instance *m, const char *path, const MemberVisitor *w);

/* ---- buffer.c ---- */
void assign_buffer(Lower *l, ParamSlot *p, const char *name, Datum v, Span span);
Datum native_running(Lower *l, Args *args);

/* ---- param.c ---- */
Datum make_param(Lower *l, Datum shape, Datum init, Datum dtype, bool buffer, Span span);
uint32_t param_version(const Lower *l, uint32_t index); /* steps that it has seen in the block */
/* A type that weights may be stored in; false after a message. */
bool want_store(Lower *l, Datum d, Span span, DType *out);
bool init_resolve(Lower *l, const Init *init, const ParamSlot *p, Span span, ampc_init *out);

/* ---- model.c ---- */
Datum declare_model(Lower *l, File *f, const Decl *decl);
void prefix_paths(Lower *l); /* after all models are declared */

/* ---- pattern.c ---- */
typedef struct Root { /* a module or parameter, and the path by which patterns know it */
  Datum part;
  const char *path;
} Root;
typedef VEC(Root) RootVec;
/* Calls `param` for every parameter (or, with modules, `module` for every instance) below the roots
 * that the patterns name; E501. */
typedef struct Match {
  const char *owner; /* the model or optimizer, for messages */
  RootVec roots;
  bool broken; /* mistakes were made in building it: what is missing is not said again */
  bool modules;
  bool initial; /* of `init`: buffers are not named, and a layer type names its weights */
  void (*param)(Lower *l, ParamSlot *p, void *data);
  void (*module)(Lower *l, Instance *m, void *data);
  void *data;
} Match;
void match_patterns(Lower *l, const Match *m, const ArgValue *patterns, uint32_t n);
/* Patterns of a model start below it: "fc1.weight", without the model's name. */
Match match_of(Lower *l, const Model *model);

/* ---- load.c ---- */
/* `load(path, ...)` in a model: written down, for the file is read when a run begins. */
void clause_load(Lower *l, const Model *model, const Args *args, Span span);

/* ---- precision.c ---- */
uint16_t region_push(Lower *l, RegionKind kind, bool no_grad, Span span, const char *label);
uint16_t region_checkpoint(Lower *l, Span span);
bool region_kind_of(Lower *l, Scope *s, const Expr *e, RegionKind *out);
bool region_kind_of_datum(Lower *l, Datum d, Span span, RegionKind *out);
const char *region_kind_text(RegionKind kind);
void lower_precision(Lower *l, const Decl *decl);

/* ---- scaler.c ---- */
void lower_no_scaler(Lower *l);
bool needs_scaler(RegionKind kind);
void default_scaler(Lower *l, RegionKind kind, Span span); /* of a job without the clause */
Datum native_scaler(Lower *l, Args *args);

/* ---- policy.c ---- */
void clause_policy(Lower *l, const Args *args);
const Policy *policy_of(const Lower *l, Datum callee); /* the last one; NULL: there is none */
/* Is called before a def runs. If the job gives the def a class, this casts the arguments and turns
 * autocast off. instance_leave() restores the caller's region. */
void policy_enter(Lower *l, const Callable *f, Args *args);
/* Ops of the table by the names that the language has for them: `sum` is a function of numbers,
 * too. */
bool policy_table_op(Datum d, OpKind *out);
/* Whether a clause has what it says of ops, and ops; a message if not. */
bool first_and_ops(Lower *l, const Args *args, const char *clause, const char *first,
                   const char *example);

/* ---- level.c ---- */
const Level *level_by_name(const char *name); /* NULL: there is none */
/* How a parameter is stored of which nothing else is said. */
DType level_store(const Lower *l, const ParamSlot *p);
/* Before and behind a call of a module from outside of its model: floats that go in become f16,
 * what comes out f32. False: the level does not cast, and there is nothing to do behind it. */
bool level_enter(Lower *l, const Instance *m, Args *args);
Datum level_leave(Lower *l, Datum result, Span span);

/* ---- accumulate.c ---- */
void clause_accumulate(Lower *l, const Args *args);
/* Before a def runs, behind policy_enter: the region says how it adds up. */
void accumulate_enter(Lower *l, const Callable *f);
