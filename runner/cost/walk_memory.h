/* The memory of walk.c. It counts accesses. Only shared memory and constants have contents. */
#pragma once
#include "walk.h"

typedef struct WalkAccess { /* an access of a warp to memory */
  const PtxInstruction *instruction;
  uint32_t bytes;  /* per lane */
  uint32_t n;      /* active lanes */
  uint64_t at[32]; /* addresses of the active lanes */
} WalkAccess;

typedef struct WalkMemory {
  Arena *arena;
  uint64_t *slot; /* hash set of the sectors that the block has read; 0: free */
  uint32_t cap, n;
  unsigned char *shared; /* shared memory of the block */
  uint32_t shared_size;
  const PtxKernel *kernel; /* its constants are read */
} WalkMemory;

void walk_memory_open(WalkMemory *m, Arena *arena, const PtxKernel *k);
void walk_memory_clear(WalkMemory *m);
/* Counts an access. Returns the cycles until a loaded value is ready. */
uint32_t walk_memory(WalkMemory *m, const WalkLaunch *launch, const WalkAccess *a,
                     WalkCounts *counts);
/* walk_memory_value returns the value that load i reads at address `at`. walk_memory_store stores
 * one, but only in shared memory. */
uint64_t walk_memory_value(const WalkMemory *m, const WalkLaunch *launch, const PtxInstruction *i,
                           uint64_t at);
void walk_memory_store(WalkMemory *m, const PtxInstruction *i, uint64_t at, uint64_t value);
/* Returns argument n's address. Arguments are so far apart that no index leads from one to
 * another. */
uint64_t walk_argument_at(const WalkLaunch *launch, uint32_t n);
