/* What the files of pass lower share. The pass is an interpreter that runs in the compiler:
 * numbers, strings, lists, functions and modules are Datums and are gone when it ends; operations
 * on tensors leave nodes in the graph. A mistake is reported where it is found and gives a D_error,
 * which everything made of it passes on in silence, so that one mistake is one message. */
#pragma once
#include "compiler/base/limits.h"
#include "compiler/base/names.h"
#include "compiler/graph/optimizers.h"
#include "value.h"

typedef struct Look Look;   /* look.c */
typedef struct Sizes Sizes; /* infer.h */

/* ---- names ---- */

typedef struct Binding {
  const char *name;
  Datum value;
  Span span;
  bool alias; /* of a tied parameter: its canonical place is elsewhere */
} Binding;

typedef struct Missing {  /* a name of a branch that was not taken, or of a block that has ended */
  const char *name, *why; /* "`bias` is false"; "`every 5`" */
  Span span;
  bool ended;
} Missing;

struct Scope {
  Scope *parent;
  File *file;
  Instance *self; /* a module body, or a method of it */
  VEC(Binding) names;
  VEC(Missing) missing; /* each name once */
  NameIndex names_index, missing_index;
  Arena *arena; /* of the two */
};

typedef enum GlobalState { GLOBAL_new, GLOBAL_busy, GLOBAL_done } GlobalState;
typedef struct Global {
  const char *name;
  const Decl *decl;
  GlobalState state;
  Datum value;
} Global;

struct File {
  const Ast *ast;
  bool builtin;
  VEC(Global) globals;
  NameIndex index; /* of the globals */
  Arena *arena;    /* of the index */
  VEC(File *) imports;
};

/* ---- modules ---- */

struct Class {
  const char *name;
  const Decl *decl; /* NULL: Sequential */
  File *file;
};

struct Instance {
  const Class *class;
  Scope *params, *body;     /* Sequential has its children as names of `body` */
  Instance *owner;          /* set when it becomes a member */
  const char *name;         /* within the owner: "fc1", "layers.3" */
  const char *path, *model; /* within the model; set when the model is declared */
  const char *layer;        /* "net.fc1", "net" for the model itself; as those */
  bool pinned;
  RegionKind pin;
  Span pin_span;
  bool evaluating; /* .eval() */
  bool store_said;
  DType store;            /* .to(f16) */
  bool grad_said, frozen; /* .requires_grad(..) was said; with false */
  Span span;              /* of the call that built it */
};

typedef struct Model {
  const char *name;
  Instance *root;
  bool broken; /* mistakes were made in building it: it may lack members */
} Model;

/* ---- calls ---- */

typedef struct ArgValue {
  Datum value;
  const char *key; /* NULL: by position */
  Span span, key_span;
} ArgValue;

typedef struct Args {
  VEC(ArgValue) at;
  Span span; /* of the call */
} Args;

enum { ANY_NUMBER = 255 };
struct Native {
  const char *name;
  uint8_t least, most; /* arguments, by position */
  bool keys;           /* takes keyword arguments and sorts them out itself */
  bool internal;       /* written _name, in the layer library only */
  Datum (*run)(Lower *l, Args *args);
};

/* ---- the run of a function body, a module body or a block ---- */

typedef enum FrameKind {
  FRAME_function,
  FRAME_module,
  FRAME_data,
  FRAME_train,
  FRAME_eval,
  FRAME_scan
} FrameKind;
typedef struct Scan Scan; /* scan.c: one whose body is being elaborated */
typedef struct Frame {
  FrameKind kind;
  Scope *scope;
  bool returned;
  Datum result;
  Span result_span;
  Scan *scan; /* FRAME_scan */
} Frame;

typedef struct Counted { /* what an `every` adds to the counts of a Run and to Graph.n_streams */
  uint32_t n_every, n_losses, n_metrics, n_streams;
} Counted;
typedef struct Run Run;
struct Run {        /* a block being elaborated */
  const char *name; /* "train", "eval2" */
  uint16_t block;
  int first; /* block whose sources and metrics it shares: itself, or the one it is a variant of */
  int64_t batch, samples; /* samples of an epoch; 0: not known */
  Span samples_span;
  uint32_t n_sources, n_losses, n_metrics, first_metric, first_stream;
  int64_t every;     /* steps from one to the next that has this statement: 1 outside of `every` */
  const char *again; /* the optimizer that minimizes, if not for the first time in the body */
  uint32_t n_minimized, n_every; /* `minimize` and `every` statements so far, in this variant */
  VEC(Counted) counted;          /* by each of them, where all fire */
  const Run *whole; /* the variant of this batch size where all fire; NULL: this is it */
};

enum { MAX_SETTINGS = MAX_SIGNATURE + 1 }; /* the inputs of an update, and clip_norm */
typedef struct SettingGroup {              /* a `group` clause */
  const char *key;                         /* "opt.group1" */
  bool own[MAX_SETTINGS];                  /* given by the clause; the others are the optimizer's */
  Datum value[MAX_SETTINGS];
} SettingGroup;
struct Opt {
  const char *name;
  const Decl *decl;
  File *file;
  int index;          /* into Graph.optimizers */
  int64_t accumulate; /* bodies of a step */
  GlobalState state;
  bool good;
  uint32_t n_settings;
  const char *setting[MAX_SETTINGS]; /* "lr"; inputs of the update, then clip_norm */
  Datum value[MAX_SETTINGS];
  VEC(SettingGroup) groups; /* group i + 1 of the graph's optimizer */
  uint32_t updates;         /* minimize nodes so far in the block */
  uint32_t last;            /* which `minimize` of the block was the last of them, from 1 */
};

typedef struct Policy { /* of a def of the library, or an op of the job: policy.c */
  Datum op;
  OpPrecision class;
  Span span;
  const char *label; /* "policy(f32, gelu)" */
} Policy;

typedef struct Level { /* `precision O2`: level.c */
  const char *name;
  RegionKind kind;   /* of its numbers: f16 or f32 */
  RegionKind region; /* of the job: off where the model as a whole is cast */
  int number;
} Level;
enum { LEVEL_COUNT = 4 };
extern const Level levels[LEVEL_COUNT]; /* O0 to O3 */

typedef struct Sums { /* of a def of the library: `accumulate`, accumulate.c */
  Datum op;
  bool wide;
} Sums;

struct Lower {
  Compile *c;
  Graph *g;
  Arena *arena;
  File *job, *library;
  VEC(File *) files;
  VEC(Model) models;
  VEC(Opt *) optimizers;
  NameVec known_settings;                /* keys that --set may name */
  NameIndex known_index, settings_index; /* of these; of g->settings */
  VEC(struct Plateau) plateaus;          /* of settings; g->plateaus once their metrics are found */
  VEC(Span) call_sites;                  /* of synthetic() */
  VEC(Policy) policies;
  VEC(Sums) sums;
  const Level *level; /* of `precision`; NULL: it is no level */
  DType store;        /* of parameters of which nothing else is said: `params(d)` */
  Cursor at;
  Instance *building; /* the module whose body is being run; NULL: none */
  Run *run;           /* NULL: outside of blocks */
  Scan *scan;         /* the innermost; NULL: none */
  uint16_t job_region;
  bool training;
  uint32_t in_backward;   /* of ops of the job: how many of them, one in the other */
  uint32_t in_jvp;        /* functions that are differentiated along, one in the other */
  bool in_source;         /* what a run reads is being worked out */
  Look *look;             /* that is a prompt's: which samples; else NULL */
  Sizes *sizes;           /* of dims */
  bool broken_consts;     /* a const has no value, so anything may lack members */
  bool broken;            /* a model lacks some: that is not said again */
  bool in_precision;      /* a clause of `precision` is being worked out */
  Opt *settings_of;       /* while an optimizer's settings are worked out */
  bool steps_asked;       /* they have asked how many steps there are */
  int64_t param_elements; /* elements of all parameters so far */
  uint32_t depth;         /* of calls */
  uint32_t global_depth;  /* of declarations that are being worked out */
  uint32_t stack;         /* expressions and statements that are being run, one within the other */
  uint32_t work;          /* done so far: MAX_WORK */
  uint32_t expressions;   /* run so far */
  bool stopped;     /* the program has no end: nothing more is elaborated, nothing more said */
  Datum watched;    /* watch.c: what a metric or a layer of the block gave; D_absent */
  Instance *inside; /* the innermost member that is being run, and the call that led there */
  Span inside_call;
};

/* ---- scope.c ---- */
Scope *scope_new(Lower *l, Scope *parent, File *file, Instance *self);
Binding *scope_find(Scope *s, const char *name); /* in s alone */
Missing *scope_missing(Scope *s, const char *name);
void scope_bind(Lower *l, Scope *s, const char *name, Datum value, Span span);
File *file_open(Lower *l, const Ast *ast, bool builtin);
void file_add_globals(Lower *l, File *f, bool job);
/* A mistake in the layer library is ours: the first compile of the program names it and stops. */
_Noreturn void library_broken(const char *file, const char *what, const char *name);
Global *file_find(File *f, const char *name);
void open_library(Lower *l); /* l->library */
Datum global_value(Lower *l, File *f, Global *g);
/* A name of the file, its imports or the built-ins; D_absent if there is none. */
Datum lookup_global(Lower *l, File *f, const char *name, Span span);
Datum lookup_quiet(Lower *l, Scope *s, const char *name, Span span); /* D_absent if unknown */
Datum lookup(Lower *l, Scope *s, const char *name, Span span);       /* reports unknown names */
void visible_functions(Lower *l, NameVec *out); /* built-ins, for suggestions */

/* ---- expr.c ---- */
Datum eval(Lower *l, Scope *s, const Expr *e);
/* The elements of a list, the children of a Sequential. */
bool iterate(Lower *l, Datum d, Span span, DatumVec *out);
bool may_unroll(Lower *l, Datum list, Span span); /* by `for`; E308 for the range of a dim */
bool unpack(Lower *l, Datum v, uint32_t n, Span span, Datum *out);
bool bind_loop_names(Lower *l, Scope *s, const NameList *names, Datum item, Span span);
Datum apply_binary(Lower *l, Operator op, Datum a, Datum b, Span span);

/* ---- number.c ---- */
Datum number_binary(Lower *l, Operator op, Datum a, Datum b, Span span);
Datum number_unary(Lower *l, Operator op, Datum a, Span span);
bool want_int(Lower *l, Datum d, Span span, const char *what, int64_t *out);
bool want_float(Lower *l, Datum d, Span span, const char *what, double *out);
/* And of what its place takes. */
bool want_count(Lower *l, Datum d, Span span, const char *what, int64_t least, int64_t most,
                int64_t *out);
bool want_in(Lower *l, Datum d, Span span, const char *what, ampc_domain domain, double *out);
bool want_bool(Lower *l, Datum d, Span span, const char *what, bool *out);
bool want_str(Lower *l, Datum d, Span span, const char *what, const char **out);
bool want_dtype(Lower *l, Datum d, Span span, const char *what, DType *out);
/* A shape: a list of ints or one int; -1 is left as it is. */
bool want_sizes(Lower *l, Datum d, Span span, const char *what, int64_t *dim, uint32_t *rank);

/* ---- tensor.c ---- */
Value as_tensor(Lower *l, Datum d, Span span); /* value 0 after a message */
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

/* ---- type_of.c: x.dtype ---- */
typedef struct AskedType {
  DType dtype; /* what pass lower takes it for */
  Value like;  /* it is the type of this value, whatever pass precision makes of it; 0: dtype */
} AskedType;
Datum type_of_tensor(Lower *l, Datum x, Span span);
/* A type for `.to(..)` and `dtype=`; where one must be known at once it is want_dtype(). */
bool want_type(Lower *l, Datum d, Span span, const char *what, AskedType *out);
Datum cast_as(Lower *l, Value x, AskedType type, Span span);

/* ---- index.c ---- */
Datum eval_index(Lower *l, Scope *s, const Expr *e);

/* ---- call.c ---- */
bool eval_args(Lower *l, Scope *s, const ArgList *list, Args *out);
void args_push(Lower *l, Args *a, Datum value, Span span);
Datum call(Lower *l, Datum callee, Args *args);
/* Around the run of a def's or a module's body; false: it goes too far, which has been said. */
bool call_begin(Lower *l, const char *name, const File *file, Span call);
void call_end(Lower *l);
bool count_work(Lower *l, uint32_t amount, Span span);
/* One more on C's stack; l->stack-- when it is left. */
bool go_deeper(Lower *l, Span span);
Datum call_function(Lower *l, const Callable *f, Args *args);
Datum function_result(Lower *l, const Frame *f, const Function *def); /* checked */
bool bind_params(Lower *l, Scope *s, const char *callee, const ParamList *params, Args *args);
const char *signature_text(Lower *l, const char *name, const ParamList *params);
Datum wrong_key(Lower *l, const char *callee, const ArgValue *arg, const char *const *names,
                uint32_t n, const char *signature);

/* ---- type.c ---- */
const char *type_text(Lower *l, const TypeExpr *t);
void bind_sizes(Lower *l, Scope *s, const TypeExpr *t, Datum value);
bool check_type(Lower *l, Scope *s, const TypeExpr *t, Datum *value, Span span, const char *what);

/* ---- stmt.c ---- */
void exec_block(Lower *l, Frame *f, const Block *b);
void bind_errors(Lower *l, Scope *s, const Block *b);
/* A node is called after the first variable of the job that holds it. */
void name_node(Lower *l, const Scope *s, const char *name, Datum v);

/* ---- module.c ---- */
Datum instantiate(Lower *l, const Class *class, Args *args);
Datum instance_copy(Lower *l, const Instance *from);
Datum library_call(Lower *l, const char *name, Args *args); /* of a def of the layer library */
Datum instance_call(Lower *l, Instance *m, Args *args);     /* m(x): its forward */
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

/* ---- param.c ---- */
void assign_buffer(Lower *l, ParamSlot *p, const char *name, Datum v, Span span); /* buffer.c */
Datum native_running(Lower *l, Args *args);                                       /* buffer.c */
Datum make_param(Lower *l, Datum shape, Datum init, Datum dtype, bool buffer, Span span);
Value param_value(Lower *l, ParamSlot *p, Span span);
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

/* ---- native.c, shape.c, source.c ---- */
const Native *native_find(const char *name, bool internal);
void native_names(Lower *l, NameVec *out); /* those that the language can name */
extern const Native natives[], shape_natives[], source_natives[], optimizer_natives[],
    schedule_natives[], jvp_natives[], list_natives[];

/* ---- precision.c ---- */
uint16_t region_push(Lower *l, RegionKind kind, bool no_grad, Span span, const char *label);
uint16_t region_checkpoint(Lower *l, Span span);
bool region_kind_of(Lower *l, Scope *s, const Expr *e, RegionKind *out);
bool region_kind_of_datum(Lower *l, Datum d, Span span, RegionKind *out);
const char *region_kind_text(RegionKind kind);
void lower_precision(Lower *l, const Decl *decl);
/* ---- scaler.c ---- */
void lower_no_scaler(Lower *l);
void default_scaler(Lower *l, RegionKind kind, Span span); /* of a job without the clause */
Datum native_scaler(Lower *l, Args *args);

/* ---- policy.c ---- */
void clause_policy(Lower *l, const Args *args);
const Policy *policy_of(const Lower *l, Datum callee); /* the last one; NULL: there is none */
/* Before a def runs: where the job gives it a class its arguments are cast, and the region is one
 * with autocast off. instance_leave() restores that of the caller. */
void policy_enter(Lower *l, const Callable *f, Args *args);

/* Ops of the table by the names that the language has for them: `sum` is a function of numbers,
 * too. */
bool policy_table_op(Datum d, OpKind *out);

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

/* ---- optimizer.c ---- */
Opt *declare_optimizer(Lower *l, File *f, const Decl *decl);
bool optimizer_settle(Lower *l, Opt *o);
bool check_setting(Lower *l, const Opt *o, const char *key, const char *name, Datum *v, Span span);
/* What a group's settings make of its kernel: the moments that it keeps; flags that do not fit are
 * reported. */
bool settle_group(Lower *l, const Opt *o, uint32_t group, Span span);
bool set_flag(Lower *l, const OptimizerArgument *a, ParamGroup *group, Datum v, Span span);
/* The values of the settings that an argument stands for: `v` itself, or the elements of the list
 * that it is; NULL after a message. */
const Datum *argument_values(Lower *l, const OptimizerArgument *a, const Datum *v, Span span);

/* ---- group.c: clauses of an optimizer; `model` is what it was given ---- */
bool optimizer_groups(Lower *l, Opt *o, Datum model);
/* The value and the key of setting i in group `group`. */
Datum group_setting(const Opt *o, uint32_t group, uint32_t i, const char **key);
/* The node of setting i, 0 for `none`; false after a message. */
bool optimizer_setting(Lower *l, const Opt *o, uint32_t group, uint32_t i, Value *out);
bool has_metric(const Lower *l, const char *name);      /* the block, so far */
void lower_minimize(Lower *l, Frame *f, const Stmt *s); /* minimize.c */
void lower_metric(Lower *l, const char *name, Value value, bool is_loss, Span span);
void lower_statistics(Lower *l, const char *name, const Statistics *s, Span span);

/* ---- schedule.c ---- */
Value setting_node(Lower *l, const char *key, double number, ampc_domain domain,
                   Span span); /* one for each key */
/* Of `step` steps; `key`, "opt.lr", begins the keys of its arguments, and `domain` is of what it
 * gives. Value 0 after a message. */
Value schedule_node(Lower *l, const Schedule *s, Value step, const char *key, ampc_domain domain,
                    Span span);
/* The same of arithmetic with schedules too: what a setting is. */
Value setting_schedule(Lower *l, const Schedule *s, Value step, const char *key, ampc_domain domain,
                       Span span);
/* Arithmetic in a setting; `attr` NULL: the op's defaults. */
Datum schedule_of(Lower *l, OpKind op, const Datum *operand, uint32_t n, const Attr *attr,
                  Span span);
Datum extreme_schedule(Lower *l, const Args *args, const char *name); /* `min(a, b)` in a setting */
Datum counting_schedule(Lower *l, OpKind op); /* `step` and `epoch` in a setting */
/* Outside of optimizers: of the steps of the run. */
Value schedule_value(Lower *l, const Schedule *s, Span span);

/* ---- library.c ---- */
/* Ends the program where a def of the layer library names an optimizer or a
 * schedule that the tables do not have, or the other way round. */
void check_library(Lower *l);

/* ---- block.c ---- */
void lower_run(Lower *l, const Decl *decl, uint32_t number);
void lower_check_names(Lower *l); /* of blocks: no two are equal */
/* Makes the block the one that nodes are appended to. `first` is the block whose sources and
 * metrics it shares, if it is the remainder of one. Versions of parameters begin anew in each
 * block. False after a message when there are too many. */
bool begin_block(Lower *l, Run *run, const BlockInfo *info, const Run *first);
void end_block(Lower *l);
/* A value that the caller of an infer block gets. */
void add_output(Lower *l, const char *name, Datum v, Span span);
void lower_body(Lower *l, const Decl *decl);
/* What a prompt gets: a compile-time value as text, tensors as outputs of the block. */
void add_answer(Lower *l, Datum v, Span span);

/* ---- every.c ---- */
void exec_every(Lower *l, Frame *f, const Stmt *st);
/* Of a train block, before its body: the steps that options.probe_every asks for are a kind of
 * their own. */
void every_probe(Lower *l, Span span);
/* The choices of `every` that come in steps, as bits of b->period, that with all of them first;
 * sorts the periods and sets those of b itself. 0 after a message: there are more than `most`. */
uint32_t every_choices(Lower *l, BlockInfo *b, uint32_t most, uint32_t *out);

/* look.c: data that a prompt looks at. `last` is a return. False after a message. */
void look_result(Lower *l, Frame *f, const Stmt *last);
bool look_at(Lower *l, const ampc_source *s); /* of a source whose samples are counted */

/* ---- option.c: a setting's number: `value`, or what --set says; false after a message ---- */
bool setting_value(Lower *l, const char *key, Datum *value);
const char *setting_override(Lower *l, const char *key); /* its text; NULL: not given */
void check_settings(Lower *l);                           /* reports --set of unknown keys */
bool const_override(Lower *l, File *f, const Decl *decl, Datum *value);
void check_consts(Lower *l);
