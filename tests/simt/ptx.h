/* Inline PTX in the text of CUDA kernels, for a C compiler. */
#pragma once
#include "compiler/base/arena.h"

/* `asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));` becomes `simt_cvt_f32_f16(&(x), (h));`, which
 * prelude.h defines: results first, by address. One instruction with its operands in order, each of
 * them used once; anything else stays as it is and does not build. */
void ptx_as_calls(const Text *cuda, Text *out);
