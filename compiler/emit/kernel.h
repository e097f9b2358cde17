/* The device half of an emitted text. */
#pragma once
#include "printer.h"

/* Everything above the host part: the prelude, the helpers that are used, all kernels in the order
 * of program->kernels; on the CPU each kernel's thunk, named <kernel>_thunk. `jit`: the text stands
 * alone (ampc_state.h is put before it); else ampc_rt.h has been included. */
void emit_kernel_texts(Printer *p, bool jit);

/* The table of contents, as a comment. */
void put_contents(Printer *p);

/* The kernel that a group has, or would have if it had not that of an earlier one; without the
 * comment above it. What is no longer needed after that lies in `scratch`. */
typedef struct KernelText {
  Text code;
  const void *blame;  /* where its lines come from, as printer_append takes it */
  const char *target; /* for which it was printed */
} KernelText;
const KernelText *emit_group(Compile *c, uint32_t group, Arena *scratch);

/* Where a group comes from, for comments. */
typedef struct Origin {
  const char *owner; /* "backward of features.2.1 BatchNorm2d", "optimizer opt"; NULL: none */
  const char *place; /* "mlp.amp:17"; "": nowhere in the job */
  const char *text;  /* without owner the expression there, "" likewise */
} Origin;
Origin origin_of(Compile *c, uint32_t group, size_t width);
