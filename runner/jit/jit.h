/* Kernels of a compiled job, built by the system's C compiler and loaded into this process; for a
 * GPU compiled by NVRTC, and loaded when the program's runtime is made.
 *
 * Results are cached by content in $XDG_CACHE_HOME/ampc (or ~/.cache/ampc), so a job that was seen
 * before starts at once. A cache that cannot be trusted or written, or has no room, is not used: a
 * private folder elsewhere takes its place and is removed after loading. Nothing is kept that does
 * not load. */
#pragma once
#include "ampc_rt.h"
#include "compiler/base/target.h"

typedef struct Jit Jit; /* the loaded kernels */

/* Fills in the kernels of c->program, or its images, so that it is ready for ampc_create. Unload
 * after the runtime has been freed. On failure ampc_last_error says why: AMPC_NO_COMPILER when
 * there is no compiler or it refuses the text. */
ampc_status jit_load(Compile *c, Jit **out);
/* The same with the text of the kernels changed by `edit` (NULL: not) before it is built: how tests
 * show that they notice a wrong kernel. */
typedef void TextEdit(Text *text, void *data);
ampc_status jit_load_edited(Compile *c, TextEdit *edit, void *data, Jit **out);
/* After a failure: where the compiler refused the text of an op, its words are told at their places
 * in the job, and the last error is empty: nothing is left to say. */
ampc_status jit_tell(Compile *c, ampc_status status);
void jit_unload(Jit *jit); /* NULL is fine */

/* A text as emit_kernels and emit_unit write it, built or found in the cache: a library to dlclose
 * that has all kernels named. May be called from several threads at once. */
ampc_status jit_open(const Text *text, const char *const *names, uint32_t n, void **out_library);
ampc_cpu_kernel *jit_find(void *library, const char *name); /* NULL with ampc_last_error */
