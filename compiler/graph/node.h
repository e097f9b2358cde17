/* A node of the graph, and the regions and loops that it stands in. */
#pragma once
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
