/* Describes the command that a group of nodes becomes: the arguments, geometry and name of its
 * kernel, or its matrix product or convolution. Passes memory and plan and the room emit/ all use
 * it, so the launch in the plan and the printed kernel always agree. */
#pragma once
#include "compiler/graph/ops.h"

typedef enum ArgRole {
  ARG_in,        /* reads a value from outside the group, or a scalar in STATE */
  ARG_out,       /* writes a value of the group that is needed outside */
  ARG_state,     /* ampc_state * */
  ARG_optimizer, /* ampc_optimizer *: the op's optimizer */
  ARG_metric,    /* ampc_metric * */
  ARG_grad,      /* real *: the optimizer's range; for grad_accumulate, the parameter's slot */
  ARG_master,    /* the optimizer's range, as up to ARG_copy; in the type of the space */
  ARG_residue,
  ARG_moment1,
  ARG_moment2,
  ARG_moment3,
  ARG_ema,
  ARG_copy,    /* the optimizer's range, in the type of the copies */
  ARG_buffer,  /* a buffer, in the parameter's type */
  ARG_kept,    /* the value of the buffer before the step, in the parameter's type */
  ARG_scratch, /* real *: scratch of an own op: own_scratch() */
  ARG_stream   /* not a pointer but a number: place.offset is the random stream of a node */
} ArgRole;

typedef struct KernelArg {
  ArgRole role;
  Value value;    /* ARG_in, ARG_out: the node that owns the bytes (aliases are resolved) */
  Value over;     /* ARG_out: the input whose bytes it overwrites element by element; 0: none */
  uint32_t index; /* ARG_optimizer, ARG_metric, ARG_buffer: index into the graph's table */
  bool only_read; /* the kernel only reads it, although `role` is not ARG_in */
  DType type;     /* element type; in STATE `float`, even with Note [real64] */
  ampc_ref place;
} KernelArg;

typedef struct KernelArgs {
  KernelArg *at;
  uint32_t n;
} KernelArgs;

/* Returns the node that owns the bytes of v. Follows aliases and folded nodes to their input. */
Value value_root(const Graph *g, Value v);
/* Returns the node with the shape of v's bytes: v, or its input if v is folded, like an expand. */
const Node *value_shape(const Graph *g, Value v);
/* Returns the node whose shape the kernel of v walks: v, or the input of an effect or a stack. */
const Node *node_walked(const Graph *g, Value v);
/* True for an elementwise node if each operand has one element or as many as the node walks. Such a
 * kernel needs no axes, so the operand's shape may differ. */
bool reads_flat(const Graph *g, Value v);
/* True if v reads input k in order: the thread of element i of v reads only its element i. */
bool reads_in_order(const Graph *g, Value v, uint32_t k);
/* True for a cast of an f32 parameter to 16 bits. No kernel casts it: the optimizer writes the
 * copy. */
bool is_working_copy(const Graph *g, Value v);
/* Returns the number of elements that the kernel of n walks in the range of an optimizer or a group
 * of parameters; -1: it walks no such range. */
int64_t node_range(const Graph *g, const Node *n);
/* Returns how many random words of 32 bits an update draws for each element: 0 to 2. */
uint32_t update_words(const Graph *g, const Node *n);

enum { TENSOR_ALIGNMENT = 16 }; /* bytes: rows of tensor cores start at multiples of it */

/* group_by_library: true if the vendor library computes the group. group_convolves: true if it does
 * and the group is a convolution. */
bool group_by_library(const Graph *g, uint32_t group);
bool group_exchanges(const Graph *g, uint32_t group); /* true if members exchange: no kernel */
bool group_convolves(const Graph *g, uint32_t group);

/* Returns the arguments of a group's kernel. Valid after pass memory. Order: inputs by first use,
 * outputs in node order, slots of gradients, then the state of random ops. Ops with a template file
 * use the order of their code in ops.def. */
KernelArgs kernel_args(Compile *c, uint32_t group);
/* Returns the arguments of a group that is one kernel, or of one part of a group. A part's pointers
 * are also arguments of the group. */
KernelArgs part_args(Compile *c, const Group *part);
/* Returns the index of an argument; args->n if it is not in the list. */
uint32_t same_argument(const KernelArgs *args, const KernelArg *a);

/* True for a group without a command: it begins or ends a loop, or is a grad_accumulate whose
 * product adds to the slot itself. */
bool group_is_silent(const Graph *g, uint32_t group);

/* Returns the place of an operand for each iteration of the loop around the command. `v` owns the
 * bytes; `written`: the command writes them. A slice of a sequence moves with the iteration; other
 * operands stay. */
ampc_operand value_operand(Compile *c, Value v, bool written);

/* True for a cast from 16 bits to f32, which changes no value. */
bool is_widening(const Graph *g, const Node *n);

/* The rows of a row op. Axes [from, to) of input 0 are reduced; [outer, length, inner] is the shape
 * of input 0. */
typedef struct RowShape {
  uint32_t from, to;
  int64_t outer, length, inner;
  int64_t parts;     /* number of parts of a row, each with a result; 0: the row is not split */
  int64_t part_rows; /* elements of the row in a part; without parts, `length` */
  uint32_t widest;   /* the most elements that a thread loads at once, if they divide the row */
  bool alone;        /* one block computes the row op after the other parts: Note [parts] */
  bool joins;        /* the row op sums the parts of a long sum; one block can do that */
  bool loose;        /* no axes of input 0 form the columns, so it is read as [length, inner] */
} RowShape;
RowShape row_shape(const Graph *g, Value v);
/* True if row op v returns one value for each row and its rows have length 1. */
bool row_is_flat(const Graph *g, Value v);

typedef struct Geometry {
  uint32_t grid, block;
} Geometry;
Geometry kernel_geometry(Compile *c, uint32_t group);
Geometry part_geometry(Compile *c, const Group *part); /* of one part of a launch */
Geometry elements_geometry(int64_t n);                 /* n elements; on CUDA a thread for each */

/* ---- own.c: own ops of the job ---- */

/* Return value and type of tensor i of the kernel: first inputs, then outputs. The value is 0 for
 * an output that no node reads. */
Value own_tensor(const Graph *g, const Group *p, uint32_t i);
DType own_tensor_type(Compile *c, const Group *p, uint32_t i);
/* Returns the offset of tensor i in the scratch, in f32 elements; -1: it is not in the scratch. The
 * scratch holds 16-bit tensors of host text, converted to f32, and outputs that no node reads. */
int64_t own_scratch_at(Compile *c, const Group *p, uint32_t i);
int64_t own_scratch(Compile *c, const Group *p); /* total bytes */
Geometry own_geometry(Compile *c, const Group *p);

/* ---- ops whose kernels multiply in tiles (T_tiles) ---- */

Geometry tiles_geometry(Compile *c, const Group *p);
/* True if the kernel of n can read an input without a copy, through folded moves. */
bool tiles_read(const Graph *g, const Node *n, uint32_t input);
/* Describes the group's kernel for a library that can compute it instead, with the same arguments.
 * Returns NULL if no library can; *why is then the reason, or NULL if the kernel has no tiles. */
const ampc_attention *launch_for_library(Compile *c, uint32_t group, const char **why);
/* True if only the own kernel of the next group, which a library may replace, reads what the group
 * writes: the sums of dy y, before attention's gradients. */
bool launch_is_deferred(Compile *c, uint32_t group);

/* ---- names.c ---- */

/* Returns the part that names a launch of several parts: the first with the most elements. Returns
 * the group itself if it has no parts or they run in turn. */
const Group *group_main_part(const Graph *g, uint32_t group);
/* Returns a C identifier, unique in the program: "features_2_1_batch_norm_relu". */
const char *command_name(Compile *c, uint32_t group);
/* Returns the node that names a group: the anchor if a layer has it, else the first of a layer. */
const Node *group_main_node(const Graph *g, uint32_t group);
const char *block_word(Compile *c, uint16_t block); /* "train", "eval2" */
/* Returns a layer's name: "features.2.1". The model is left out if the job has only one. */
const char *layer_path(const Graph *g, const char *layer);
const char *layer_type(Compile *c, const char *layer); /* "BatchNorm2d"; NULL: unknown */
/* Returns the name of the optimizer whose update n belongs to; NULL: none. */
const char *optimizer_name_of(const Graph *g, const Node *n);

/* Returns the line of the job that the node comes from; 0: it comes from no line. */
uint32_t node_line(const Compile *c, Value v);

/* The matrix product of a gemm group, with its workspace. */
typedef struct Product {
  ampc_gemm desc;
  Value a, b, bias, c; /* bias: 0 if there is none */
} Product;
Product product_of(Compile *c, uint32_t group);

/* Elements of a parameter's place in the spaces of parameters: Note [rows behind]. */
int64_t param_room(const Compile *c, const Parameter *p);

/* The convolution of a conv group. x, w and y are those of ampc_conv; one of them is the result. */
typedef struct Convolution {
  ampc_conv desc;
  Value x, w, bias, y; /* bias: 0 if there is none */
} Convolution;
Convolution convolution_of(Compile *c, uint32_t group);
/* A product or a convolution, for code that treats both in one way. */
typedef struct LibraryCall {
  Value operands[4]; /* a, b, bias, c or x, w, bias, y */
  /* index of the operand that is written; depends on a convolution's kind */
  uint32_t result;
  bool accumulates;
  int64_t workspace;
} LibraryCall;
LibraryCall group_call(Compile *c, uint32_t group);
/* True if the group has a kernel of ampc's own: it is a launch or, on CUDA, a convolution whose
 * columns or whole result a kernel computes (conv_columns.h). False if the library computes
 * everything, or if the group has no command. */
bool group_has_kernel(Compile *c, uint32_t group);
bool group_is_columns(Compile *c, uint32_t group); /* a convolution with a kernel of ampc's own */
/* Returns the group whose kernel `group` launches: the first with that kernel text. */
uint32_t group_kernel(const Graph *g, uint32_t group);
bool group_owns_kernel(Compile *c, uint32_t group);  /* it launches its own kernel */
uint32_t group_n_args(Compile *c, uint32_t group);   /* number of all arguments */
const char *kernel_name(Compile *c, uint32_t group); /* the kernel it launches */
/* Returns the scratch of a product, convolution or own op, in bytes; 0 for all other groups. */
int64_t group_workspace(Compile *c, uint32_t group);
int target_capability(const Compile *c); /* 80 for sm_80 */
