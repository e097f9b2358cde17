/* The arguments of kernels. A kernel and its launch list them in the same order. */
#pragma once
#include "values.h"

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
  ARG_scale1,
  ARG_scale2,
  ARG_scale3,
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

/* Returns the index of an argument; args->n if it is not in the list. */
uint32_t same_argument(const KernelArgs *args, const KernelArg *a);
