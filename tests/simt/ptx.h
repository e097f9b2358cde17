/* Translates inline PTX in CUDA kernels for a C compiler. */
#pragma once
#include "compiler/base/arena.h"

/* Replaces inline PTX by calls. `asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));` becomes
 * `simt_cvt_f32_f16(&(x), (h));`, a function of prelude.h; results come first, by address. The asm
 * must be one instruction that uses each operand once, in order. Any other asm is left as it is,
 * and then does not build. */
void ptx_as_calls(const Text *cuda, Text *out);
