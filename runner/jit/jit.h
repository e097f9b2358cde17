/* Kernels of a compiled job. For the CPU, the system's C compiler builds them and they are loaded
 * into this process. For a GPU, NVRTC compiles them, and ampc_create loads them.
 *
 * Results are cached by content in $XDG_CACHE_HOME/ampc (or ~/.cache/ampc), so a job that has been
 * built before starts at once. If the cache cannot be trusted or written, or its disk is full, a
 * private folder elsewhere replaces it and is removed after loading. A file that does not load is
 * not kept. */
#pragma once
#include "ampc_rt.h"
#include "compiler/base/target.h"

typedef struct Jit Jit; /* the loaded kernels */

/* Fills in the kernels of c->program, or its images, so that it is ready for ampc_create. Unload
 * after the runtime has been freed. On failure ampc_last_error has the reason. AMPC_NO_COMPILER: no
 * compiler was found, or it rejects the text. */
ampc_status jit_load(Compile *c, Jit **out);
/* Adds to `out` a text that tells builds apart: a line with the version of amp, the target and -O,
 * then the source text of the kernels. */
void jit_print(Compile *c, Text *out);
/* Does what jit_load does, but `edit` (or NULL) changes the text of the kernels before it is built.
 * Tests use it to prove that they notice a wrong kernel. */
typedef void TextEdit(Text *text, void *data);
ampc_status jit_load_edited(Compile *c, TextEdit *edit, void *data, Jit **out);
/* After a failure: if the compiler rejected the text of an own op, prints its messages at their
 * lines in the job and clears ampc_last_error. Returns `status`. */
ampc_status jit_tell(Compile *c, ampc_status status);
/* True if kernels for this target are CUDA text, which may round factors of products to 16 bits. */
bool jit_runs_cuda(const char *target);
void jit_unload(Jit *jit); /* NULL is allowed */

/* Builds a text of emit_kernels or emit_unit with this -march, or finds it in the cache. The
 * library contains all named kernels; the caller calls dlclose. May be called from several threads
 * at once. */
ampc_status jit_open(const Text *text, const char *march, const char *const *names, uint32_t n,
                     void **out_library);
ampc_cpu_kernel *jit_find(void *library, const char *name); /* NULL: see ampc_last_error */
