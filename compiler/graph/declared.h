/* The tables of a graph: parameters, optimizers, settings, metrics, outputs, blocks; and notes for
 * messages. */
#pragma once
#include "node.h"

typedef struct Widened { /* operations that run in f32 because of an f32 parameter: W406 */
  int64_t param;
  uint32_t count;
  Span span; /* of the first operation */
} Widened;

typedef struct Layer { /* a module of a model; NameIndex needs the name as first field */
  const char *name;    /* "net.fc1", as in Node.layer; "net" for the model itself */
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
  int of;             /* of a share: index of its parameter; -1: no share. Note [shares] */
  int optimizer;      /* index into Graph.optimizers, -1: none */
  uint32_t group;     /* index into the optimizer's groups */
  uint32_t copies;    /* pass memory; bit d is set if some op reads a copy of type d */
  bool channels_last; /* pass layout: its layout in memory; `dim` is in the language's order */
  int64_t offset;     /* elements in MASTER, or bytes in BUFFER; pass memory */
  Span span;
} Parameter; /* shares stand after all others */

typedef enum OptimizerKind {
#define AMPC_OPTIMIZER(name, ...) OPT_##name,
#include "optimizers.def"
  OPT_COUNT
} OptimizerKind;
/* Parameters with the same settings, updated by one kernel. Settings are inputs of the `minimize`
 * node: first those of each group in the order of the update op's inputs, then clip_norm.
 * optimizers.def describes flags and moments. */
typedef struct ParamGroup {
  uint32_t moments, flags; /* bit i of each: it keeps moment i + 1; it sets flag i */
  uint32_t settings;    /* index of the group whose settings it uses: its own, except for shares */
  bool shared;          /* its parameters are shares, Note [shares] in shares.h */
  int64_t first, count; /* range in GRAD and the moments, in elements; pass memory */
  int64_t master;       /* the first element in MASTER: equals `first`, except for shares */
} ParamGroup;
typedef struct Optimizer {
  const char *name;
  OptimizerKind kind;
  VEC(ParamGroup) groups; /* first the parameters without a `group` clause, last groups of shares */
  bool clip;              /* has clip_norm, which follows the settings of the groups */
  bool ema;               /* keeps averages of its weights, which eval and infer blocks read */
  int64_t accumulate;     /* bodies per step */
  uint32_t updates;       /* the largest number of updates in one step of a block */
  Span span;
  int64_t first, count; /* range in GRAD and the moments, in elements; pass memory */
} Optimizer;

typedef struct Setting { /* a number that runs read from memory: a change needs no compilation */
  const char *name;      /* "opt.lr" */
  double value;
  ampc_domain domain; /* values that --set accepts */
  uint64_t steps_of;  /* bit i: the value includes the steps of block i; 0: it counts no steps */
  int64_t every;      /* such a value is the sum of these steps, divided by `every` */
  Span span;
} Setting;

typedef struct Metric {
  const char *name;
  uint16_t block; /* its first variant: all variants of a block share their metrics */
  bool is_loss;
  ampc_metric_kind kind;
  uint32_t statistics; /* as in ampc_metric_desc */
} Metric;

typedef struct Output { /* a result of an infer block */
  const char *name;
  uint16_t block;
  Value value; /* its `output` node */
} Output;

/* What pass probe observes: a value, or the effect of a step on a parameter. */
typedef enum ProbeKind {
  PROBE_value,    /* the value of a node, in forward or backward */
  PROBE_weight,   /* a parameter before the step */
  PROBE_gradient, /* the gradient that the optimizer receives, times the loss scale */
  PROBE_update,   /* the change that the step adds to a parameter */
  PROBE_scale     /* the loss scale that an optimizer's gradients contain */
} ProbeKind;

typedef struct Probe {
  ProbeKind kind;
  Node of;        /* a copy of the node, because later passes may split the node */
  uint32_t param; /* index into Graph.params; unused by PROBE_value */
  Value kept;     /* its `probed` node, whose place holds i32[parts, RANGE_FIELDS] */
  uint32_t scale; /* PROBE_gradient: index of the probe of its loss scale + 1; 0: no scaler */
  uint32_t *in;   /* for each input of `of`: index of its probe + 1; 0: not probed */
} Probe;

/* A compiled block: one variant of a train or eval block, or an infer block. A train or eval block
 * has variants for each batch size and each combination of `every` statements that can run
 * together. */
typedef struct BlockInfo {
  ampc_block_kind kind;
  const char *name;
  Span span;
  int64_t batch;
  int variant_of; /* -1, or index of the block that this is a variant of */
  bool remainder; /* for the smaller last batch of an epoch */
  uint32_t fires; /* bit i: includes the statements of `every period[i]` */
  uint32_t n_periods;
  int64_t period[AMPC_MAX_PERIODS]; /* ascending; known when all variants are elaborated */
  int64_t epochs, max_steps, every, log, save_every; /* 0: not given */
  int64_t accumulate; /* bodies per step, set by the optimizers that train there; else 1 */
  int64_t early_stop; /* evaluations without improvement before training stops; 0: not given */
  int64_t batches;    /* per epoch; 0: the number of samples is not known */
  bool shuffle, drop_last;
  const char *save, *resume; /* NULL: not given */
  const char *call;          /* infer block: its name in the job, without sizes */
  uint32_t n_sizes;
  ampc_dim_size size[AMPC_MAX_SIZES];
  uint32_t first_source, n_sources;
  int64_t work_bytes;           /* pass memory */
  uint32_t in_program, variant; /* pass plan: index of the program's block, and of its variant */
} BlockInfo;
