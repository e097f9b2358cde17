/* Reports the memory that a compiled job needs, before it runs. Both ampc and amp use this file. */
#pragma once
#include "compiler/base/compile.h"
#include "ampc_plan.h"

/* Reads "512MB" or "512M": powers of 1000 with B; powers of 1024 without B or with iB, as in GNU
 * tools. A plain number is bytes. Returns false for any other form and for values below 1 or from
 * 2^63 up. */
bool memory_read_size(const char *text, int64_t *out);
const char *memory_text(Arena *arena, int64_t bytes); /* "443502916 bytes (444 MB)" */

/* Returns the bytes of all spaces of the program, without the scratch space of vendor libraries. */
int64_t memory_of_spaces(const ampc_program *p);

/* Prints each space, the total, and the ratio of the total to the bytes of all tensors. Valid after
 * pass plan. `library`: bytes of scratch outside WORK; -1: unknown. */
void memory_report(const Compile *c, int64_t library, Text *out);
const char *memory_line(const Compile *c, int64_t library); /* the total */

/* Returns all bytes that a program needs; a negative number if they cannot be determined. */
typedef int64_t MemoryNeed(const ampc_program *p);

/* Returns a message why the job is refused, with the settings of the largest batch that fits, or
 * the bytes that a batch of 1 needs if that does not fit. Compiles the job again with other batch
 * sizes. */
const char *memory_refusal(Compile *c, int64_t need, int64_t limit, const char *limit_name,
                           MemoryNeed *need_of);
