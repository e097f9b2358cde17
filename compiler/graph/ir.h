/* The graph: what a job computes, as plain nodes in one array.
 *
 * Order in the array is execution order: inputs stand before their users, and effects (gradient
 * accumulation, updates, metrics) happen where they stand. Nodes of all blocks (train, eval, each
 * batch size) share the array; a node never refers to another block's. A pass that inserts nodes
 * builds a new array (ir_rewrite_*), so indices change between passes, never inside one.
 *
 * Note [real64]: with options.real64 every f32 is a double, in buffers and in arithmetic, here
 * and in the kernels (`real`). Central differences are then exact enough to prove gradients. Only
 * tests use it; nothing but ir_dtype_size, the kernels' prelude and the matrix product knows. */
#pragma once
#include "compiler/base/names.h"
#include "compiler/base/target.h"
#include "compiler/diag/diag.h"
#include "runtime/plan/types.h"

/* MAX_ATTR: what a gradient of a convolution over three axes needs: three times stride, padding,
 * dilation and size, and groups. */
enum { MAX_RANK = AMPC_MAX_RANK, MAX_ATTR = 13 };
/* The result of grad_norm is [GRAD_NORM_PARTIALS, 2]: from each block of its kernel the sum of
 * squares and a flag, not 0 where a gradient is not finite. */
enum { GRAD_NORM_PARTIALS = 256 };

typedef enum OpKind {
#define AMPC_OP(name, ...) OP_##name,
#include "ops.def"
  OP_COUNT
} OpKind;

typedef ampc_dtype DType;

typedef struct Value { /* index into Graph.nodes; 0 is "none" */
  uint32_t id;
} Value;

typedef union Attr {
  int64_t i; /* ATTR_int, bool, axis, axes (bit mask), dtype; indices into the graph's tables */
  double f;  /* ATTR_float */
} Attr;

typedef struct NamedAttr { /* an attribute of a node to be made */
  const char *name;        /* NULL ends a list */
  Attr value;
} NamedAttr;
/* ATTRS({"dim", {.i = 1}}, {"eps", {.f = 1e-5}}): a list for ir_append. */
#define ATTRS(...) ((const NamedAttr[]){__VA_ARGS__, {NULL, {0}}})

/* Why a node has its type; with the node's region it makes the text of dumps and --explain. */
typedef enum WhyKind {
  WHY_none,     /* not decided yet (before pass precision) */
  WHY_fixed,    /* the op gives it: comparisons, indices, counters, cast as written */
  WHY_asked,    /* .to(d) or dtype=d in the text */
  WHY_storage,  /* a parameter, buffer or source: its stored type */
  WHY_low,      /* class low in a 16-bit region */
  WHY_f32,      /* class f32 in a 16-bit region */
  WHY_promote,  /* class promote: widest input */
  WHY_follow,   /* class none: types of its inputs */
  WHY_region,   /* region f32 or tf32: everything is f32 */
  WHY_off,      /* region off: types of its inputs */
  WHY_own,      /* `cast` of an op of the job */
  WHY_cast_for, /* a cast that pass precision added: the reason is that of its user */
  WHY_forward,  /* a backward node: the type forward ran in */
  WHY_state     /* optimizer, scaler and metric arithmetic: f32 */
} WhyKind;

/* Channels last: dims and attributes are those of [n, spatial.., c], which lies in row-major order.
 * Only pass layout makes such nodes; a shape rule of images gives the layout of its input on. */
typedef enum Layout { LAYOUT_row_major, LAYOUT_channels_last } Layout;

struct OpInfo;
typedef struct Node {
  OpKind op;
  DType dtype;
  uint8_t rank;
  uint8_t layout; /* Layout; pass layout */
  bool weak;      /* a number or made of numbers only: never raises a tensor's float type */
  uint8_t why;    /* WhyKind */
  uint16_t n_in, block, region;
  uint16_t loop; /* Note [loops]: index into Graph.loops; 0: it is computed once a body */
  Value *in;     /* in the arena; {0} where an optional input is absent */
  int64_t dim[MAX_RANK];
  Attr attr[MAX_ATTR]; /* in the order of the op's signature */
  Span span;           /* every rewrite copies it, so emitted code can always name a line */
  const char *name;    /* of the variable the value was bound to, or of the parameter; or NULL */
  const char *layer;   /* the module that made it: "net.fc1", "net" for the model; NULL: none did */
  Value origin;        /* forward node a backward node came from; 0 for forward nodes */
  Value after;     /* pass recompute: it is computed later than this one, which it does not read */
  uint32_t stream; /* random ops: fixed at lowering, kept by clones and by the backward node */
  uint32_t group;  /* pass fuse: index into Graph.groups; 0 for none */
  uint32_t part;   /* pass fuse: which part of the group, Note [parts] */
  bool folded;     /* pass fuse: a cast or expand that its readers do as they load */
  ampc_ref place;  /* pass memory: where the bytes are */
  Value over;      /* pass memory: the dying input whose bytes it takes, or 0 */
  const struct OpInfo *row; /* of an op of the job, own.h; NULL: that of the table */
} Node;

/* A part of the program with one precision: `precision`, autocast(..) { }, a pinned instance. */
typedef enum RegionKind {
  REGION_f32,
  REGION_tf32,
  REGION_off,
#define REGION(KIND, name, ...) REGION_##name,
  AMPC_NARROW_FLOATS(REGION)
} RegionKind;
/* In which ops of class low compute there; f32: in no narrow type. */
DType region_low(RegionKind kind);
typedef struct Region {
  RegionKind kind;
  uint16_t parent;
  bool no_grad;        /* nothing inside is differentiated */
  bool wide;           /* `accumulate(f64, ..)`: op_is_wide says of which nodes that is more */
  Span span;           /* the clause that made it */
  const char *label;   /* "precision f16", "autocast(f32)", "pin f32 on head" */
  uint16_t sums_of;    /* the region that it is but for `wide`; 0: made for something else */
  uint16_t checkpoint; /* which call of checkpoint() made the nodes, from 1; 0: none */
} Region;              /* regions[0]: f32, no clause */

/* Note [loops]
 * A `scan` is a loop of the program: its nodes stand in the one array as all others do, with the
 * number of their loop, and are computed `count` times. What crosses its border are four ops:
 *   carry(initial)  before the loop: what is carried, as each iteration finds it
 *   next(carry, x)  in the loop, at its end: what the next iteration finds; behind the loop, what
 *                   the last one has left
 *   turn(xs)        in the loop: the slice of xs that is this iteration's, along axis 0
 *   stack(x)        in the loop: x of this iteration becomes a slice; behind the loop, all of them
 * So a node reads what is computed in its own loop or in one around it, of others only `next` and
 * `stack`, and no edge leads back. A node stands as far outside as its inputs allow (ir_append):
 * what does not change from iteration to iteration is computed once. Nothing random and no effect
 * stands in a loop; random numbers are drawn before it, for all iterations. Backward of a loop is a
 * loop of its own in the other direction (`of`); what it reads of forward's is stacked
 * (passes/loop_gradient.c). Pass fuse adds `scan` and `scan_end` around the nodes of a loop; pass
 * plan makes a command of them. */
typedef struct Loop {
  int64_t count;
  bool reversed;   /* iteration i has slice count - 1 - i */
  uint16_t parent; /* the loop around it; 0: none */
  uint16_t of;     /* the loop whose backward it is; 0: none */
  uint16_t back;   /* the last one made of it; 0: none */
  Span span;
} Loop; /* loops[0] is unused */

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

/* Pass fuse: nodes that one command computes. groups[0] is unused.
 *
 * Note [parts] A launch may do the work of several kernels, each with loops of its own: `parts`.
 * Parts that wait for no other one are done by all blocks in any order, those with work for one
 * block alone each in a block of its own. What waits for them (parts from `last` on) is left to the
 * block that is done last, so it must be little. Or (`in_turn`) the launch is one block. The
 * threads of a block meet before a part that reads what another has stored. A value that another
 * part reads lies in memory as if it were another kernel's. */
typedef struct Group {
  Value *nodes; /* in execution order */
  uint32_t n;
  const char *name;   /* command_name(), from the first time that one is asked for */
  Value anchor;       /* the row, gemm or file node in it; 0 for a pure map group, or for parts */
  ampc_ref workspace; /* pass memory: scratch of a matrix product */
  uint32_t kernel;    /* pass kernels: the earlier group whose kernel it launches; 0: its own */
  uint32_t sharer;    /* pass kernels: the next group that launches the same one; 0: none */
  const struct KernelText *text; /* pass kernels: of its own one; or NULL */
  struct Group *parts;           /* of several kernels in one launch; NULL: it is one */
  uint32_t n_parts;
  uint32_t last; /* the first part that the last block does alone; n_parts: none */
  bool in_turn;
  bool meets; /* of a part: threads meet before it */
} Group;

typedef VEC(Node) Nodes;
struct Graph {
  Nodes nodes; /* nodes.at[0] is a dummy */
  Nodes spare; /* memory for the next rewrite */
  VEC(Region) regions;
  VEC(Loop) loops;
  VEC(Widened) widened; /* pass precision */
  VEC(Layer) layers;
  NameIndex layer_index;
  VEC(Parameter) params;
  VEC(ampc_alias) aliases; /* other names of tied parameters */
  VEC(ampc_load) loads;
  VEC(Optimizer) optimizers;
  int64_t elements; /* of all values that pass lower has made */
  VEC(Setting) settings;
  VEC(ampc_plateau) plateaus;
  VEC(Metric) metrics;
  VEC(Output) outputs;
  VEC(Probe) probes; /* pass probe */
  VEC(ampc_check) checks;
  VEC(BlockInfo) blocks;
  VEC(ampc_source) sources;
  VEC(Group) groups;
  ampc_scaler_desc scaler;
  const char *precision; /* word of the job's precision clause: "f16" */
  bool tf32;             /* products of f32 round their operands in every region */
  bool *wide;            /* by op: the job has its sums in f64; NULL: of none */
  uint8_t *policy;       /* by op: OpPrecision + 1 that the job gives it, 0: its own; NULL: none */
  uint64_t seed;
  uint32_t n_streams;
  uint16_t n_checkpoints;
  uint32_t facts; /* IR_SHAPED ...: what has been established; checked by ir_check */
};

enum {
  IR_SHAPED = 1,
  IR_TYPED = 2,
  IR_DIFFED = 4,
  IR_LAID = 8,
  IR_FUSED = 16,
  IR_PLACED = 32,
  IR_PLANNED = 64
};

/* ---- building ---- */

/* Where new nodes belong; every append copies it. Passes set it from the node they work on. */
typedef struct Cursor {
  uint16_t block, region;
  Span span;
  const char *layer;
  Value origin, after;
  uint8_t why;
  uint16_t loop; /* the innermost that a node may stand in */
} Cursor;

/* An empty graph for c: node 0, region 0 and group 0 are there. */
Graph *ir_create(Compile *c);

/* Appends a node, runs its shape rule (which sets dims and dtype) and returns it; value 0 when the
 * rule reported a user's mistake. Attributes that `attrs` does not name have their defaults; NULL:
 * all of them. A Node * dies when the array grows: keep Values. */
Value ir_append(Compile *c, const Cursor *at, OpKind op, const Value *in, uint32_t n_in,
                const NamedAttr *attrs);
/* The same with all attributes in the order of the signature: for code that walks signatures. */
Value ir_append_values(Compile *c, const Cursor *at, OpKind op, const Value *in, uint32_t n_in,
                       const Attr *values);
/* A node with a row of its own, which has no attributes. */
Value ir_append_own(Compile *c, const Cursor *at, OpKind op, const struct OpInfo *row,
                    const Value *in, uint32_t n_in);
/* Lists of attributes, in the arena: the attribute `shape`; axis0, axis1, ... of permute; those of
 * n that op has too. */
const NamedAttr *ir_shape_attrs(Compile *c, const int64_t *dim, uint32_t rank);
const NamedAttr *ir_axis_attrs(Compile *c, const uint32_t *axes, uint32_t n);
const NamedAttr *ir_shared_attrs(Compile *c, const Node *n, OpKind op);
/* The attribute `shape` of a node, whose sizes are those of its dims. */
void ir_set_shape(Node *n, const int64_t *dim);
uint32_t ir_shape_of(const Node *n, int64_t dim[MAX_RANK]); /* gives the rank */
/* Which axis of its input axis i of a T_permutes is. */
uint32_t ir_permuted_axis(const Node *n, uint32_t i);
/* Runs the shape rule on a node that is complete but for dims, dtype and weak. */
bool ir_infer(Compile *c, Node *n);

static inline Node *ir_node(const Graph *g, Value v)
{
  return &g->nodes.at[v.id];
}
static inline Node *ir_in(Compile *c, const Node *n, uint32_t i)
{
  return &c->graph->nodes.at[n->in[i].id];
}
Cursor ir_cursor_at(const Node *n,
                    WhyKind why); /* where n stands, for a node with another reason */
Cursor ir_cursor_of(const Graph *g,
                    Value v); /* to continue a node: its block, region, span, origin */

/* ---- loops: Note [loops] ---- */

/* Whether loop `inner` is `outer` or stands in it; all stand in 0. */
bool ir_loop_within(const Graph *g, uint16_t inner, uint16_t outer);
uint16_t ir_add_loop(Compile *c, Loop loop);

/* ---- rewriting: for v in the old array: copy it, or put other nodes in its place ---- */
typedef struct Rewrite {
  Compile *c;
  Node *old; /* the array as it was; ids of `old` below */
  uint32_t n_old;
  Value *map; /* old id -> new value; 0 until done */
} Rewrite;
void ir_rewrite_begin(Rewrite *r, Compile *c);
Value ir_rewrite_copy(Rewrite *r, uint32_t old_id); /* same node, inputs mapped; sets map */
Node ir_rewrite_mapped(Rewrite *r,
                       uint32_t old_id); /* the copy, to be changed before it is added */
Value ir_rewrite_add(Rewrite *r, uint32_t old_id, const Node *n); /* sets map */
/* What neither an effect nor an output needs goes. */
void ir_drop_dead(Compile *c);

/* ---- facts ---- */
int64_t ir_elements(const Node *n);
int64_t ir_dtype_size(const Compile *c, DType d);
int64_t ir_bytes(const Compile *c, const Node *n);
#define dtype_is_float ampc_is_float
bool dtype_is_integer(DType d);        /* i32 i64 u8, not bool */
DType dtype_promote(DType a, DType b); /* PyTorch's table for two tensors with dimensions */
bool ir_same_dims(const Node *a, const Node *b);
typedef struct ImageDims { /* of a node of images, whatever its layout */
  int64_t n, c;
  uint32_t spatial;               /* axes of one image: 1 to 3 */
  int64_t size[AMPC_MAX_SPATIAL]; /* along them; the last is the width */
} ImageDims;
ImageDims ir_image_dims(const Node *n);
/* Dims of images of these sizes in a layout, written to `dim`; gives the rank. */
uint32_t ir_set_image_dims(const ImageDims *d, Layout layout, int64_t dim[MAX_RANK]);
int64_t ir_pixels(const ImageDims *d); /* of one image */
/* The sizes of a parameter as it lies; gives its layout. */
Layout ir_param_dims(const Parameter *p, int64_t dim[MAX_RANK]);
bool ir_meets_floats(const Graph *g, const Node *n); /* an input or the result is a float */
/* The region itself, with sums of f64 or, `wide` false, f32. Equal ones are one. */
uint16_t ir_region_sums(Compile *c, uint16_t region, bool wide);
bool ir_is_tf32(const Compile *c, const Node *n); /* a product rounds its f32 operands first */
/* ampc_metric_slots of the first n metrics. */
uint32_t ir_metric_slots(const Graph *g, uint32_t n);
#define ir_dtype_name ampc_dtype_name
const char *ir_dims_text(Compile *c, const Node *n); /* "[32, 784]" */
/* "every 2 and 3", with `gap` between the words: what fires of a block's periods; "" if nothing. */
const char *ir_fires_text(Arena *arena, const int64_t *period, uint32_t n, uint32_t fires,
                          const char *gap);
/* "train, batch 32, every 5"; the name of an infer block. */
const char *ir_block_text(Compile *c, uint32_t block);
const char *ir_type_text(Compile *c, const Node *n); /* "f16[32, 784]" */
const char *ir_number_text(Compile *c, double v);    /* reads back as v: "0.1", "1.0", "-1e9" */
/* "; computes in f32, sums in f64": the types of an op that its stored one does not say. */
const char *ir_types_text(Compile *c, const Node *n);
const char *ir_why_text(Compile *c, const Node *n); /* "softmax is f32, by precision f16, 2:1" */

/* --emit=graph and --dump-after. One node a line:
 *   %3 = softmax f32[32, 10] %2 dim=1    # 3:35 softmax is f32
 * followed by tables (parameters, regions, blocks) as comments where `tables` is set. */
void ir_print(Compile *c, Text *out, bool tables);
/* Aborts with a message and a dump when the graph breaks a rule that holds after pass `pass`. */
void ir_check(Compile *c, const char *pass);
/* Reports a bug of the compiler that pass `pass` has made or found: prints the graph, node v and
 * its line in the job, then aborts. Release builds do so, too. */
_Noreturn void ir_bug(Compile *c, const char *pass, Value v, const char *rule);
