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

/* From now on, the PTX for these architectures ("sm_75,sm_90") is executed instead of the CUDA text
 * (../ptx), and edits of the text change the PTX. False: NVRTC cannot compile for any of them. */
bool lockstep_use_ptx(const char *targets);

/* From now on, only the CPU text of kernels in doubles runs. No GPU runs such kernels; checking
 * them takes 40 % of the time of `selftest --brief`. */
void lockstep_skip_wide(void);

/* From now on, a line is printed for each job: a hash of all that the check takes from the
 * compiler. tests/kept.py uses these lines as the key of results. `only`: the jobs are not checked.
 */
void lockstep_tell(bool only);
