/* The state of pass lower. The pass is an interpreter that runs in the compiler:
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
  Span span;            /* of the call */
  const Native *native; /* that is called; else NULL */
} Args;

enum { ANY_NUMBER = 255 };
struct Native {
  const char *name;
  uint8_t least, most; /* arguments, by position */
  bool keys;           /* takes keyword arguments and sorts them out itself */
  bool internal;       /* written _name, in the layer library only */
  Datum (*run)(Lower *l, Args *args);
  /* what those that share a `run` differ in */
  double (*number)(double);
  int64_t value;
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
  const char *label; /* "policy(f32, relu)" */
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
