/* The kernels of a job as NVRTC compiles them for some architectures. */
#pragma once
#include "ampc_rt.h"
#include "code.h"
#include "compiler/base/compile.h"
#include "runner/jit/jit.h"

enum { PTX_TARGETS = 4 };

/* Chooses the architectures of ptx_load(), such as "sm_75,sm_90". Those that this NVRTC does not
 * know are left out, with a message. Returns their number; 0 also without NVRTC. */
uint32_t ptx_choose(const char *targets);
const char *ptx_target(uint32_t n); /* name of an architecture */

/* Compiles the kernels. `edit` changes the PTX, or is NULL. *images: for each target, in the order
 * of `names`, n images; NULL where an earlier target has the same text, or the kernel calls a
 * function. */
ampc_status ptx_load(Compile *c, TextEdit *edit, void *data, const char *const names[], uint32_t n,
                     const PtxImage **images[PTX_TARGETS]);
/* Adds what ptx_load() compiles for a target: the text and the geometry of the first n kernels. */
void ptx_add_text(Compile *c, uint32_t target, uint32_t n, Text *out);
unsigned ptx_calling(void); /* number of kernels so far that call functions */
/* Parses a text without a job, and finds a kernel. */
ampc_status ptx_load_text(Arena *arena, const char *text, const char *name, PtxImage *out);
