/* The memory of walk.c: it counts accesses, and stores contents of shared memory and constants
 * only. */
#pragma once
#include "walk.h"

typedef struct WalkAccess { /* of a warp */
  const PtxInstruction *instruction;
  uint32_t bytes; /* per lane */
  uint32_t n;     /* active lanes */
  uint64_t at[32];
} WalkAccess;

typedef struct WalkMemory { /* with the set of sectors that the block has read */
  Arena *arena;
  uint64_t *slot; /* 0: free */
  uint32_t cap, n;
  unsigned char *shared; /* of the block */
  uint32_t shared_size;
  const PtxKernel *kernel; /* its constants are read */
} WalkMemory;

void walk_memory_open(WalkMemory *m, Arena *arena, const PtxKernel *k);
void walk_memory_clear(WalkMemory *m);
/* Counts an access. Returns the cycles until its value is ready. */
uint32_t walk_memory(WalkMemory *m, const WalkLaunch *launch, const WalkAccess *a,
                     WalkCounts *counts);
/* The value that a load of the instruction's type reads; and a store, which changes shared memory
 * only. */
uint64_t walk_memory_value(const WalkMemory *m, const WalkLaunch *launch, const PtxInstruction *i,
                           uint64_t at);
void walk_memory_store(WalkMemory *m, const PtxInstruction *i, uint64_t at, uint64_t value);
/* The address of argument n. Arguments are far from each other. */
uint64_t walk_argument_at(const WalkLaunch *launch, uint32_t n);
