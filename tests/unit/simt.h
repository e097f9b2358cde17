/* CUDA kernels as C on this machine: a block's threads are fibers that run one at a time. A warp,
 * picked at random, runs on through its shuffles until all its threads wait for other warps; inside
 * it the order is random too. What stands here takes the place of the CUDA compiler; test_simt.c
 * puts it before the kernels' text.
 *
 * It ends the program when threads of a block wait at different barriers, when some have ended and
 * others wait, or when a shuffle lacks a lane of its warp. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifndef __x86_64__
#  include <ucontext.h>
#endif

#define __global__ static
#define __device__
#define __forceinline__ inline
#define __shared__      static _Thread_local

enum { SIMT_MAX_THREADS = 1024, SIMT_STACK = 64 << 10 };
typedef struct SimtSize {
  unsigned x, y, z;
} SimtSize;
static _Thread_local SimtSize threadIdx, blockIdx, blockDim, gridDim;

/* A stopped fiber. Switching by hand: ucontext asks the kernel for the signal mask every time. */
#ifdef __x86_64__
typedef void *SimtContext; /* its stack pointer */
__asm__(".text\n"
        "simt_switch_stacks:\n"
        "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov (%rsi), %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
        "  ret\n");
void simt_switch_stacks(SimtContext *from, SimtContext *to) __attribute__((visibility("hidden")));
#  define simt_switch(from, to) simt_switch_stacks(from, to)

static void simt_make(SimtContext *c, char *stack, size_t size, void (*run)(void))
{
  void **top = (void **)(stack + size);
  *--top = NULL; /* so that run finds the stack aligned as after a call */
  *--top = (void *)run;
  for (int i = 0; i < 6; i++) *--top = NULL;
  *c = top;
}
#else
typedef ucontext_t SimtContext;
#  define simt_switch(from, to) swapcontext(from, to)

static void simt_make(SimtContext *c, char *stack, size_t size, void (*run)(void))
{
  getcontext(c);
  c->uc_stack.ss_sp = stack;
  c->uc_stack.ss_size = size;
  c->uc_link = NULL;
  makecontext(c, run, 0);
}
#endif

enum { CAN_RUN, AT_BARRIER, AT_SHUFFLE, ENDED };

typedef struct SimtThread {
  SimtContext context;
  int state, line;
  unsigned shuffles;
  long long slot[2]; /* what its lane offers; two, so that the next shuffle cannot spoil this one */
} SimtThread;

static _Thread_local struct {
  SimtThread thread[SIMT_MAX_THREADS];
  SimtContext scheduler;
  char *stacks; /* of all threads */
  unsigned current, random;
  void (*kernel)(void *const *args);
  void *const *args;
} simt;

static void simt_fail(const char *what, unsigned thread)
{
  fprintf(stderr, "simt: block %u, thread %u: %s\n", blockIdx.x, thread, what);
  exit(1);
}

static void simt_wait(int state, int line)
{
  SimtThread *t = &simt.thread[simt.current];
  t->state = state;
  t->line = line;
  simt_switch(&t->context, &simt.scheduler);
}

#define __syncthreads() simt_wait(AT_BARRIER, __LINE__)

static void simt_shuffle(void *value, size_t size, unsigned step, int line)
{
  unsigned me = simt.current, turn = simt.thread[me].shuffles++ & 1;
  memcpy(&simt.thread[me].slot[turn], value, size);
  simt_wait(AT_SHUFFLE, line);
  memcpy(value, &simt.thread[me ^ step].slot[turn], size);
}

#define __shfl_xor_sync(mask, value, step)                                                         \
  ({                                                                                               \
    __typeof__(value) simt_value = (value);                                                        \
    simt_shuffle(&simt_value, sizeof simt_value, (unsigned)(step), __LINE__);                      \
    simt_value;                                                                                    \
  })

static inline unsigned __float_as_uint(float x)
{
  unsigned bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float __uint_as_float(unsigned bits)
{
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void simt_thread_main(void)
{
  simt.kernel(simt.args);
  simt_wait(ENDED, 0);
}

static void simt_start(unsigned i)
{
  SimtThread *t = &simt.thread[i];
  simt_make(&t->context, simt.stacks + (size_t)i * SIMT_STACK, SIMT_STACK, simt_thread_main);
  t->state = CAN_RUN;
  t->shuffles = 0;
}

static unsigned simt_random(unsigned n)
{
  simt.random = simt.random * 1664525u + 1013904223u;
  return (simt.random >> 8) % n;
}

/* Lets threads [from, to) go on if all of them wait, at the same place. */
static int simt_release(unsigned from, unsigned to, int state)
{
  for (unsigned i = from; i < to; i++)
    if (simt.thread[i].state != state) return 0;
  for (unsigned i = from; i < to; i++) {
    if (simt.thread[i].line != simt.thread[from].line) simt_fail("waits at another place", i);
    simt.thread[i].state = CAN_RUN;
  }
  return 1;
}

/* A warp until no thread of it can go on without other warps. */
static int simt_run_warp(unsigned from, unsigned to)
{
  int ran = 0;
  do {
    unsigned n = to - from, first = simt_random(n), backwards = simt_random(2);
    for (unsigned k = 0; k < n; k++) {
      unsigned i = from + (backwards ? first + n - k : first + k) % n;
      if (simt.thread[i].state != CAN_RUN) continue;
      simt.current = threadIdx.x = i;
      simt_switch(&simt.scheduler, &simt.thread[i].context);
      ran = 1;
    }
  } while (simt_release(from, to, AT_SHUFFLE));
  return ran;
}

static void simt_block(void (*kernel)(void *const *), void *const *args, unsigned block,
                       unsigned blocks, unsigned threads)
{
  blockIdx.x = block;
  gridDim.x = blocks;
  blockDim.x = threads;
  simt.kernel = kernel;
  simt.args = args;
  simt.random += block + 1;
  if (!simt.stacks)
    simt.stacks = mmap(NULL, (size_t)SIMT_MAX_THREADS * SIMT_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (unsigned i = 0; i < threads; i++) simt_start(i);
  unsigned warps = (threads + 31) / 32;
  do {
    for (int ran = 1; ran;) {
      ran = 0;
      unsigned first = simt_random(warps);
      for (unsigned w = 0; w < warps; w++) {
        unsigned from = (first + w) % warps * 32;
        ran |= simt_run_warp(from, from + 32 < threads ? from + 32 : threads);
      }
    }
  } while (simt_release(0, threads, AT_BARRIER));
  for (unsigned i = 0; i < threads; i++)
    if (simt.thread[i].state != ENDED) simt_fail("waits for threads that do not come", i);
}
