/* Prints the device half of an emitted text. */
#pragma once
#include "printer.h"

/* Prints everything above the host part: the prelude, the helpers that are used, and all kernels in
 * the order of program->kernels. On the CPU each kernel has a thunk, named <kernel>_thunk. `jit`:
 * the text stands alone, after ampc_state.h; otherwise it follows an include of ampc_rt.h. */
void emit_kernel_texts(Printer *p, bool jit);

/* Prints the table of contents, as a comment. */
void put_contents(Printer *p);

/* Returns the text of the group's own kernel without names and comments, in memory of `scratch`.
 * The kernel itself, values and parameters have numbers instead of names. Kernels of different
 * layers that compute the same have the same text. */
Text emit_bare(Compile *c, uint32_t group, Arena *scratch);

/* The origin of a group, for comments. */
typedef struct Origin {
  const char *owner; /* "backward of features.2.1 BatchNorm2d", "optimizer opt"; NULL: no owner */
  const char *place; /* "mlp.amp:17"; "": not in the job */
  const char *text;  /* the expression there, if there is no owner; "": not in the job */
} Origin;
Origin origin_of(Compile *c, uint32_t group, size_t width);
