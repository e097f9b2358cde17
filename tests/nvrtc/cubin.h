/* The resources that kernels of a cubin need on a GPU, read from the ELF file. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct KernelNeeds {
  unsigned registers; /* per thread */
  unsigned shared;    /* static bytes per block */
  unsigned local;     /* bytes per thread: spilled registers, or arrays in memory */
} KernelNeeds;

/* Reads a kernel's resources. False if the bytes are not a cubin or contain no such kernel. */
bool cubin_needs(const char *bytes, size_t size, const char *kernel, KernelNeeds *out);
