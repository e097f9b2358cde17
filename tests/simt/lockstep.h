/* Replaces runner/jit/jit.c in the programs of this folder. A job runs as on the CPU, but each
 * launch runs the CPU text, restores memory, and runs the CUDA text like a GPU, in several orders.
 * The written words are compared. The result of the last CUDA run stays in memory. */
#pragma once
#include "runner/jit/jit.h"

typedef struct LockstepTotals {
  unsigned kernels, checked, unchecked; /* unchecked launches ran only the CPU text */
  unsigned long long blocks, threads;
  unsigned faults; /* kernels with a fault, each of which was printed */
} LockstepTotals;
LockstepTotals lockstep_totals(void);
