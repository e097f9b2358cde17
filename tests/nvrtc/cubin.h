/* What kernels of a cubin need of a GPU, as the ELF file says. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct KernelNeeds {
  unsigned registers; /* of a thread */
  unsigned shared;    /* bytes of a block, static */
  unsigned local;     /* bytes of a thread: spilled registers, or arrays that are no registers */
} KernelNeeds;

/* False: no such kernel, or not a cubin. */
bool cubin_needs(const char *bytes, size_t size, const char *kernel, KernelNeeds *out);
