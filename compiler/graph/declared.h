/* What the graph knows of a job beside nodes: parameters, optimizers, settings, metrics, blocks,
 * and what is to be said of them. */
#pragma once
#include "node.h"

typedef struct Widened { /* operations that an f32 parameter makes f32: W406 */
  int64_t param;
  uint32_t count;
  Span span; /* of the first */
} Widened;

typedef struct Layer { /* a module of a model; its name stands first for NameIndex */
  const char *name;    /* "net.fc1", as nodes have it; "net" for the model itself */
  const char *model;   /* "net" */
  const char *type;    /* "Linear" */
} Layer;

typedef struct Parameter {
  const char *path, *model; /* "fc1.weight", "net" */
  bool buffer, frozen;
  DType dtype; /* storage: f32 unless .to(d) or a buffer's dtype */
  uint8_t rank;
  int64_t dim[MAX_RANK];
  ampc_init init;
  int of;             /* of a share: the parameter that it is of; else -1. Note [shares] */
  int optimizer;      /* index into Graph.optimizers, -1: none */
  uint32_t group;     /* index into the optimizer's groups */
  uint32_t copies;    /* pass memory: bit d: a working copy of type d is used */
  bool channels_last; /* pass layout: how it lies in every space; `dim` is the language's */
  int64_t offset;     /* elements of MASTER, or bytes of BUFFER; pass memory */
  Span span;
} Parameter; /* those that are shares stand behind all others */

typedef enum OptimizerKind {
#define AMPC_OPTIMIZER(name, ...) OPT_##name,
#include "optimizers.def"
  OPT_COUNT
} OptimizerKind;
/* Parameters with the same settings, updated by one kernel. Settings are inputs of the `minimize`
 * node: those of each group in the order of the update op's inputs, then clip_norm. Flags and
 * moments are as optimizers.def has them. */
typedef struct ParamGroup {
  uint32_t moments, flags; /* bits: moment i + 1 is kept, flag i is set */
  uint32_t settings;       /* the group whose settings it has: itself, but of shares */
  bool shared;             /* its parameters are shares, Note [shares] in shares.h */
  int64_t first, count;    /* elements of GRAD and the moments; pass memory */
  int64_t master;          /* the first one of MASTER: `first`, but of shares */
} ParamGroup;
typedef struct Optimizer {
  const char *name;
  OptimizerKind kind;
  VEC(ParamGroup) groups; /* the first has what no `group` clause names; those of shares are last */
  bool clip;              /* clip_norm follows the groups' settings */
  bool ema;               /* averages of its weights are kept; eval and infer blocks read them */
  int64_t accumulate;     /* bodies of a step */
  uint32_t updates;       /* most that a step of some block takes */
  Span span;
  int64_t first, count; /* elements of GRAD and the moments; pass memory */
} Optimizer;

typedef struct Setting { /* a number that stays data: changing it recompiles nothing */
  const char *name;      /* "opt.lr" */
  double value;
  ampc_domain domain; /* what --set may make of it */
  uint64_t steps_of;  /* bit i: it is how many steps block i takes, with those of the other bits */
  int64_t every;      /* of these steps it counts each so-manieth */
  Span span;
} Setting;

typedef struct Metric {
  const char *name;
  uint16_t block; /* variants of a block share the metrics of the first */
  bool is_loss;
  ampc_metric_kind kind;
  uint32_t statistics; /* as in ampc_metric_desc */
} Metric;

typedef struct Output { /* of an infer block */
  const char *name;
  uint16_t block;
  Value value; /* its `output` node */
} Output;

/* What pass probe looks at: a value, or what a step does to a parameter. */
typedef enum ProbeKind {
  PROBE_value,    /* of a node, in forward or backward */
  PROBE_weight,   /* a parameter before the step */
  PROBE_gradient, /* a parameter's, as the optimizer finds it: times the loss scale */
  PROBE_update,   /* what the step adds to a parameter */
  PROBE_scale     /* the loss scale that an optimizer's gradients are times */
} ProbeKind;

typedef struct Probe {
  ProbeKind kind;
  Node of;        /* the node as it was when the pass looked: later ones may take it apart */
  uint32_t param; /* of all kinds but PROBE_value: index into Graph.params */
  Value kept;     /* its `probed` node, whose place has i32[parts, RANGE_FIELDS] */
  uint32_t scale; /* of PROBE_gradient: the probe of its scale, + 1; 0: there is no scaler */
  uint32_t *in;   /* of each of `of.n_in` inputs the probe, + 1; 0: nobody looks at that one */
} Probe;

/* A compiled block: one variant of a train or eval, or an infer. Variants are its batch sizes, each
 * with every choice of `every` that comes. */
typedef struct BlockInfo {
  ampc_block_kind kind;
  const char *name;
  Span span;
  int64_t batch;
  int variant_of; /* -1, or index of the block whose variant this is */
  bool remainder; /* a smaller batch, the last of an epoch */
  uint32_t fires; /* bit i: what stands in `every period[i]` is in it */
  uint32_t n_periods;
  int64_t period[AMPC_MAX_PERIODS]; /* rising; known when all variants are elaborated */
  int64_t epochs, max_steps, every, log, save_every; /* 0: not given */
  int64_t accumulate; /* bodies of a step: that of the optimizers that train there; else 1 */
  int64_t early_stop; /* evaluations without a better one after which it ends; 0: not given */
  int64_t batches;    /* of an epoch; 0: the number of samples is not known */
  bool shuffle, drop_last;
  const char *save, *resume; /* NULL: not given */
  const char *call;          /* of an infer block: its name in the job, without sizes */
  uint32_t n_sizes;
  ampc_dim_size size[AMPC_MAX_SIZES];
  uint32_t first_source, n_sources;
  int64_t work_bytes;           /* pass memory */
  uint32_t in_program, variant; /* pass plan: its block there, and which variant of it this is */
} BlockInfo;
