/* Walks kernels as a GPU would, to count: which instructions the threads of a few blocks execute,
 * which sectors of memory their warps touch, and how long the longest of them takes when nobody is
 * in its way.
 *
 * Note [walking]
 * Loops, bounds and indices of kernels depend on where a thread stands, not on data, so this is
 * exact for a block that is walked; `blocks` of the grid are, spread evenly, the first and the last
 * among them, fewer where they are long. Memory is not there but for constants: an argument reads
 * as a pattern (ones, zeros), a shuffle gives a lane its own value. Warps run one after the other,
 * so barriers wait for nobody and shared memory has what the warps before have left there. An
 * atomic addition gives the number of the block, as if blocks came in their order: what is left to
 * the last one is counted once, and finds in L2 what the others have stored. Where data decides (a
 * comparison of values) lanes of a warp go one way together. Lanes that part meet again at the
 * lowest instruction that any of them has before it. */
#pragma once
#include "ptx.h"

typedef struct WalkArgument {
  uint64_t pattern; /* eight bytes that it consists of: 1.0 in its type */
  uint32_t skew;    /* bytes behind an address that is a multiple of 256 */
  bool absent;      /* the null pointer */
} WalkArgument;

typedef struct WalkLaunch {
  uint32_t grid, block;
  uint32_t blocks;  /* to walk, at most */
  uint64_t most;    /* instructions of a warp to walk in all, about; at least a block is */
  uint64_t endless; /* instructions after which a warp is given up */
  const WalkArgument *arguments;
  uint32_t n_arguments;
  /* cycles until a load has its value */
  uint32_t latency_shared, latency_l1, latency_l2, latency_dram;
} WalkLaunch;

/* Sums over the whole launch, scaled up from what was walked; of one block with grid 1. */
typedef struct WalkCounts {
  double instructions;     /* of threads that take part; those with slots */
  double slots;            /* of warps */
  double pipe[PIPE_COUNT]; /* of warps, likewise; PIPE_lsu: passes, one a line of 128 bytes */
  double sectors_read, sectors_written; /* of 32 bytes, as warps ask for them */
  double sectors_once;                  /* those read that the same block had not read before */
  double longest;                       /* cycles of the longest warp */
  double walked;                        /* part of the grid that was */
} WalkCounts;

/* False with a reason: what is not understood, or a warp that does not end. */
bool walk_kernel(Arena *arena, const PtxKernel *k, const WalkLaunch *launch, WalkCounts *out,
                 const char **why);

/* One value: the result of an instruction that is no load, store or branch, from its operands.
 * False: it is not known here. walk_value.c */
bool walk_value(const PtxInstruction *i, const uint64_t in[], uint64_t *out);
