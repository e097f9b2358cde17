/* What a kernel computes and how, whatever its values are called. */
#pragma once
#include "compiler/graph/ir.h"
#include <xxhash.h>

/* Of the text of emit_kernel. It carries names that say nothing about what it does: its own
 * (fc1_gelu), its parameters' (relu, relu_2_at), those of its values (t14), comments. So the key is
 * of the text without comments and line breaks and with these names replaced by numbers; kernels of
 * the same key compute the same. 128 bits stand for the text: nobody attacks their own job. */
XXH128_hash_t kernel_key(Arena *arena, const Text *kernel, const char *name);
XXH128_hash_t group_key(Compile *c, uint32_t group); /* of a group's own kernel */

/* kernel_facts.c: groups with equal facts have equal kernels; the other way round it need not be.
 */
typedef struct KernelFacts KernelFacts;
KernelFacts *kernel_facts(Compile *c); /* when the graph is what it will be */
XXH128_hash_t facts_of(KernelFacts *f, uint32_t group);
XXH128_hash_t facts_of_part(KernelFacts *f, const Group *part); /* of a launch, by itself */
