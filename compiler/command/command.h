/* What a group of nodes becomes: the pointers that its kernel takes, its geometry and its name; or
 * the description of a matrix product. Passes memory and plan and the room emit/ all use it, so the
 * launch in the plan and the printed kernel always agree. */
#pragma once
#include "compiler/graph/ops.h"

typedef enum ArgRole {
  ARG_in,        /* read: a value from outside the group, or a scalar in STATE */
  ARG_out,       /* written: a value of the group that is needed outside */
  ARG_state,     /* ampc_state * */
  ARG_optimizer, /* ampc_optimizer *: that of the op */
  ARG_metric,    /* ampc_metric * */
  ARG_grad,      /* real *: the optimizer's range, or the parameter's slot for grad_accumulate */
  ARG_master,    /* real *: the optimizer's range, also for the following ones */
  ARG_moment1,
  ARG_moment2,
  ARG_moment3,
  ARG_ema,
  ARG_copy,    /* of the type of the copies */
  ARG_buffer,  /* of the parameter's type */
  ARG_kept,    /* the same: the value of the buffer before the step */
  ARG_scratch, /* real *: scratch of an own op, own_scratch */
  ARG_stream   /* a number, not a pointer: place.offset is the random stream of a node */
} ArgRole;

typedef struct KernelArg {
  ArgRole role;
  Value value;    /* ARG_in, ARG_out: the node that owns the bytes (aliases are resolved) */
  Value over;     /* ARG_out: the input whose bytes it overwrites, element by element; or 0 */
  uint32_t index; /* ARG_optimizer, ARG_metric, ARG_buffer: index in the graph's table */
  bool only_read; /* not ARG_in, but only read */
  DType type;     /* of one element; floats in STATE are `float` even under Note [real64] */
  ampc_ref place;
} KernelArg;

typedef struct KernelArgs {
  KernelArg *at;
  uint32_t n;
} KernelArgs;

/* The node that owns the bytes of v: follows reshape, detach, output and folded nodes to their
 * input. */
Value value_root(const Graph *g, Value v);
/* The node whose shape these bytes have: v, or the input of v if v is folded (such as an
 * expand). */
const Node *value_shape(const Graph *g, Value v);
/* The node whose shape is walked to compute v: v, or the input of an effect on elements. */
const Node *node_walked(const Graph *g, Value v);
/* True for an elementwise node if each operand has as many elements as the node walks, or one. Such
 * a node needs no axes, so an operand may be viewed under another shape. */
bool reads_flat(const Graph *g, Value v);
/* True if v reads its input k in order: to compute element i, it reads element i. */
bool reads_in_order(const Graph *g, Value v, uint32_t k);
/* True if eval and infer blocks read the optimizer's running average in place of this parameter. */
bool reads_average(const Graph *g, const Node *param);
/* True for a cast of a parameter to 16 bits. No kernel computes it: it is the copy that the
 * optimizer writes. */
bool is_working_copy(const Graph *g, Value v);
/* The number of elements of the optimizer's or group's range that the kernel of n walks; -1:
 * none. */
int64_t node_range(const Graph *g, const Node *n);

/* Does the vendor library run the group, not one of ampc's own kernels? Is it a convolution? */
bool group_by_library(const Graph *g, uint32_t group);
bool group_convolves(const Graph *g, uint32_t group);

/* Valid after pass memory. Order: inputs by first use, outputs in node order, slots of gradients,
 * then the state of random ops. Ops with their own template file use the order of their code in
 * ops.def. */
KernelArgs kernel_args(Compile *c, uint32_t group);
/* The arguments of a group that is one kernel, or of one part of a group. Pointers are the same in
 * both. */
KernelArgs part_args(Compile *c, const Group *part);
uint32_t same_argument(const KernelArgs *args, const KernelArg *a); /* its index; args->n: not
                                                                       found */

/* True for a group without a command: the product itself adds this gradient to its slot
 * (accumulate), or the group begins or ends a loop. */
bool group_is_silent(const Graph *g, uint32_t group);

/* The place of an operand in each iteration of the loop around the command. `v` owns the bytes;
 * `written`: the command writes them. A slice of a sequence moves with the iteration; other
 * operands stay. */
ampc_operand value_operand(Compile *c, Value v, bool written);

/* True for a cast from 16 bits to f32, which changes no value. */
bool is_widening(const Graph *g, const Node *n);

/* The rows of a row op. Axes [from, to) of input 0 are reduced; [outer, length, inner] is its
 * shape. */
typedef struct RowShape {
  uint32_t from, to;
  int64_t outer, length, inner;
  int64_t parts; /* channel statistics: a row is cut into this many parts, each with a result; else
                    0 */
  int64_t part_rows; /* rows of a part; without parts, `length` */
  uint32_t widest;   /* the most elements that a thread takes at once, if they divide the row */
  bool alone;        /* one block computes it after the other parts: Note [parts] */
  bool joins;        /* combines the parts of a long sum, which are few enough for one block */
  bool loose;        /* columns are not axes of input 0: its elements are counted as [length,
                        inner] */
} RowShape;
RowShape row_shape(const Graph *g, Value v);
/* True if row op v gives one value a row and its rows have length 1. */
bool row_is_flat(const Graph *g, Value v);

typedef struct Geometry {
  uint32_t grid, block;
} Geometry;
Geometry kernel_geometry(Compile *c, uint32_t group);
Geometry part_geometry(Compile *c, const Group *part); /* of one part */
Geometry elements_geometry(int64_t n);                 /* CUDA, one thread an element */

/* ---- own.c: own ops of the job ---- */

/* The tensors of the kernel: first inputs, then outputs. The value of tensor i (0 for an output
 * that nobody reads), and its type. */
Value own_tensor(const Graph *g, const Group *p, uint32_t i);
DType own_tensor_type(Compile *c, const Group *p, uint32_t i);
/* In host text, 16-bit tensors are converted to f32, and outputs that nobody reads have no place.
 * Both are in the scratch: the first element of tensor i there, counted in f32. -1: tensor i is not
 * in the scratch. */
int64_t own_scratch_at(Compile *c, const Group *p, uint32_t i);
int64_t own_scratch(Compile *c, const Group *p); /* its size in bytes */
Geometry own_geometry(Compile *c, const Group *p);

/* ---- ops whose kernels multiply in tiles (T_tiles) ---- */

Geometry tiles_geometry(Compile *c, const Group *p);
/* Can the kernel of n read its input without a copy, through moves that are folded into it? */
bool tiles_read(const Graph *g, const Node *n, uint32_t input);
/* Describes the group's kernel for a library that may compute it instead, with the same arguments.
 * If no library can, returns NULL, and *why is the reason. If the kernel has no tiles, *why is NULL
 * too. */
const ampc_attention *launch_for_library(Compile *c, uint32_t group, const char **why);

/* ---- names.c ---- */

/* The part that names a launch of several parts: of parts side by side, the first of those with the
 * most elements. */
const Group *group_main_part(const Graph *g, uint32_t group);
/* "features_2_1_batch_norm_relu": a C identifier, unique in the program. */
const char *command_name(Compile *c, uint32_t group);
/* The node that names a group: the anchor if it belongs to a layer, else the first node that
 * belongs to one. */
const Node *group_main_node(const Graph *g, uint32_t group);
const char *block_word(Compile *c, uint16_t block); /* "train", "eval2" */
/* The name of a layer in the job: "features.2.1". The model is left out if the job has only one. */
const char *layer_path(const Graph *g, const char *layer);
const char *layer_type(Compile *c, const char *layer); /* "BatchNorm2d"; NULL: unknown */
/* The name of the optimizer that a node of an update belongs to; NULL: none. */
const char *optimizer_name_of(const Graph *g, const Node *n);

/* The line of the job where the node was written; 0: outside the job. */
uint32_t node_line(const Compile *c, Value v);

/* The matrix product of a gemm group, with its workspace. */
typedef struct Product {
  ampc_gemm desc;
  Value a, b, bias, c; /* bias: 0 if there is none */
} Product;
Product product_of(Compile *c, uint32_t group);
/* The convolution of a conv group; x, w and y as in ampc_conv. One of them is the result. */
typedef struct Convolution {
  ampc_conv desc;
  Value x, w, bias, y; /* bias: 0 if there is none */
} Convolution;
Convolution convolution_of(Compile *c, uint32_t group);
/* A product or a convolution, for code that treats both alike. */
typedef struct LibraryCall {
  Value operands[4]; /* a, b, bias, c or x, w, bias, y */
  uint32_t result;   /* index of the operand that is written; the kind of a convolution decides
                        it */
  bool accumulates;
  int64_t workspace;
} LibraryCall;
LibraryCall group_call(Compile *c, uint32_t group);
/* Does the group have one of ampc's own kernels? True for a launch. On CUDA also for a convolution
 * whose columns a kernel makes, or that a kernel computes whole (conv_columns.h). False if the
 * library does all of it, or if the group has no command. */
bool group_has_kernel(Compile *c, uint32_t group);
bool group_is_columns(Compile *c, uint32_t group); /* true for such a convolution */
/* Groups whose kernels have the same text launch the kernel of the first such group. */
uint32_t group_kernel(const Graph *g, uint32_t group);
bool group_owns_kernel(Compile *c, uint32_t group);  /* has a kernel and is the first such group */
uint32_t group_n_args(Compile *c, uint32_t group);   /* of its kernel, of either kind */
const char *kernel_name(Compile *c, uint32_t group); /* of the first group that launches it */
/* Bytes of scratch for the group's product, convolution or own op; 0 for all other groups. */
int64_t group_workspace(Compile *c, uint32_t group);
int target_capability(const Compile *c); /* 80 for sm_80 */
