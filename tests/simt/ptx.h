/* Translates inline PTX in CUDA kernels for a C compiler. */
#pragma once
#include "compiler/base/arena.h"

/* Replaces inline PTX by calls. `asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));` becomes
 * `simt_cvt_f32_f16(&(x), (h));`, a function of prelude.h. The arguments are the operands and
 * numbers in the order of the instruction. A result is passed by address; if it is an operand, too,
 * then the second time by value. The asm must be one instruction. Any other asm is left as it is,
 * and then does not build. */
void ptx_as_calls(const Text *cuda, Text *out);
