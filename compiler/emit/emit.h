/* From the plan to text. Same input, same bytes. */
#pragma once
#include "compiler/base/compile.h"

/* Pass kernels: commands whose kernels have the same text launch one. */
bool pass_kernels(Compile *c);

/* Checks every template, once per process. Ends the process if one has an unknown word. */
void templates_check(void);

/* The whole trainer as one file: CUDA C for target sm_xx, C for target cpu (c->options.target). It
 * includes ampc_rt.h only. Without `with_main` there are functions for other programs in the place
 * of main(), which emit_header declares. */
void emit_program(Compile *c, Text *out, bool with_main);
void emit_header(Compile *c, Text *out);

/* The kernels alone, for the JIT. CPU: C text that needs only the compiler's own headers and
 * defines const struct { const char *name; void (*function)(void *const *, unsigned, unsigned); }
 * ampc_jit_kernels[]; in the order of program->kernels, ended by a null name. CUDA: text for NVRTC,
 * extern "C" kernels. */
void emit_kernels(Compile *c, Text *out);
/* The same for `count` of the program's kernels; CUDA only. */
void emit_some_kernels(Compile *c, uint32_t first, uint32_t count, Text *out);

/* Kernel i of program->kernels under its comment, without what it needs around it; on the CPU with
 * its thunk. */
void emit_kernel(Compile *c, uint32_t i, Text *out);
/* Such texts of some kernels, with what they need around them: on the CPU emit_kernels is this for
 * all of them. `names` goes into the table. CPU only. */
void emit_unit(Compile *c, const Text *kernels, const char *const *names, uint32_t n, Text *out);

/* The line that stands behind the text of an op of the job, and what replaces it when the text is
 * whole: `file` is what compilers shall call it. */
extern const char own_line_after[];
void settle_lines(Arena *arena, Text *out, size_t from, const char *file);

/* Line of the last emit_* output -> "compiler/emit/kernel.c:120", the place that wrote it; NULL: no
 * such line. */
const char *emit_blame(const Compile *c, uint32_t line);

/* Compiles the kernels with NVRTC (loaded at run time) for c->options.target. False after an error
 * message when NVRTC is missing or refuses. */
bool emit_ptx(Compile *c, Text *out);
bool emit_cubin(Compile *c, Text *out);

/* The same for a text of emit_kernels, or a part of one, and any architecture ("sm_90").
 * NVRTC_report: the words of ptxas about each kernel: registers, shared memory, spills. */
typedef enum NvrtcKind { NVRTC_ptx, NVRTC_cubin, NVRTC_report } NvrtcKind;
bool emit_nvrtc(Compile *c, const Text *kernels, const char *arch, NvrtcKind kind, Text *out);

/* Errors in a compiler's messages that are about the text of an op of the job, told at their
 * places; false: none is. */
bool emit_own_mistakes(Compile *c, const char *log);

void emit_params(Compile *c, Text *out); /* name, shape, type a line; last: "total N parameters" */
void emit_plan(Compile *c,
               Text *out); /* --emit=plan: the commands with places, the spaces, totals */
