/* The graph: all operations of a job, as plain nodes in one array.
 *
 * Array order is execution order: inputs stand before their users, and effects (gradient
 * accumulation, updates, metrics) happen at their position. Nodes of all blocks (train, eval, each
 * batch size) share the array, but a node never refers to a node of another block. A pass that
 * inserts nodes builds a new array (ir_rewrite_*), so indices change between passes, never inside
 * one.
 *
 * Note [real64]
 * If options.real64 is set, every f32 is a double, in buffers and in arithmetic, in the compiler
 * and in the kernels (`real`). Then central differences are precise enough to verify gradients.
 * Only tests use it. Apart from ir_dtype_size(), only the kernels' prelude, the texts of own ops,
 * matrix products and convolutions depend on the option. */
#pragma once
#include "compiler/base/names.h"
#include "compiler/base/target.h"
#include "ampc_commands.h"
#include "declared.h"

/* Nodes that one command computes; pass fuse forms the groups. groups[0] is unused.
 *
 * Note [parts]
 * One launch may do the work of several kernels. Each of these kernels is a part with its own
 * loops. Parts that depend on no other part come first. All blocks run them, in any order; a part
 * that needs only one block runs on one block. Parts that depend on the first ones come next, from
 * index `last` on. The block that finishes last runs these alone, so they must be small. If
 * `in_turn` is set, the launch has one block, which runs all parts in order. The threads of a block
 * synchronize before a part that reads what another part has stored. A value that another part
 * reads is stored in memory, as between kernels. */
typedef struct Group {
  Value *nodes; /* in execution order */
  uint32_t n;
  Value anchor; /* node that determines the kernel (row, gemm, file ..); 0: elementwise, or parts */
  ampc_ref workspace;  /* pass memory: scratch of a matrix product */
  struct Group *parts; /* Note [parts]; NULL: the group is one kernel */
  uint32_t n_parts;
  uint32_t last; /* index of the first part that the last block runs alone; n_parts: none */
  bool in_turn;
  bool meets; /* if this is a part: threads synchronize before it */
} Group;

typedef VEC(Node) Nodes;
struct Graph {
  Nodes nodes;  /* nodes.at[0] is a dummy */
  Nodes spare;  /* memory for the next rewrite: the nodes before the last one */
  Value *moved; /* where the last rewrite moved these nodes: Rewrite.map; NULL: there was none */
  VEC(Region) regions;
  VEC(Loop) loops;
  VEC(Widened) widened; /* pass precision */
  VEC(Layer) layers;
  NameIndex layer_index;
  VEC(Parameter) params;
  VEC(ampc_alias) aliases; /* further names of tied parameters */
  const char *adapter;     /* as in ampc_program */
  VEC(ampc_load) loads;
  VEC(Optimizer) optimizers;
  int64_t elements; /* total number of elements of the values that pass lower has created */
  VEC(Setting) settings;
  VEC(ampc_plateau) plateaus;
  VEC(Metric) metrics;
  VEC(Output) outputs;
  VEC(Probe) probes; /* pass probe */
  VEC(ampc_check) checks;
  VEC(BlockInfo) blocks;
  VEC(ampc_source) sources;
  VEC(Group) groups;
  struct Command *commands; /* pass commands: one for each group (compiler/command/command.h) */
  const char *classes;      /* as in ampc_program; "": losses distinguish different ones */
  const char *columns;      /* as in ampc_program */
  ampc_scaler_desc scaler;
  const char *precision; /* the word of the job's precision clause: "f16" */
  bool tf32;             /* f32 products round their operands to tf32 in every region */
  bool fewest_casts;     /* free ops run in 16 bits if casts then move fewer bytes */
  bool *wide;            /* for each op: `accumulate` makes its sums f64; NULL: false for all */
  uint8_t *policy;       /* for each op: 1 + OpPrecision of a `policy`; 0, NULL: no policy */
  uint64_t seed;
  DType weights;          /* AMPC_BF16: weights without f32 masters; AMPC_F32: masters */
  DType moment_type;      /* of the optimizers: AMPC_F32, AMPC_BF16; AMPC_U8: codes, Note [codes] */
  Rounding rounds;        /* how updates round bf16 weights */
  Rounding moment_rounds; /* how they round bf16 moments */
  int64_t moments;        /* elements of each moment that a member has; pass memory */
  ampc_exchange_mode exchange; /* how members sum gradients */
  uint32_t members; /* that train together: Note [samples] in passes/members.c; 1: no others */
  uint32_t n_streams;
  uint16_t n_checkpoints;
  uint32_t facts; /* bits IR_SHAPED ..: what holds after the passes so far, for ir_check() */
};

enum {
  IR_SHAPED = 1,
  IR_TYPED = 2,
  IR_DIFFED = 4,
  IR_LAID = 8,
  IR_FUSED = 16,
  IR_PLACED = 32,
  IR_COMMANDS = 64,
  IR_PLANNED = 128
};

/* ---- building ---- */

/* Fields that every append copies to the new node. Passes set them from the node at work. */
typedef struct Cursor {
  uint16_t block, region;
  Span span;
  const char *layer;
  Value origin, after;
  uint8_t why;
  uint16_t loop; /* the innermost loop that may contain a new node */
} Cursor;

/* Creates an empty graph for c, with node 0, region 0 and group 0. */
Graph *ir_create(Compile *c);

/* Appends a node, runs its shape rule (which sets dims and dtype) and returns it. Returns value 0
 * if the rule has reported a user's mistake. Attributes that `attrs` does not name get their
 * defaults; NULL names none. Keep Values: a Node * becomes invalid when the array grows. */
Value ir_append(Compile *c, const Cursor *at, OpKind op, const Value *in, uint32_t n_in,
                const NamedAttr *attrs);
/* Like ir_append(), but with all attributes, in the order of the signature. */
Value ir_append_values(Compile *c, const Cursor *at, OpKind op, const Value *in, uint32_t n_in,
                       const Attr *values);
/* Appends a node of an own op, which has no attributes. `row` takes the place of a row of the op
 * table. */
Value ir_append_own(Compile *c, const Cursor *at, OpKind op, const struct OpInfo *row,
                    const Value *in, uint32_t n_in);
/* Each returns a list of attributes in the arena. The lists are: `shape`; axis0, axis1, .. of
 * permute; the attributes of n that `op` also has. */
const NamedAttr *ir_shape_attrs(Compile *c, const int64_t *dim, uint32_t rank);
const NamedAttr *ir_axis_attrs(Compile *c, const uint32_t *axes, uint32_t n);
const NamedAttr *ir_shared_attrs(Compile *c, const Node *n, OpKind op);
/* Sets the attribute `shape` of a node to these sizes. Their number is the rank of the node. */
void ir_set_shape(Node *n, const int64_t *dim);
/* Writes the attribute `shape` of n to `dim` and returns the rank. */
uint32_t ir_shape_of(const Node *n, int64_t dim[MAX_RANK]);
/* Returns the input axis that becomes axis i of n. n has T_permutes. */
uint32_t ir_permuted_axis(const Node *n, uint32_t i);
/* Runs the shape rule on a node that is complete except for dims, dtype and weak. Returns false
 * after a message if the rule rejects the node. */
bool ir_infer(Compile *c, Node *n);

static inline Node *ir_node(const Graph *g, Value v)
{
  return &g->nodes.at[v.id];
}
static inline Node *ir_in(Compile *c, const Node *n, uint32_t i)
{
  return &c->graph->nodes.at[n->in[i].id];
}
/* Returns the cursor for a node at n's position with the reason `why`. */
Cursor ir_cursor_at(const Node *n, WhyKind why);
Cursor ir_cursor_like(const Node *n); /* for a node that extends n: copies origin and reason, too */
Cursor ir_cursor_of(const Graph *g, Value v); /* ir_cursor_like() of v's node */

/* ---- loops: Note [loops] ---- */

/* True if loop `inner` is `outer` or inside of it. Loop 0, the whole body, contains all loops. */
bool ir_loop_within(const Graph *g, uint16_t inner, uint16_t outer);
uint16_t ir_add_loop(Compile *c, Loop loop);

/* ---- rewriting: for each node of the old array: copy it, or add other nodes instead ---- */
typedef struct Rewrite {
  Compile *c;
  Node *old; /* the array before the rewrite; an old_id below is an index into it */
  uint32_t n_old;
  Value *map; /* old id -> new value; 0 until done */
} Rewrite;
void ir_rewrite_begin(Rewrite *r, Compile *c);
/* Adds a copy of the old node whose inputs are mapped, and sets map[old_id] to it. */
Value ir_rewrite_copy(Rewrite *r, uint32_t old_id);
/* Returns a copy of the old node with mapped inputs, which the caller may change and then add. */
Node ir_rewrite_mapped(Rewrite *r, uint32_t old_id);
/* Adds *n and sets map[old_id] to the new node. */
Value ir_rewrite_add(Rewrite *r, uint32_t old_id, const Node *n);
/* Removes the nodes that no effect and no output needs. */
void ir_drop_dead(Compile *c);

/* ---- facts ---- */
int64_t ir_elements(const Node *n);
int64_t dims_product(const int64_t *dim, uint32_t rank);
int64_t ir_dtype_size(const Compile *c, DType d);
int64_t ir_bytes(const Compile *c, const Node *n);
int64_t
ir_row(const Node *n); /* elements from one row of the last axis to the next: Note [pitch] */
int64_t ir_room(const Node *n); /* ir_elements() with the gaps between rows */
int64_t ir_room_bytes(const Compile *c, const Node *n);
#define dtype_is_float ampc_is_float
bool dtype_is_integer(DType d);        /* i32, i64 or u8; false for bool */
DType dtype_promote(DType a, DType b); /* PyTorch's table for two tensors with dimensions */
bool ir_same_dims(const Node *a, const Node *b);
/* The dims of a node of images, independent of its layout. */
typedef struct ImageDims {
  int64_t n, c;
  uint32_t spatial;               /* number of axes of one image: 1 to 3 */
  int64_t size[AMPC_MAX_SPATIAL]; /* size along each of these axes; the last is the width */
} ImageDims;
ImageDims ir_image_dims(const Node *n);
/* Writes the dims of images with sizes `d` in the given layout to `dim`. Returns the rank. */
uint32_t ir_set_image_dims(const ImageDims *d, Layout layout, int64_t dim[MAX_RANK]);
int64_t ir_pixels(const ImageDims *d); /* pixels of one image */
/* Writes the sizes of a parameter to `dim`, in the order of its memory. Returns its layout. */
Layout ir_param_dims(const Parameter *p, int64_t dim[MAX_RANK]);
bool ir_meets_floats(const Graph *g, const Node *n); /* true if an input or the result is a float */
/* Returns a region that differs from `region` at most in its sums: f64 if `wide` is true, else f32.
 * The result is `region` itself, an earlier copy of it, or a new copy. */
uint16_t ir_region_sums(Compile *c, uint16_t region, bool wide);
/* True if n, a product, rounds its f32 operands to tf32. */
bool ir_is_tf32(const Compile *c, const Node *n);
/* Returns how many entries of STATE the first n metrics take in all. */
uint32_t ir_metric_slots(const Graph *g, uint32_t n);
#define ir_dtype_name ampc_dtype_name
const char *ir_dims_text(Compile *c, const Node *n); /* "[32, 784]" */
const char *ir_sizes_text(Arena *a, const int64_t *dim, uint32_t rank);
/* Returns the periods whose statements run as "every 2 and 3", with `gap` between the words.
 * Returns "" if no period fires. */
const char *ir_fires_text(Arena *arena, const int64_t *period, uint32_t n, uint32_t fires,
                          const char *gap);
/* Returns a text for a block: "train, batch 32, every 5", or the name of an infer block. */
const char *ir_block_text(Compile *c, uint32_t block);
const char *ir_type_text(Compile *c, const Node *n); /* "f16[32, 784]" */
const char *ir_number_text(Compile *c, double v);    /* reads as v: "0.1", "1.0", "-1e9" */
/* Returns the types of an op that differ from its stored type: "; computes in f32, sums in f64". */
const char *ir_types_text(Compile *c, const Node *n);
const char *ir_why_text(Compile *c, const Node *n); /* "relu has the type of its inputs" */

/* Prints the text of --emit=graph and --dump-after. One node a line:
 *   %3 = softmax f32[32, 10] %2 dim=1    # 3:35 softmax runs in f32: no `precision` clause
 * If `tables` is set, tables (parameters, regions, blocks) follow as comments. */
void ir_print(Compile *c, Text *out, bool tables);
/* Aborts with a message and a dump if the graph breaks a rule that must hold after pass `pass`. */
void ir_check(Compile *c, const char *pass);
/* Reports a bug of the compiler that pass `pass` has caused or found. Prints the graph, node v and
 * its line in the job, then aborts. Release builds also abort. */
_Noreturn void ir_bug(Compile *c, const char *pass, Value v, const char *rule);
