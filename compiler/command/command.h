/* What a group of nodes becomes: the pointers that its kernel takes, its geometry, its name; or the
 * description of a matrix product. Shared by passes memory and plan and by emit/, so that the
 * launch that the plan lists and the kernel that is printed always agree. */
#pragma once
#include "compiler/graph/ops.h"

typedef enum ArgRole {
  ARG_in,        /* read: a value from outside the group, or a scalar of STATE */
  ARG_out,       /* written: a value of the group that somebody else needs */
  ARG_state,     /* ampc_state * */
  ARG_optimizer, /* ampc_optimizer * of the op's own one */
  ARG_metric,    /* ampc_metric * */
  ARG_grad,      /* real *: the optimizer's range, or the parameter's slot for grad_accumulate */
  ARG_master,    /* real *: the optimizer's range; likewise below */
  ARG_moment1,
  ARG_moment2,
  ARG_moment3,
  ARG_ema,
  ARG_copy,    /* of the type of the copies */
  ARG_buffer,  /* of the parameter's type */
  ARG_kept,    /* likewise: the buffer as it was before the step */
  ARG_scratch, /* real *: room of an op of the job, own_scratch */
  ARG_stream   /* no pointer but a number, place.offset: which random numbers a node draws */
} ArgRole;

typedef struct KernelArg {
  ArgRole role;
  Value value;    /* ARG_in, ARG_out: the node that owns the bytes (aliases are looked through) */
  Value over;     /* ARG_out: the input that it is written over, element by element; or 0 */
  uint32_t index; /* ARG_optimizer, ARG_metric, ARG_buffer: in the graph's table */
  bool only_read; /* not ARG_in, and yet nothing is written */
  DType type;     /* of one element; floats of STATE are `float` even under Note [real64] */
  ampc_ref place;
} KernelArg;

typedef struct KernelArgs {
  KernelArg *at;
  uint32_t n;
} KernelArgs;

/* The node whose bytes v's are: looks through reshape, detach, output and what is folded. */
Value value_root(const Graph *g, Value v);
/* The node with the shape in which those bytes lie: that of v, before a folded expand. */
const Node *value_shape(const Graph *g, Value v);
/* The node in whose shape v is walked: v, or what an effect on elements reads. */
const Node *node_walked(const Graph *g, Value v);
/* An elementwise node whose operands have as many elements as it walks, or one: it needs no axes,
 * so a view of an operand under another shape makes no difference. */
bool reads_flat(const Graph *g, Value v);
/* Whether v reads its input k where it stands: element i for element i of what it walks. */
bool reads_in_order(const Graph *g, Value v, uint32_t k);
/* A parameter as eval and infer blocks read it where its optimizer keeps an average of it. */
bool reads_average(const Graph *g, const Node *param);
/* A cast of a parameter to 16 bits: no kernel, but the working copy that the optimizer writes. */
bool is_working_copy(const Graph *g, Value v);
/* Elements of the optimizer's or group's range that the kernel of n walks; -1: it walks none. */
int64_t node_range(const Graph *g, const Node *n);

/* Whether the vendor library runs the group, not a kernel of ours; whether it is a convolution. */
bool group_by_library(const Graph *g, uint32_t group);
bool group_convolves(const Graph *g, uint32_t group);

/* After pass memory. Order: inputs by first use, outputs in node order, then the state of random
 * ops. Ops with a template file of their own have the order of their code in ops.def. */
KernelArgs kernel_args(Compile *c, uint32_t group);
/* Those of a group that is one kernel, or of one of its parts; the same pointers are in both. */
KernelArgs part_args(Compile *c, const Group *part);
uint32_t same_argument(const KernelArgs *args, const KernelArg *a); /* its index; args->n: none */

/* No command of its own: its gradient was written by the product itself (accumulate), or it begins
 * or ends a loop. */
bool group_is_silent(const Graph *g, uint32_t group);

/* Where an operand lies in each iteration of the loop that the command stands in: v is what owns
 * the bytes; `written`: the command makes it. A slice of a sequence moves, all else lies still. */
ampc_operand value_operand(Compile *c, Value v, bool written);

/* A cast of 16 bits to f32: the same numbers. */
bool is_widening(const Graph *g, const Node *n);

/* The rows of a row op: axes [from, to) of input 0 are reduced; [outer, length, inner] is its
 * shape. */
typedef struct RowShape {
  uint32_t from, to;
  int64_t outer, length, inner;
  int64_t parts; /* channel statistics: the row is cut into so many, each with a result; else 0 */
  int64_t part_rows; /* of a part; without parts `length` */
  uint32_t widest;   /* elements that a thread takes at once, where they divide */
  bool alone;        /* one block does it, behind the others: Note [parts] */
  bool joins;        /* parts of a long sum, few enough for one block */
  bool loose;        /* the columns are no axes of input 0, whose elements [length, inner] counts */
} RowShape;
RowShape row_shape(const Graph *g, Value v);
/* Row op v gives one value a row, and its rows have length 1. */
bool row_is_flat(const Graph *g, Value v);

typedef struct Geometry {
  uint32_t grid, block;
} Geometry;
Geometry kernel_geometry(Compile *c, uint32_t group);
Geometry part_geometry(Compile *c, const Group *part); /* that one part of it asks for */
Geometry elements_geometry(int64_t n);                 /* CUDA, a thread an element */

/* ---- own.c: ops of the job ---- */

/* The tensors of its kernel, inputs and then outputs: the value that tensor i is, 0 for an output
 * that nobody reads; its type. */
Value own_tensor(const Graph *g, const Group *p, uint32_t i);
DType own_tensor_type(Compile *c, const Group *p, uint32_t i);
/* In the host text 16-bit tensors are floats, and outputs that nobody reads have no place: where
 * the elements of tensor i begin in the scratch, in f32; -1: they lie as they are. */
int64_t own_scratch_at(Compile *c, const Group *p, uint32_t i);
int64_t own_scratch(Compile *c, const Group *p); /* bytes of it */
Geometry own_geometry(Compile *c, const Group *p);

/* ---- ops whose kernels multiply in tiles (T_tiles) ---- */

Geometry tiles_geometry(Compile *c, const Group *p);
/* Whether the kernel of n can read its input where the bytes lie, through moves that are folded. */
bool tiles_read(const Graph *g, const Node *n, uint32_t input);
/* What the group's kernel computes, for a library that may do it instead: with the arguments of the
 * kernel. NULL: none may, *why says why not; or the kernel has no tiles, and *why is NULL. */
const ampc_attention *launch_for_library(Compile *c, uint32_t group, const char **why);

/* ---- names.c ---- */

/* What names a launch of several parts: side by side the first of those that walk most.
 */
const Group *group_main_part(const Graph *g, uint32_t group);
/* "features_2_1_batch_norm_relu": an identifier of C, of no other command of the program. */
const char *command_name(Compile *c, uint32_t group);
/* The node that decides what a group is about: its anchor if a layer made that, else the first that
 * a layer made. */
const Node *group_main_node(const Graph *g, uint32_t group);
const char *block_word(Compile *c, uint16_t block); /* "train", "eval2" */
/* What a layer is called in the job: "features.2.1", without the model where there is one only. */
const char *layer_path(const Graph *g, const char *layer);
const char *layer_type(Compile *c, const char *layer); /* "BatchNorm2d"; NULL: not known */
/* The optimizer that a node of an update belongs to; NULL: none. */
const char *optimizer_name_of(const Graph *g, const Node *n);

/* Line of the job's text where the node stands; 0 outside the job. */
uint32_t node_line(const Compile *c, Value v);

/* The product that a gemm group computes, workspace included. */
typedef struct Product {
  ampc_gemm desc;
  Value a, b, bias, c; /* bias may be 0 */
} Product;
Product product_of(Compile *c, uint32_t group);
/* The convolution that a conv group computes; x, w and y as in ampc_conv: one of them is the
 * result. */
typedef struct Convolution {
  ampc_conv desc;
  Value x, w, bias, y; /* bias may be 0 */
} Convolution;
Convolution convolution_of(Compile *c, uint32_t group);
/* Either of them, where it does not matter which. */
typedef struct LibraryCall {
  Value operands[4]; /* a, b, bias, c or x, w, bias, y */
  uint32_t result;   /* which of them is written: of a convolution its kind says that */
  bool accumulates;
  int64_t workspace;
} LibraryCall;
LibraryCall group_call(Compile *c, uint32_t group);
/* The program's own kernel of a group: that of a launch, or on CUDA the one that makes the columns
 * of a convolution or does it whole, conv_columns.h. False: the library does it all, or nothing is
 * to be done. */
bool group_has_kernel(Compile *c, uint32_t group);
bool group_is_columns(Compile *c, uint32_t group); /* of the second kind */
/* Groups whose kernels have the same text launch that of the first of them. */
uint32_t group_kernel(const Graph *g, uint32_t group);
bool group_owns_kernel(Compile *c, uint32_t group);  /* it has one, and is that first */
uint32_t group_n_args(Compile *c, uint32_t group);   /* of the kernel, whatever its kind */
const char *kernel_name(Compile *c, uint32_t group); /* of the first of those that launch it */
/* Bytes of scratch that the group's product or convolution asks for; 0 for all other groups. */
int64_t group_workspace(Compile *c, uint32_t group);
int target_capability(const Compile *c); /* 80 for sm_80 */
