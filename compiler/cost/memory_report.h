/* How much memory a compiled job takes, before it runs. Shared by ampc and amp. */
#pragma once
#include "compiler/base/compile.h"
#include "ampc_plan.h"

/* "512MB" or "512M": powers of 1000 with a B, of 1024 without or with iB, as GNU's tools have it; a
 * plain number is bytes. False: not of that form, not above 0 or beyond 2^63. */
bool memory_read_size(const char *text, int64_t *out);
const char *memory_text(Arena *arena, int64_t bytes); /* "443502916 bytes (444 MB)" */

/* All spaces of the program; without the scratch space of vendors' libraries. */
int64_t memory_of_spaces(const ampc_program *p);

/* After pass plan: space by space, the total, and what share of memory_of_tensors it is. `library`:
 * scratch space outside of WORK, or -1 where it is not known. */
void memory_report(const Compile *c, int64_t library, Text *out);
const char *memory_line(const Compile *c, int64_t library); /* the total alone */

/* Bytes that a program needs in all; negative when that could not be found out. */
typedef int64_t MemoryNeed(const ampc_program *p);

/* Says why the job was refused, and the largest batch that fits: the settings to use or, where a
 * batch of 1 does not fit, what that needs. Compiles the job again with other batch sizes. */
const char *memory_refusal(Compile *c, int64_t need, int64_t limit, const char *limit_name,
                           MemoryNeed *need_of);
