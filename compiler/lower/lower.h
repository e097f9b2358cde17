/* The state of pass lower. The pass is an interpreter that runs in the compiler. Numbers, strings,
 * lists, functions and modules are Datums and exist only while the pass runs; operations on tensors
 * append nodes to the graph. A mistake is reported where it is found, and a D_error replaces the
 * value. Every operation on a D_error returns a D_error without a message, so one mistake gives one
 * message. */
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
  bool alias;         /* an additional path of a tied parameter */
  Instance *computes; /* if not NULL, a call of this module computes the value */
} Binding;

/* A name that is bound only in a branch not taken, or in braces that ended. */
typedef struct Missing {
  const char *name, *why; /* "`bias` is false"; "`every 5`" */
  Span span;
  bool ended;
} Missing;

struct Scope {
  Scope *parent;
  File *file;
  Instance *self; /* set in a module body and in its methods */
  VEC(Binding) names;
  VEC(Missing) missing; /* each name at most once */
  NameIndex names_index, missing_index;
  Arena *arena; /* memory of both indexes */
};

typedef enum GlobalState { GLOBAL_new, GLOBAL_busy, GLOBAL_done } GlobalState;
typedef struct Global {
  const char *name;
  const Decl *decl; /* of the library: NULL until global_decl() has parsed `text` */
  Span text;
  GlobalState state;
  Datum value;
} Global;

struct File {
  const Ast *ast;
  bool builtin;
  VEC(Global) globals;
  NameIndex index; /* index of the globals */
  Arena *arena;    /* memory of the index */
  VEC(File *) imports;
};

typedef struct BuiltinFunction { /* a name, and the native or op that it means; D_absent: none */
  const char *name;
  Datum value;
} BuiltinFunction;

/* ---- modules ---- */

struct Class {
  const char *name;
  const Decl *decl; /* NULL for Sequential */
  File *file;
};

struct Instance {
  const Class *class;
  Scope *params, *body;     /* the children of a Sequential are names in `body` */
  Instance *owner;          /* set when the module becomes a member */
  const char *name;         /* the name within the owner: "fc1", "layers.3" */
  const char *path, *model; /* path within the model, and its name; NULL until it is declared */
  const char *layer;        /* "net.fc1"; "net" for the model itself; NULL until it is declared */
  bool pinned;
  RegionKind pin;
  Span pin_span;
  bool evaluating;   /* `.eval()` was called */
  Instance *of;      /* of an averaged module, given.c: the module; else NULL */
  Instance *adapter; /* calls go to it, adapt.c; NULL: none */
  bool adapts;       /* it is the adapter of a module, and has the module's owner and name */
  bool adapting;     /* a call of its adapter is running, so calls go to the module itself */
  bool store_said;
  DType store;            /* the type of `.to(f16)`, if store_said */
  bool grad_said, frozen; /* grad_said: .requires_grad(..) was called; frozen: with false */
  Span span;              /* span of the call that built the module */
};

typedef struct Model {
  const char *name;
  Instance *root;
  bool broken; /* building it reported mistakes, so members may be missing */
  bool adapts; /* it has an `adapt` clause */
} Model;

/* ---- calls ---- */

typedef struct ArgValue {
  Datum value;
  const char *key; /* NULL: passed by position */
  Span span, key_span;
} ArgValue;

typedef struct Args {
  VEC(ArgValue) at;
  Span span;            /* span of the call */
  const Native *native; /* the native that is called; else NULL */
} Args;

enum { ANY_NUMBER = 255 };
struct Native {
  const char *name;
  uint8_t least, most; /* bounds on the number of arguments */
  bool keys;           /* accepts keyword arguments and checks its arguments itself */
  bool internal;       /* only the layer library can call it, as _name */
  Datum (*run)(Lower *l, Args *args);
  /* parameters of a `run` function that several natives share */
  double (*number)(double);
  int64_t value;
};

/* ---- execution of a function body, a module body or a block ---- */

typedef enum FrameKind {
  FRAME_function,
  FRAME_module,
  FRAME_data,
  FRAME_train,
  FRAME_eval,
  FRAME_scan
} FrameKind;
typedef struct Scan Scan; /* scan.c: a `scan` whose body is being elaborated */
typedef struct Frame {
  FrameKind kind;
  Scope *scope;
  bool returned;
  Datum result;
  Span result_span;
  Scan *scan; /* FRAME_scan */
} Frame;

typedef struct Counted { /* what one `every` adds to the counts of a Run and to Graph.n_streams */
  uint32_t n_every, n_losses, n_metrics, n_streams;
} Counted;
typedef struct Run Run;
struct Run {        /* a block being elaborated */
  const char *name; /* "train", "eval2" */
  uint16_t block;
  int first; /* the block with its sources and metrics: itself, or its first variant */
  int64_t batch, all_batch; /* samples in a body; in the bodies of all members */
  int64_t samples;          /* samples of an epoch, 0 if unknown */
  Span samples_span;
  uint32_t n_sources, n_losses, n_metrics, first_metric, first_stream;
  int64_t every;     /* the current statement runs in every n-th step; 1 outside of `every` */
  const char *again; /* the optimizer that now minimizes again in this body; else NULL */
  uint32_t n_minimized, n_every; /* `minimize` and `every` statements of this variant so far */
  VEC(Counted) counted;          /* counts of each `every`; set in the variant in which all run */
  const Run *whole; /* the variant of this batch size in which every `every` runs; NULL: this one */
};

enum { MAX_SETTINGS = MAX_SIGNATURE + 2 }; /* inputs of an update, clip_norm, skip_above */
typedef struct SettingGroup {              /* a `group` clause */
  const char *key;                         /* "opt.group1" */
  bool own[MAX_SETTINGS]; /* the clause sets it; other settings are the optimizer's */
  Datum value[MAX_SETTINGS];
} SettingGroup;
struct Opt {
  const char *name;
  const Decl *decl;
  File *file;
  int index;          /* into Graph.optimizers */
  int64_t accumulate; /* bodies per step */
  GlobalState state;
  bool good;
  uint32_t n_settings;
  const char *setting[MAX_SETTINGS]; /* names, "lr": inputs of the update, clip_norm, skip_above */
  Datum value[MAX_SETTINGS];
  bool *only; /* for each parameter: a clause `only` takes it; NULL: no such clause */
  VEC(struct Opt *) without; /* what these update is left out */
  VEC(uint32_t) left_out;    /* parameters of its model that `only` does not take */
  uint32_t used;             /* bit i: `without` i leaves out a parameter of its model */
  VEC(SettingGroup) groups;  /* [i]: group i + 1 of the graph's optimizer */
  uint32_t updates;          /* `minimize` nodes in the block so far */
  uint32_t last;             /* number of its last `minimize` in the block, counted from 1 */
};

typedef struct Policy { /* a clause for a def of the library or an op of the job: policy.c */
  Datum op;
  OpPrecision class;
  Span span;
  const char *label; /* "policy(f32, relu)" */
} Policy;

typedef struct JobPin { /* `autocast(f32, "net.norm")` in `precision`: pins.c */
  const Stmt *clause;
  RegionKind kind;
} JobPin;

typedef struct Level { /* `precision O2`: level.c */
  const char *name;
  RegionKind kind;   /* precision of the model's numbers: f16 or f32 */
  RegionKind region; /* region of the job; off if the level casts the whole model */
  int number;
} Level;
enum { LEVEL_COUNT = 4 };
extern const Level levels[LEVEL_COUNT]; /* O0 to O3 */

typedef struct Sums { /* an `accumulate` for a def of the library: accumulate.c */
  Datum op;
  bool wide;
} Sums;

typedef struct Judged { /* a value of which lower or higher numbers are better: mode.c */
  Value value;
  ampc_mode mode;
} Judged;

struct Lower {
  Compile *c;
  Graph *g;
  Arena *arena;
  struct Meanings *meanings; /* meaning.h: records; NULL: none are kept */
  File *job, *library;
  VEC(File *) files;
  VEC(BuiltinFunction) functions; /* names that have been looked up */
  NameIndex functions_index;
  VEC(Model) models;
  VEC(Opt *) optimizers;
  NameIndex known_index, settings_index; /* indexes of c->settings and of g->settings */
  VEC(struct Plateau) plateaus;          /* copied to g->plateaus when their metrics are found */
  VEC(Span) call_sites;                  /* places of calls of synthetic() */
  VEC(Policy) policies;
  VEC(Sums) sums;
  VEC(Judged) judged; /* values of functions with a mode; mode: of the function that runs */
  ampc_mode mode;
  VEC(JobPin) pins;
  const Level *level; /* the level in `precision`; NULL: no level */
  DType store;        /* `params(d)`: stored type of parameters without a type of their own */
  Cursor at;
  Instance *building; /* the module whose body is running; NULL: no module */
  Run *run;           /* NULL: outside of blocks */
  Scan *scan;         /* the innermost loop; NULL: no loop */
  uint16_t job_region;
  bool training;
  Span averages;          /* of the call of `.ema()` that is being elaborated; end 0: none */
  uint32_t in_backward;   /* nesting depth of backward bodies of ops of the job */
  uint32_t in_jvp;        /* nesting depth of calls of jvp() */
  bool in_source;         /* the source of a block is being evaluated */
  Look *look;             /* in `amp repl`: the samples that the source reads; else NULL */
  Sizes *sizes;           /* sizes of the dims of the job */
  bool broken_consts;     /* a const has no value, so any module may lack members */
  bool misread;           /* the job has syntax errors, so statements may be missing */
  bool broken;            /* a model lacks members; messages about missing members are suppressed */
  bool in_precision;      /* a clause of `precision` is being evaluated */
  const Model *loading;   /* the model whose `load` is being evaluated; else NULL */
  Opt *settings_of;       /* the optimizer whose settings are being evaluated; else NULL */
  bool steps_asked;       /* these settings have read the number of steps */
  int64_t param_elements; /* elements of all parameters so far */
  uint32_t depth;         /* nesting depth of calls */
  uint32_t global_depth;  /* nesting depth of declarations that are being evaluated */
  uint32_t stack;         /* nesting depth of expressions and statements */
  uint32_t work;          /* work done so far; at most MAX_WORK */
  uint32_t expressions;   /* expressions evaluated so far */
  Span dropped;           /* the last expression that is a statement: its value is not used */
  const struct Expr *asked; /* the last call or attribute whose name was looked up */
  bool stopped;             /* a limit was exceeded: elaboration stops, without further messages */
  /* watch.c: the value of the watched metric or layer; D_absent: no value */
  Datum watched;
  Instance *inside; /* the innermost module whose code runs; inside_call: its call */
  Span inside_call;
};
