/* CUDA kernels as C on this machine: the threads of a block are fibers that run one at a time, each
 * until it waits or ends, in a chosen order. One launch at a time in a process: callers hold a
 * lock.
 *
 * Blocks run one after the other. What they store is seen by a block that has counted after them:
 * it is published by a barrier, a fence and an atomic addition of one thread, and taken by the
 * addition, a fence and a barrier.
 *
 * A launch ends with a fault when a shuffle lacks a lane that it names or reads one that takes no
 * part, when threads of a block wait at different barriers, or when some wait and others have
 * ended. memory.c adds what it sees of the accesses. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum SimtOrder { SIMT_FORWARD, SIMT_REVERSE, SIMT_RANDOM, SIMT_ORDERS } SimtOrder;

typedef struct SimtLaunch {
  void (*thread)(void *const *args); /* the kernel, as one of its threads */
  void *const *args;
  unsigned grid, block;
  char *shared; /* its shared memory; filled with NaN before each block */
  size_t shared_size;
  SimtOrder order; /* of lanes in a warp, of warps, of blocks */
  unsigned seed;   /* of SIMT_RANDOM */
} SimtLaunch;

typedef struct SimtFault {
  char text[200];   /* "" : none */
  uintptr_t memory; /* where, or 0 */
} SimtFault;

enum { SIMT_MAX_BLOCK = 1024, SIMT_MAX_GRID = 65000 };

/* False on a fault: *out_fault. *out_waited: some thread met a barrier or a shuffle. */
bool simt_run(const SimtLaunch *l, SimtFault *out_fault, bool *out_waited);

/* ---- for memory.c ---- */

/* Names a hook that kernels built with -fsanitize=thread call. Its own name in C is another: with
 * any sanitizer gcc declares these names itself, not always as clang calls them. */
#define TSAN(name) __asm__("__tsan_" #name)

typedef struct SimtNow { /* who runs */
  uint16_t block, thread;
  uint16_t epoch; /* barriers that the block has passed */
} SimtNow;
extern SimtNow simt_now;

/* Whether an access of another block came before all that the running thread does now. */
bool simt_is_published(SimtNow other);
/* The CPU text's atomic addition does it all by itself: its blocks have one thread. */
void simt_publish(void);
/* Notes a fault of the current launch, the first one only; it goes on. */
void simt_fault(uintptr_t memory, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool simt_on_stack(uintptr_t at);
