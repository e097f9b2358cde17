/* Runs CUDA kernels as C on this machine. The threads of a block are fibers. One runs at a time, in
 * a chosen order, until it waits or ends. A process runs one launch at a time; callers hold a lock.
 *
 * Blocks run one after the other. A block reads the stores of earlier blocks only after it
 * incremented a counter after them. A barrier, a fence and an atomic addition by one thread publish
 * a block's stores. The addition, a fence and a barrier make them readable.
 *
 * A launch ends with a fault if a shuffle names a missing lane or reads a lane that does not
 * participate, if an instruction of tensor cores (matrix.h) is not executed by all 32, if threads
 * of a block wait at different barriers, or if some threads wait and others have ended. memory.c
 * adds faults of accesses. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum SimtOrder { SIMT_FORWARD, SIMT_REVERSE, SIMT_RANDOM, SIMT_ORDERS } SimtOrder;

typedef struct SimtLaunch SimtLaunch;
struct SimtLaunch {
  void (*thread)(void *const *args); /* the kernel, as one of its threads */
  /* If not NULL, it executes warps instead: `lanes` threads from `first` on, until each waits at a
   * barrier or has ended. The last functions of this file are for it. */
  void (*warp)(const SimtLaunch *l, unsigned first, unsigned lanes);
  void *const *args;
  unsigned grid, block;
  char *shared; /* shared memory, filled with NaN before each block */
  size_t shared_size;
  SimtOrder order; /* order of the lanes in a warp, of the warps and of the blocks */
  unsigned seed;   /* for SIMT_RANDOM */
};

typedef struct SimtFault {
  char text[200];   /* "": no fault */
  uintptr_t memory; /* an address, or 0 */
} SimtFault;

enum { SIMT_MAX_BLOCK = 1024, SIMT_MAX_GRID = 65000 };

/* Runs a launch. False after a fault, in *out_fault. *out_waited: it had a barrier or shuffle. */
bool simt_run(const SimtLaunch *l, SimtFault *out_fault, bool *out_waited);

/* ---- for memory.c ---- */

/* Names a hook that kernels built with -fsanitize=thread call. The C name must differ, because gcc
 * with a sanitizer declares the hooks itself, and not always like clang calls them. */
#define TSAN(name) __asm__("__tsan_" #name)

typedef struct SimtNow { /* the running thread */
  uint16_t block, thread;
  uint16_t epoch; /* number of barriers that the block has passed */
} SimtNow;
extern SimtNow simt_now;

/* True if an access of another block is ordered before the running thread's next accesses. */
bool simt_is_published(SimtNow other);
/* Adds atomically, with fence and barrier, for the CPU text: its blocks have one thread. */
void simt_publish(void);
/* Records the fault if it is the first of the current launch, which continues. */
void simt_fault(uintptr_t memory, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool simt_on_stack(uintptr_t at);

/* ---- for matrix.c ---- */

/* A thread reads 16 bytes at `at` bytes from the start of shared memory. */
void simt_read_row(unsigned thread, uint32_t at, void *row);

/* ---- for SimtLaunch.warp ---- */

bool simt_has_begun(unsigned thread); /* false: it has executed nothing in this block */
void simt_become(unsigned thread);    /* the next accesses and fences are those of `thread` */
void simt_wait(unsigned thread, unsigned place); /* it waits at the barrier at `place` */
void simt_shuffled(void); /* lanes have exchanged values: *out_waited of simt_run() */
void simt_end(unsigned thread);
bool simt_failed(void);           /* a fault was found: return */
unsigned simt_random(unsigned n); /* a number below n */
void simt_fence(void);
unsigned simt_count(unsigned *at, unsigned n); /* an atomic addition; returns the old value */
