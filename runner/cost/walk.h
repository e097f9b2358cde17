/* Executes kernels on the host to count the instructions of a few blocks, the sectors of memory
 * that their warps access, and the cycles of the longest warp if it never waits for a unit.
 *
 * Note [walking]
 * To walk a block is to execute it this way, as opposed to the walk of a kernel over elements.
 * Loops, bounds and indices of most kernels depend on the position of a thread and not on data, so
 * the counts of a walked block are exact. At most `blocks` blocks are walked, fewer if they are
 * long; they are spread over the grid and include the first and the last.
 *
 * Only constants and shared memory have contents. Global memory reads as a pattern (ones or zeros),
 * or as ids that are spread evenly over the rows of a table. Real ids are uneven: in a text some
 * are frequent, so the longest warp takes longer. Warps run one after the other up to the next
 * barrier. An atomic addition returns the number of the block, as if blocks ran in order. Work that
 * the kernel leaves to its last block is therefore counted once, and it finds in L2 what the other
 * blocks have stored.
 *
 * If a branch depends on data, all lanes of a warp take the same side. Lanes that diverge join
 * again at the lowest pc that any of them has. */
#pragma once
#include "ptx.h"

typedef struct WalkArgument {
  uint64_t pattern; /* eight bytes that the argument's memory repeats, such as 1.0 in its type */
  /* rows > 0: instead of the pattern, elements of id_bytes bytes are ids in [0, rows) */
  uint64_t rows, id_bytes;
  uint32_t skew; /* address modulo 256 */
  bool absent;   /* the null pointer */
} WalkArgument;

typedef struct WalkLaunch {
  uint32_t grid, block;
  uint32_t blocks;  /* the largest number of blocks to walk */
  uint64_t most;    /* approximate limit of warp instructions; at least one block is walked */
  uint64_t endless; /* limit of warp instructions for one warp */
  const WalkArgument *arguments;
  uint32_t n_arguments;
  /* cycles until a load has its value */
  uint32_t latency_shared, latency_l1, latency_l2, latency_dram;
} WalkLaunch;

/* Sums over the whole launch, scaled from the walked blocks. */
typedef struct WalkCounts {
  double instructions;     /* executed by active threads; only instructions with slots */
  double slots;            /* machine instructions executed by warps */
  double pipe[PIPE_COUNT]; /* slots by unit; in PIPE_lsu one for each line of 128 bytes */
  double sectors_read, sectors_written; /* sectors of 32 bytes, summed over warps */
  double sectors_once;                  /* sectors read, each counted once per block */
  double longest;                       /* cycles of the longest warp */
  double mean;                          /* the same of a block, mean over the blocks */
  double walked;                        /* fraction of the grid that was walked */
} WalkCounts;

/* Walks a kernel. False: *why names an unknown instruction or a warp that does not end. */
bool walk_kernel(Arena *arena, const PtxKernel *k, const WalkLaunch *launch, WalkCounts *out,
                 const char **why);

/* walk_value.c: computes the result of an instruction other than a load, a store or a branch, for
 * one lane. False: the instruction is unknown. */
bool walk_value(const PtxInstruction *i, const uint64_t in[], uint64_t *out);
