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
#include "declared.h"

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
                    WhyKind why);     /* where n stands, for a node with another reason */
Cursor ir_cursor_like(const Node *n); /* to continue a node: its block, region, span, origin */
Cursor ir_cursor_of(const Graph *g, Value v); /* likewise */

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
int64_t dims_product(const int64_t *dim, uint32_t rank);
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
const char *ir_sizes_text(Arena *a, const int64_t *dim, uint32_t rank);
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
