/* What groups of nodes become. Pass commands makes a Command for each group and stores it in the
 * graph. Later passes, kernel/, the predictions and the runner read its fields, so the launch in
 * the plan and the printed kernel agree. */
#pragma once
#include "access.h"
#include "names.h"

typedef enum CommandKind {
  /* no command: begin or end of a loop, or the sum with a gradient's slot to which a product has
   * already added its result */
  COMMAND_none,
  COMMAND_kernel,  /* a kernel of ampc's own; a library may replace it, if `library` is set */
  COMMAND_gemm,    /* a vendor library computes a matrix product */
  COMMAND_conv,    /* the same for a convolution; without cuDNN a kernel computes it: `columns` */
  COMMAND_exchange /* members exchange a value; no kernel */
} CommandKind;

enum { INT_LIMIT = 1 << 30 }; /* elements; with more, a grid-stride loop could overflow an int */

typedef struct Geometry {
  uint32_t grid, block;
} Geometry;

/* One kernel, or a part of a launch: Note [parts] in ir.h. At most one walk is set. */
typedef struct KernelPart {
  const Group *group; /* its nodes */
  KernelArgs args;    /* a part's pointers are also arguments of the launch */
  Geometry at;
  const MapWalk *map;        /* elementwise nodes and moves with strides */
  const RowLoops *rows;      /* row ops */
  const WindowWalk *windows; /* an op of windows */
  const TileWalk *tiles;     /* an op of tiles */
  /* what elementwise nodes and row ops read; NULL: the kernel has no such nodes */
  const KernelAccess *access;
} KernelPart;

typedef struct Command {
  CommandKind kind;
  const char *name; /* a C identifier, unique in the program: "features_2_1_batch_norm_relu" */

  /* ---- its kernel: COMMAND_kernel, or `columns`; of an exchange only the arguments ---- */
  KernelPart whole;  /* arguments in the order of the kernel; `at` is the geometry of the launch.
                        With `columns` it has no arguments, as they are no values of the graph. */
  KernelPart *parts; /* what it launches: the parts of the group, or `whole` alone; 0: `columns` */
  uint32_t n_parts;
  uint32_t n_args; /* number of arguments of the kernel, also with `columns` */
  bool far;        /* int is too small for its indices: more than INT_LIMIT elements */
  bool columns;    /* a convolution of which a kernel computes the columns, or everything */
  uint32_t kernel; /* pass kernels: the first group with an equal kernel, which it launches */
  uint32_t sharer; /* pass kernels: the next group that launches the same kernel; 0: none */
  const char *kernel_name; /* of the kernel that it launches; NULL: no kernel */

  /* ---- attention, else NULL ---- */
  const ampc_attention *attention; /* sizes, type, scale and dropout, without arguments */
  const ampc_attention *library;   /* the same with arguments, if a library may compute it */
  const char *why_own;             /* if `library` is NULL: why no library can */
  /* It is launched only if ampc's kernel computes the next command, not a library: nothing else
   * reads its result. So are the sums of dy y before attention's gradients. */
  bool deferred;

  /* ---- COMMAND_gemm and COMMAND_conv ---- */
  union {
    ampc_gemm gemm;
    ampc_conv conv;
  };
  Value operands[4]; /* a, b, bias, c of a product; x, w, bias, y of a convolution; 0: no bias */
  uint32_t result;   /* index of the operand that is written; depends on a convolution's kind */
  bool accumulates;  /* it adds to the result */
  int64_t workspace; /* bytes of scratch, also that of an own op */
} Command;

/* Returns a command for each group, for the target in c->options. Valid after pass memory. Until
 * pass kernels, each command launches its own kernel. */
Command *commands_make(Compile *c);

static inline const Command *command_of(const Graph *g, uint32_t group)
{
  return &g->commands[group];
}
/* True for a product or a convolution. */
static inline bool command_by_library(const Command *k)
{
  return k->kind == COMMAND_gemm || k->kind == COMMAND_conv;
}
/* True if the group launches its own kernel, not that of an earlier group. */
static inline bool command_owns_kernel(const Graph *g, uint32_t group)
{
  return command_of(g, group)->kernel_name && command_of(g, group)->kernel == group;
}

/* Returns the group that owns kernel i of the program's table. */
uint32_t kernel_owner(const Graph *g, uint32_t i);
/* Returns the scratch of a product, convolution or own op, in bytes; 0 for all other groups. Pass
 * memory asks for it before there are commands. */
int64_t group_workspace(Compile *c, uint32_t group);

/* ---- own.c: own ops of the job ---- */

/* Return value and type of tensor i of the kernel: first inputs, then outputs. The value is 0 for
 * an output that no node reads. */
Value own_tensor(const Graph *g, const Group *p, uint32_t i);
DType own_tensor_type(Compile *c, const Group *p, uint32_t i);
/* Returns the offset of tensor i in the scratch, in f32 elements; -1: it is not in the scratch. The
 * scratch holds 16-bit tensors of host text, converted to f32, and outputs that no node reads. */
int64_t own_scratch_at(Compile *c, const Group *p, uint32_t i);
int64_t own_scratch(Compile *c, const Group *p); /* total bytes */
