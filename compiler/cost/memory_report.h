/* The memory of a compiled job, before it runs. ampc and amp share this file. */
#pragma once
#include "compiler/base/compile.h"
#include "ampc_plan.h"

/* Reads "512MB" or "512M": powers of 1000 with B; powers of 1024 without B or with iB, as in GNU
 * tools. A plain number is bytes. Returns false for any other form and for values below 1 or from
 * 2^63 up. */
bool memory_read_size(const char *text, int64_t *out);
const char *memory_text(Arena *arena, int64_t bytes); /* "443502916 bytes (444 MB)" */

/* The sum of all spaces of the program, without the scratch space of vendor libraries. */
int64_t memory_of_spaces(const ampc_program *p);

/* Valid after pass plan. Prints each space, the total, and the ratio of the total to
 * memory_of_tensors. `library`: bytes of scratch outside WORK; -1: unknown. */
void memory_report(const Compile *c, int64_t library, Text *out);
const char *memory_line(const Compile *c, int64_t library); /* only the total */

/* All bytes that a program needs; negative if they could not be determined. */
typedef int64_t MemoryNeed(const ampc_program *p);

/* Says why the job is refused, and gives the settings of the largest batch that fits, or the need
 * of a batch of 1 if that does not fit. Compiles the job again with other batch sizes. */
const char *memory_refusal(Compile *c, int64_t need, int64_t limit, const char *limit_name,
                           MemoryNeed *need_of);
