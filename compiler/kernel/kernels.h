/* Prints kernels. Equal input gives equal bytes. */
#pragma once
#include "compiler/command/command.h"

/* Runs pass kernels. After it, commands whose kernels have equal texts launch one kernel. */
bool pass_kernels(Compile *c);

/* Checks every template, once per process. Ends the process if one has an unknown word. */
void templates_check(void);

/* Prints only the kernels, for the JIT. CPU: C text that includes only the compiler's own headers
 * and defines const struct { const char *name; void (*function)(void *const *, unsigned, unsigned);
 * } ampc_jit_kernels[], in the order of program->kernels and with a null name at the end. CUDA:
 * text for NVRTC with extern "C" kernels. */
void emit_kernels(Compile *c, Text *out);
/* Prints `count` of the program's kernels, from `first` on, like emit_kernels(). CUDA only. */
void emit_some_kernels(Compile *c, uint32_t first, uint32_t count, Text *out);

/* Prints kernel i of program->kernels under its comment, without the helpers that it needs. On the
 * CPU the thunk of the kernel follows. */
void emit_kernel(Compile *c, uint32_t i, Text *out);
/* Prints texts of emit_kernel together with the helpers that they need; on the CPU emit_kernels()
 * does this for all kernels. `names`: the names in the table. CPU only. */
void emit_unit(Compile *c, const Text *kernels, const char *const *names, uint32_t n, Text *out);

/* The `#line` after the text of an own op. settle_lines() corrects it when the whole text is
 * printed; `file` is the name that compilers shall report. */
extern const char own_line_after[];
void settle_lines(Arena *arena, Text *out, size_t from, const char *file);

/* Returns the number of rows of the table that argument `a` indexes; 0: `a` is no index. */
int64_t index_rows(Compile *c, uint32_t group, const KernelArg *a);

/* Maps a line of the last emit_* output to the place that printed it,
 * "compiler/kernel/kernel.c:120"; Returns NULL if there is no such line. */
const char *emit_blame(const Compile *c, uint32_t line);

/* Compiles the kernels with NVRTC (loaded at run time) for c->options.target. Returns false after
 * an error message if NVRTC is missing or rejects the text. */
bool emit_ptx(Compile *c, Text *out);
bool emit_cubin(Compile *c, Text *out);

/* Compiles a text of emit_kernels, or a part of one, for any architecture ("sm_90"). */
typedef enum NvrtcKind { NVRTC_ptx, NVRTC_cubin } NvrtcKind;
bool emit_nvrtc(Compile *c, const Text *kernels, const char *arch, NvrtcKind kind, Text *out);
/* Compiles to PTX and adds to `report` what ptxas prints about each kernel: registers, shared
 * memory, spills. */
bool emit_report(Compile *c, const Text *kernels, const char *arch, Text *report, Text *ptx);

/* Reports the errors of a compiler's log in the texts of own ops at their places in the job.
 * Returns false if there are no such errors. */
bool emit_own_mistakes(Compile *c, const char *log);

/* Prints --emit=commands: what each group becomes, and its kernel as data. */
void emit_commands(Compile *c, Text *out);
