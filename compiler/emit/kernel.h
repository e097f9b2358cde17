/* The device half of an emitted text. */
#pragma once
#include "printer.h"

/* Everything above the host part: the prelude, the helpers that are used, all kernels in the order
 * of program->kernels; on the CPU each kernel's thunk, named <kernel>_thunk. `jit`: the text stands
 * alone (ampc_state.h is put before it); else ampc_rt.h has been included. */
void emit_kernel_texts(Printer *p, bool jit);
