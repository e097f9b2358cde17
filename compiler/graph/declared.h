/* The tables of a graph: parameters, optimizers, settings, metrics, outputs, blocks; and notes for
 * messages. */
#pragma once
#include "node.h"

/* Operations that warning W406 reports: they run in f32 because of an f32 parameter. */
typedef struct Widened {
  int64_t param;
  uint32_t count;
  Span span; /* span of the first operation */
} Widened;

/* A module of a model. NameIndex requires the name as the first field. */
typedef struct Layer {
  const char *name;  /* "net.fc1", as in Node.layer; "net" for the model itself */
  const char *model; /* "net" */
  const char *type;  /* "Linear" */
} Layer;

typedef struct Parameter {
  const char *path, *model; /* "fc1.weight", "net" */
  bool buffer, frozen;
  bool fixed;   /* a frozen weight that is stored in 16 bits or fewer: `buffer` is set, too, Note
                   [fixed] */
  bool adapts;  /* belongs to an adapter, which `adapt` of the model adds */
  bool given;   /* as in ampc_param */
  bool decodes; /* state of a decoder: no file has it, Note [decode] in passes/decode/decode.c */
  bool trains;  /* `unfreeze` of the model names it */
  DType dtype;  /* storage: f32 unless .to(d) or a buffer's dtype */
  ampc_packing packing; /* with `fixed`: its storage instead, Note [packed] in types.h */
  uint8_t rank;
  int64_t dim[MAX_RANK];
  ampc_init init;
  int of;             /* if this is a share, Note [shares]: index of its parameter; else -1 */
  int optimizer;      /* index into Graph.optimizers; -1: no optimizer updates it */
  uint32_t group;     /* index into the optimizer's groups */
  uint32_t copies;    /* pass memory: bit d is set if some op reads a copy of type d */
  bool channels_last; /* pass layout: the layout in memory; `dim` keeps the language's order */
  int64_t offset;     /* pass memory: its place, in elements of MASTER or bytes of BUFFER */
  uint32_t measured;  /* as in ampc_param */
  Span standardizes;  /* a call outside of training that reads these statistics; empty: none */
  Span span;
} Parameter; /* shares follow all other entries */

/* True for a Buffer of the job, which is no weight. */
static inline bool param_is_state(const Parameter *p)
{
  return p->buffer && !p->fixed;
}

/* The space of a buffer. */
static inline ampc_space param_space(const Parameter *p)
{
  return p->decodes ? AMPC_CACHE : AMPC_BUFFER;
}

/* How an update rounds a new f32 value to bf16. kahan: to nearest, and the rounding error is kept
 * in RESIDUE, Note [residue] in runtime/state/param.c. */
typedef enum Rounding { ROUND_stochastic, ROUND_nearest, ROUND_kahan } Rounding;

typedef enum OptimizerKind {
#define AMPC_OPTIMIZER(name, ...) OPT_##name,
#define AMPC_VARIANT(name, ...)   OPT_##name,
#define AMPC_MEASURED(name, ...)  OPT_##name,
#define AMPC_MATRICES(name, ...)  OPT_##name,
#include "optimizers.def"
  OPT_COUNT
} OptimizerKind;
/* Parameters with the same settings, updated by one kernel. Settings are inputs of the `minimize`
 * node: first those of each group in the order of the update op's inputs, then clip_norm and
 * skip_above.
 * optimizers.def describes flags and moments. */
typedef struct ParamGroup {
  /* moments: bit i: the group keeps moment i + 1; flags: bit i: the group sets flag i. */
  uint32_t moments, flags;
  uint32_t settings;     /* the group whose settings it uses: itself, except for shares */
  int64_t slice, moment; /* pass memory: elements that a member updates, and the first of them in
                            the moments; without other members `count` and `first` */
  bool shared;           /* all its parameters are shares, Note [shares] in shares.h */
  bool logged;           /* --norms: a `minimize` has a metric for its norms */
  int64_t first, count;  /* range in GRAD and the moments, in elements; pass memory */
  int64_t master;        /* its first element in MASTER: at `first`, except for shares */
} ParamGroup;
typedef struct Optimizer {
  const char *name;
  OptimizerKind kind;
  VEC(ParamGroup) groups; /* [0]: parameters without a `group` clause; last: groups of shares */
  bool clip, skip; /* clip_norm, skip_above is given; these settings follow those of the groups */
  bool ema;        /* keeps averages of the weights, which eval and infer blocks read */
  int64_t accumulate; /* number of bodies per step */
  uint32_t updates;   /* the largest number of updates in one step of a block */
  Span span;
  int64_t first, count; /* range in GRAD and the moments, in elements; pass memory */
} Optimizer;

/* A number that a run reads from memory, so changing it needs no compilation. */
typedef struct Setting {
  const char *name; /* "opt.lr" */
  double value;
  ampc_domain domain; /* values that --set accepts */
  uint64_t steps_of;  /* bit i: the value counts the steps of block i; 0: it counts no steps */
  int64_t every;      /* with steps_of: the value is the number of these steps / every */
  Span span;
} Setting;

typedef struct Metric {
  const char *name;
  uint16_t block; /* the block's first variant; all variants of a block share metrics */
  bool is_loss;
  uint32_t kind;       /* ampc_metric_kind */
  uint32_t statistics; /* this and the next two: as in ampc_metric_desc */
  ampc_mode mode;
  const char *classes;
} Metric;

typedef struct Output { /* a result of an infer block */
  const char *name;
  uint16_t block;
  Value value; /* the `output` node */
} Output;

/* What pass probe observes: a value, or the effect of a step on a parameter. */
typedef enum ProbeKind {
  PROBE_value,    /* the value of a node, in forward or backward */
  PROBE_weight,   /* the value of a parameter before the step */
  PROBE_gradient, /* the gradient that the optimizer receives, times the loss scale */
  PROBE_update,   /* the change that the step adds to a parameter */
  PROBE_scale     /* the loss scale that an optimizer's gradients contain */
} ProbeKind;

typedef struct Probe {
  ProbeKind kind;
  Node of;            /* a copy of the node, because later passes may split the node */
  uint32_t param;     /* index into Graph.params; PROBE_value does not use it */
  Value kept;         /* the `probed` node; its place holds i32[parts, RANGE_FIELDS] */
  uint32_t optimizer; /* PROBE_update: the one that updates the parameter */
  uint32_t scale;     /* PROBE_gradient: 1 + index of the probe of its loss scale; 0: no scaler */
  uint32_t *in;       /* for each input of `of`: 1 + index of its probe; 0: not probed */
  const char *origin; /* backward: the name of the op whose gradient this is; else NULL */
  bool masked;        /* an input is an infinite constant of the job, such as the -inf of a mask */
} Probe;

/* A compiled block: one variant of a train or eval block, or an infer block. A train or eval block
 * has variants for each batch size and each combination of `every` statements that can run
 * together. */
typedef struct BlockInfo {
  ampc_block_kind kind;
  const char *name;
  Span span;
  int64_t batch;  /* samples in the body of a member */
  int64_t whole;  /* samples of all members together: the batch of the job */
  bool idle;      /* the member has none of these samples; `batch` is 1 */
  int variant_of; /* index of the block of which this is a variant; -1: it is no variant */
  bool remainder; /* a variant for the smaller last batch of an epoch */
  uint32_t fires; /* bit i: the statements of `every period[i]` run */
  uint32_t n_periods;
  int64_t period[AMPC_MAX_PERIODS]; /* ascending; known when all variants are elaborated */
  int64_t epochs, max_steps, every, log, save_every; /* 0: not given */
  int64_t accumulate; /* bodies per step, from the optimizers that train in this block; else 1 */
  int64_t early_stop; /* evaluations without improvement before training stops; 0: not given */
  int64_t batches;    /* batches per epoch; 0: the number of samples is not known */
  bool shuffle, drop_last;
  const char *balance;       /* name of the target whose classes are balanced; NULL: none */
  uint32_t balanced;         /* as ampc_block.balance */
  const char *save, *resume; /* NULL: not given */
  const char *call;          /* infer block: its name in the job, without sizes */
  uint32_t n_sizes;
  ampc_dim_size size[AMPC_MAX_SIZES];
  int64_t least[AMPC_MAX_SIZES], most[AMPC_MAX_SIZES], multiple[AMPC_MAX_SIZES]; /* of these dims */
  int64_t context; /* pass decode: as in ampc_block */
  bool carries;
  uint32_t first_source, n_sources;
  int64_t work_bytes; /* pass memory */
  /* Pass plan: in_program: index of the program's block; variant: index of its variant. */
  uint32_t in_program, variant;
} BlockInfo;
