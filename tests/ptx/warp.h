/* Executes PTX kernels on the machine of ../simt, which has blocks, barriers and the shadow of
 * memory. Lanes of a warp execute together. Lanes that diverge execute one group after the other:
 * the group at the lowest instruction first, or in SIMT_RANDOM order any group.
 *
 * These are faults, in addition to those of machine.h and memory.h: a shuffle whose mask names
 * lanes that do not come, an instruction of tensor cores without a lane, an access outside of
 * shared or constant memory, and a load through the read-only cache (.nc) of what the launch has
 * written. */
#pragma once
#include "code.h"
#include "machine.h"

/* Sets warp and shared memory of `l`, whose other fields are set. */
void ptx_prepare(SimtLaunch *l, const PtxImage *k);
unsigned long long ptx_executed(void); /* instructions of lanes, of all launches so far */
