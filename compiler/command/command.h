/* What a group of nodes becomes: the pointers that its kernel takes, its geometry and its name; or
 * the description of a matrix product. Passes memory and plan and the room emit/ all use it, so the
 * launch in the plan and the printed kernel always agree. */
#pragma once
#include "compiler/graph/ops.h"

typedef enum ArgRole {
  ARG_in,        /* read: a value from outside the group, or a scalar in STATE */
  ARG_out,       /* written: a value of the group that is needed outside */
  ARG_state,     /* ampc_state * */
  ARG_optimizer, /* ampc_optimizer *: the op's optimizer */
  ARG_metric,    /* ampc_metric * */
  ARG_grad,      /* real *: the optimizer's range, or the parameter's slot for grad_accumulate */
  ARG_master,    /* real *: the optimizer's range; so are the arguments up to ARG_copy */
  ARG_moment1,
  ARG_moment2,
  ARG_moment3,
  ARG_ema,
  ARG_copy,    /* its element type is that of the copies */
  ARG_buffer,  /* its element type is the parameter's */
  ARG_kept,    /* like ARG_buffer: the value of the buffer before the step */
  ARG_scratch, /* real *: scratch of an own op, own_scratch */
  ARG_stream   /* a number, not a pointer: place.offset is the random stream of a node */
} ArgRole;

typedef struct KernelArg {
  ArgRole role;
  Value value;    /* ARG_in, ARG_out: the node that owns the bytes (aliases are resolved) */
  Value over;     /* ARG_out: the input whose bytes it overwrites element by element; 0: none */
  uint32_t index; /* ARG_optimizer, ARG_metric, ARG_buffer: index in the graph's table */
  bool only_read; /* the kernel only reads it, although `role` is not ARG_in */
  DType type;     /* element type. With Note [real64], floats in STATE are still `float` */
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
/* The node whose shape the kernel of v walks: v. If v is an effect such as grad_accumulate, its
 * input. */
const Node *node_walked(const Graph *g, Value v);
/* True for an elementwise node if each operand has as many elements as the node walks, or one. Such
 * a node needs no axes, so an operand may be viewed under another shape. */
bool reads_flat(const Graph *g, Value v);
/* True if v reads its input k in order: for element i of v it reads only element i of the input. */
bool reads_in_order(const Graph *g, Value v, uint32_t k);
/* True if eval and infer blocks read the optimizer's running average in place of this parameter. */
bool reads_average(const Graph *g, const Node *param);
/* True for a cast of a parameter to 16 bits. No kernel computes it: it is the copy that the
 * optimizer writes. */
bool is_working_copy(const Graph *g, Value v);
/* The number of elements that the kernel of n walks in the range of an optimizer or a group; -1: it
 * walks no such range. */
int64_t node_range(const Graph *g, const Node *n);

/* Does the vendor library compute the group? Is the group a convolution that it computes? */
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

/* True for a group without a command: it begins or ends a loop, or it is a grad_accumulate of a
 * product that adds to the slot itself. */
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
  int64_t parts;     /* a row is cut into this many parts, each with a result; 0: not cut */
  int64_t part_rows; /* length of a part; without parts, `length` */
  uint32_t widest;   /* the most elements that a thread takes at once, if they divide the row */
  bool alone;        /* one block computes it after the other parts: Note [parts] */
  bool joins;        /* combines the parts of a long sum, which are few enough for one block */
  bool loose;        /* no axes of input 0 form the columns: it is read as [length, inner] */
} RowShape;
RowShape row_shape(const Graph *g, Value v);
/* True if row op v returns one value for each row and its rows have length 1. */
bool row_is_flat(const Graph *g, Value v);

typedef struct Geometry {
  uint32_t grid, block;
} Geometry;
Geometry kernel_geometry(Compile *c, uint32_t group);
Geometry part_geometry(Compile *c, const Group *part); /* of one part */
Geometry elements_geometry(int64_t n);                 /* on CUDA, one thread for each element */

/* ---- own.c: own ops of the job ---- */

/* The value and the type of tensor i of the kernel: first inputs, then outputs. The value is 0 for
 * an output that no node reads. */
Value own_tensor(const Graph *g, const Group *p, uint32_t i);
DType own_tensor_type(Compile *c, const Group *p, uint32_t i);
/* The scratch holds 16-bit tensors of host text, converted to f32, and outputs that no node reads.
 * Returns the offset of tensor i in the scratch, in f32 elements; -1: it is not there. */
int64_t own_scratch_at(Compile *c, const Group *p, uint32_t i);
int64_t own_scratch(Compile *c, const Group *p); /* its size in bytes */
Geometry own_geometry(Compile *c, const Group *p);

/* ---- ops whose kernels multiply in tiles (T_tiles) ---- */

Geometry tiles_geometry(Compile *c, const Group *p);
/* Can the kernel of n read its input without a copy, through moves that are folded into it? */
bool tiles_read(const Graph *g, const Node *n, uint32_t input);
/* Describes the group's kernel for a library that can compute it instead, with the same arguments.
 * Returns NULL if no library can. Then *why is the reason, or NULL if the kernel has no tiles. */
const ampc_attention *launch_for_library(Compile *c, uint32_t group, const char **why);

/* ---- names.c ---- */

/* The part that names a launch of several parts: the one with the most elements, the first of
 * several. Returns the group itself if it has no parts or they run in turn. */
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

/* The line of the job that the node comes from; 0: it comes from no line of the job. */
uint32_t node_line(const Compile *c, Value v);

/* The matrix product of a gemm group, with its workspace. */
typedef struct Product {
  ampc_gemm desc;
  Value a, b, bias, c; /* bias: 0 if there is none */
} Product;
Product product_of(Compile *c, uint32_t group);
/* The convolution of a conv group. x, w and y are those of ampc_conv; one of them is the result. */
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
/* Does the group have a kernel of ampc's own? True for a launch. On CUDA also true for a
 * convolution of which a kernel writes the columns or computes everything (conv_columns.h). False
 * if the library computes everything, or if the group has no command. */
bool group_has_kernel(Compile *c, uint32_t group);
bool group_is_columns(Compile *c, uint32_t group); /* a convolution with a kernel of ampc's own */
/* Groups whose kernels have the same text launch the kernel of the first such group. */
uint32_t group_kernel(const Graph *g, uint32_t group);
bool group_owns_kernel(Compile *c, uint32_t group);  /* its kernel is not an earlier one's */
uint32_t group_n_args(Compile *c, uint32_t group);   /* arguments of its kernel, of any kind */
const char *kernel_name(Compile *c, uint32_t group); /* of the kernel that it launches */
/* Bytes of scratch for the group's product, convolution or own op; 0 for all other groups. */
int64_t group_workspace(Compile *c, uint32_t group);
int target_capability(const Compile *c); /* 80 for sm_80 */
