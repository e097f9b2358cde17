/* Keys that identify what a kernel computes and how, independent of the names of its values. */
#pragma once
#include "compiler/command/command.h"
#include <xxhash.h>

/* Returns the key of a text of emit_kernel(). The text has comments and names that do not affect
 * its result: its own name (fc1_gelu), and the names of its parameters (relu, relu_2_at) and
 * temporaries (t14). So comments and line breaks are removed and these names are replaced by
 * numbers before hashing. Kernels with equal keys compute equal bits. A hash of 128 bits suffices:
 * no user attacks their own job. */
XXH128_hash_t kernel_key(Arena *arena, const Text *kernel, const char *name);
XXH128_hash_t group_key(Compile *c, uint32_t group); /* the key of a group's own kernel */

/* kernel_facts.c: Groups with equal facts have equal kernels. The converse need not hold. */
typedef struct KernelFacts KernelFacts;
KernelFacts *kernel_facts(Compile *c); /* call when the graph is final */
XXH128_hash_t facts_of(KernelFacts *f, uint32_t group);
XXH128_hash_t facts_of_part(KernelFacts *f,
                            const KernelPart *part); /* a part of a launch by itself */
