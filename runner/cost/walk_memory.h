/* Memory as walk.c sees it: accesses are counted, only shared memory and constants are there. */
#pragma once
#include "walk.h"

typedef struct WalkAccess { /* of a warp */
  const PtxInstruction *instruction;
  uint32_t bytes; /* a lane */
  uint32_t n;     /* lanes that take part */
  uint64_t at[32];
} WalkAccess;

typedef struct WalkMemory { /* sectors that the block has read */
  Arena *arena;
  uint64_t *slot; /* 0: free */
  uint32_t cap, n;
  unsigned char *shared; /* the block's */
  uint32_t shared_size;
  const PtxKernel *kernel; /* whose constants are read */
} WalkMemory;

void walk_memory_open(WalkMemory *m, Arena *arena, const PtxKernel *k);
void walk_memory_clear(WalkMemory *m);
/* Counts an access; cycles until its value is there. */
uint32_t walk_memory(WalkMemory *m, const WalkLaunch *launch, const WalkAccess *a,
                     WalkCounts *counts);
/* Of an element of the instruction's type: what a load finds; and a store to shared memory. */
uint64_t walk_memory_value(const WalkMemory *m, const WalkLaunch *launch, const PtxInstruction *i,
                           uint64_t at);
void walk_memory_store(WalkMemory *m, const PtxInstruction *i, uint64_t at, uint64_t value);
/* Where argument n begins: each is far from the others. */
uint64_t walk_argument_at(const WalkLaunch *launch, uint32_t n);
