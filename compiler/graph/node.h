/* A node of the graph, and the regions and loops that nodes belong to. */
#pragma once
#include "compiler/diag/diag.h"
#include "runtime/plan/types.h"

/* MAX_ATTR: the gradients of a 3D convolution have the most attributes, 13: stride, padding,
 * dilation and a size for each of three axes, and `groups`. */
enum { MAX_RANK = AMPC_MAX_RANK, MAX_ATTR = 13 };
/* Op grad_norm returns [GRAD_NORM_PARTIALS, 2]. Each block of its kernel writes a sum of squares,
 * and a flag that is nonzero if a gradient is not finite. */
enum { GRAD_NORM_PARTIALS = 256 };
/* On a CPU, attention walks keys in steps of so many, and a decoder keeps so many together. */
enum { ATTENTION_BLOCK = 32 };

typedef enum OpKind {
#define AMPC_OP(name, ...) OP_##name,
#include "ops.def"
  OP_COUNT
} OpKind;

typedef ampc_dtype DType;

/* An index into Graph.nodes; 0: no node. */
typedef struct Value {
  uint32_t id;
} Value;

typedef union Attr {
  int64_t i; /* ATTR_int, bool, axis, axes (bit mask), dtype; indices into the graph's tables */
  double f;  /* ATTR_float */
} Attr;

/* An attribute of a node that is being created. */
typedef struct NamedAttr {
  const char *name; /* NULL ends a list */
  Attr value;
} NamedAttr;
/* ATTRS({"dim", {.i = 1}}, {"eps", {.f = 1e-5}}): a list for ir_append. */
#define ATTRS(...) ((const NamedAttr[]){__VA_ARGS__, {NULL, {0}}})

/* Why a node has its type. ir_why_text() combines it with the node's region to the reason that
 * dumps and --explain print. */
typedef enum WhyKind {
  WHY_none,     /* not decided yet (before pass precision) */
  WHY_fixed,    /* the op determines the type: comparisons, indices, counters; or no float */
  WHY_asked,    /* .to(d) or dtype=d in the text */
  WHY_storage,  /* a parameter, buffer or source: its stored type */
  WHY_low,      /* category low in a 16-bit region */
  WHY_f32,      /* category f32 in a 16-bit region */
  WHY_promote,  /* category promote: the widest type of its inputs */
  WHY_follow,   /* category none: the types of its inputs */
  WHY_fewest,   /* `fewest_casts`: 16 bits, because casts move fewer bytes */
  WHY_region,   /* region f32 or tf32: everything is f32 */
  WHY_off,      /* region off: the types of its inputs */
  WHY_own,      /* the `cast` clause of an own op */
  WHY_cast_for, /* a cast that pass precision added: its user has the reason */
  WHY_forward,  /* a backward node: the type that forward computes in */
  WHY_state     /* optimizer, scaler and metric arithmetic: f32 */
} WhyKind;

/* LAYOUT_channels_last: dims and attributes describe [n, spatial.., c], stored in row-major order.
 * Only pass layout creates such nodes. The shape rule of an image op copies the layout of its
 * input. */
typedef enum Layout { LAYOUT_row_major, LAYOUT_channels_last } Layout;

/* Element i of a random op has number i of its stream. If the samples of a batch are shared out to
 * members (pass members), the number is that of the same element in the whole batch:
 *   i + first sample * each + i / span * skip         (without the last term if span is 0) */
typedef struct Draws {
  int64_t each; /* elements from one sample to the next; 0: the numbers are i */
  int64_t span, skip;
} Draws;

struct OpInfo;
typedef struct Node {
  OpKind op;
  DType dtype;
  uint8_t rank;
  uint8_t layout; /* Layout; pass layout */
  bool weak; /* a number, or computed from numbers only: never widens the float type of a tensor */
  uint8_t why; /* WhyKind */
  uint16_t n_in, block, region;
  uint16_t loop; /* index into Graph.loops, Note [loops]; 0: computed once per body */
  Value *in;     /* in the arena; {0} where an optional input is absent */
  int64_t dim[MAX_RANK];
  Attr attr[MAX_ATTR]; /* in the order of the op's signature */
  Span span;           /* every rewrite copies it, so that emitted code can always name a line */
  const char *name;    /* name of the variable or parameter that holds the value; NULL: none */
  const char *layer;   /* the module that created it: "net.fc1", or "net", the model; NULL: none */
  Value origin;    /* the forward node that this backward node belongs to; 0 for forward nodes */
  Value after;     /* pass recompute: it runs after this node, which is not an input; or 0 */
  uint32_t stream; /* of a random op: set at lowering; clones and backward nodes keep it */
  Draws draws;     /* the same: which numbers of the stream it uses */
  uint32_t group;  /* pass fuse: index into Graph.groups; 0: no group */
  uint32_t part;   /* pass fuse: index into the group's parts, Note [parts] */
  bool folded;     /* pass fuse: a cast or expand that its readers apply when they load */
  ampc_ref place;  /* pass memory: where its bytes are */
  Value over;      /* pass memory: the input whose bytes the node reuses, or 0 */
  int64_t pitch;   /* pass memory: elements from row to row, with a gap; 0: no gaps, Note [pitch] */
  const struct OpInfo *row; /* the row of an own op, own.h; NULL: the op table has it */
} Node;

/* The precision of a region: a range of the job that has one precision, from a `precision` clause,
 * an autocast(..) { } or a pinned instance. */
typedef enum RegionKind {
  REGION_f32,
  REGION_tf32,
#define REGION(KIND, name, ...) REGION_##name,
  AMPC_NARROW_FLOATS(REGION) REGION_off,
  REGION_COUNT
} RegionKind;
extern const char *const region_kind_names[REGION_COUNT]; /* "f16" */
/* Returns the type in which ops of category low compute; f32 if the region has no 16-bit type. */
DType region_low(RegionKind kind);
typedef struct Region {
  RegionKind kind;
  uint16_t parent;
  bool no_grad;        /* no node inside is differentiated */
  bool wide;           /* inside `accumulate(f64, ..)`, for the nodes of op_is_wide() */
  Span span;           /* the clause that creates the region */
  const char *label;   /* "`precision f16`", "`autocast(f32)`", "pin f32 on head" */
  uint16_t sums_of;    /* the region that this one copies with the other `wide`; 0: no copy */
  uint16_t checkpoint; /* number of the checkpoint() call around the nodes, from 1; 0: none */
} Region;              /* regions[0]: f32, without a clause */

/* Note [loops]
 * A `scan` is a loop of the program. Its nodes are in the same array as all other nodes. Each such
 * node has the number of its loop and is computed `count` times. Four ops cross the border of a
 * loop:
 *   carry(initial)  before the loop: the carried value at the start of each iteration
 *   next(carry, x)  at the end of the loop: the carried value for the next iteration; after the
 *                   loop: the value that the last iteration leaves
 *   turn(xs)        in the loop: the slice of xs along axis 0 that belongs to this iteration
 *   stack(x)        in the loop: x of this iteration becomes a slice; after the loop: all slices
 * A node reads values of its own loop and of the loops around it. From other loops it reads only
 * `next` and `stack`. No edge leads backwards. ir_append puts a node as far outside as its inputs
 * allow, so a value that is the same in all iterations is computed once. A loop contains no effects
 * and no random ops: random numbers for all iterations are drawn before it. The backward of a loop
 * is a separate loop (`of`) in the opposite direction. The forward values that it reads are stacked
 * (passes/loop_gradient.c). Pass fuse adds `scan` and `scan_end` around the nodes of a loop. Pass
 * plan turns these into a command. */
typedef struct Loop {
  int64_t count;
  bool reversed;   /* iteration i reads slice count - 1 - i */
  uint16_t parent; /* the enclosing loop; 0: none */
  uint16_t of;     /* the forward loop, if this is its backward; 0: none */
  uint16_t back;   /* its newest backward loop, perhaps still being built; 0: none */
  Span span;
} Loop; /* loops[0] is unused */
