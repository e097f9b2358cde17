/* Keys that identify what a kernel computes and how, independent of the names of its values. */
#pragma once
#include "compiler/command/command.h"
#include <xxhash.h>

/* Returns the key of a group's own kernel. Kernels with equal keys compute equal bits, also in
 * different programs. A hash of 128 bits suffices: no user attacks their own job. */
XXH128_hash_t kernel_key(Compile *c, uint32_t group);
/* Returns the hash of the kernel's text without names: emit_bare(). */
XXH128_hash_t kernel_text_key(Compile *c, uint32_t group);

/* facts.c: Return the hash of the facts of a group's kernel, or of one part alone. Groups with
 * equal facts have equal kernels. The converse need not hold. */
typedef struct KernelFacts KernelFacts;
KernelFacts *kernel_facts(Compile *c); /* call when the graph is final */
XXH128_hash_t facts_of(KernelFacts *f, uint32_t group);
XXH128_hash_t facts_of_part(KernelFacts *f, const KernelPart *part);
