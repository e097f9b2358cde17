/* Stands in for runner/jit/jit.c in programs of this folder: a job runs as on the CPU, but each
 * launch is done by the CPU text, taken back, and done again by the CUDA text as a GPU would, in
 * several orders; what was written is compared. The result of the last CUDA run stays. */
#pragma once
#include "runner/jit/jit.h"

typedef struct LockstepTotals {
  unsigned kernels, checked, unchecked; /* checked launches; others ran as CPU text alone */
  unsigned long long blocks, threads;
  unsigned faults; /* kernels with one; each has been printed */
} LockstepTotals;
LockstepTotals lockstep_totals(void);
