/* Runs the threads of CUDA blocks as fibers: see machine.h. */
#include "machine.h"
#include "matrix.h"
#include "memory.h"
#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WARP = 32, STACK = 1 << 20, PAGE = 4096, DEEPEST = 32 };

/* The variables that prelude.h declares. Kernels read them as constants. */
typedef struct SimtSize {
  unsigned x, y, z;
} SimtSize;
SimtSize threadIdx, blockIdx, blockDim, gridDim;
SimtNow simt_now;

/* ---- switching stacks ---------------------------------------------------------------------------
 * On x86-64 by hand: ucontext makes a system call for the signal mask at every switch. */

#ifdef __x86_64__
typedef void *Context; /* the stack pointer of a stopped fiber */
__asm__(".text\n"
        "simt_switch_stacks:\n"
        "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov (%rsi), %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
        "  ret\n");
void simt_switch_stacks(Context *from, Context *to) __attribute__((visibility("hidden")));
#  define switch_context(from, to) simt_switch_stacks(from, to)

static void make_context(Context *c, char *stack, void (*run)(void))
{
  void **top = (void **)(void *)(stack + STACK);
  *--top = NULL; /* aligns the stack as after a call */
  *--top = (void *)(uintptr_t)run;
  for (int i = 0; i < 6; i++) *--top = NULL;
  *c = top;
}
#else
#  include <ucontext.h>
typedef ucontext_t Context;
#  define switch_context(from, to) swapcontext(from, to)

static void make_context(Context *c, char *stack, void (*run)(void))
{
  getcontext(c);
  c->uc_stack.ss_sp = stack;
  c->uc_stack.ss_size = STACK;
  c->uc_link = NULL;
  makecontext(c, run, 0);
}
#endif

/* ---- state ---- */

typedef enum FiberState { NOT_BEGUN, CAN_RUN, AT_BARRIER, AT_SHUFFLE, ENDED } FiberState;

typedef struct Fiber {
  Context context;
  FiberState state;
  uint64_t place;         /* call path and position of its barrier or shuffle */
  uint64_t path[DEEPEST]; /* hashes of the active calls */
  unsigned depth;
  unsigned mask, step; /* mask: of its shuffle */
  uint64_t bits, result;
  SimtMatrix *matrix; /* the instruction at which it waits; NULL: a shuffle */
  uint32_t *words;    /* its operands and results */
  unsigned stack;
  unsigned fenced; /* 1 + the epoch of its last fence */
  bool counted;    /* it has made an atomic addition */
} Fiber;

static struct {
  Fiber fiber[SIMT_MAX_BLOCK];
  Fiber *current;
  Context scheduler;
  char *stacks;
  unsigned free_stack[SIMT_MAX_BLOCK], n_free;
  const SimtLaunch *launch;
  SimtFault fault;
  bool waited;
  unsigned random;
  uint16_t published[SIMT_MAX_GRID]; /* for each block: stores before this epoch are published */
  /* n_published: number of blocks; the running one sees published stores from epoch sees_from on */
  unsigned n_published, sees_from;
} machine;

void simt_fault(uintptr_t memory, const char *fmt, ...)
{
  if (machine.fault.text[0]) return;
  machine.fault.memory = memory;
  va_list args;
  va_start(args, fmt);
  vsnprintf(machine.fault.text, sizeof machine.fault.text, fmt, args);
  va_end(args);
}

bool simt_on_stack(uintptr_t at)
{
  return at - (uintptr_t)machine.stacks < (uintptr_t)SIMT_MAX_BLOCK * STACK;
}

static void make_stacks(void)
{
  size_t size = (size_t)SIMT_MAX_BLOCK * STACK;
  machine.stacks =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (machine.stacks == MAP_FAILED) abort();
  for (size_t i = 0; i < SIMT_MAX_BLOCK; i++) mprotect(machine.stacks + i * STACK, PAGE, PROT_NONE);
}

/* ---- functions that kernels call ---- */

void simt_barrier(unsigned place);
uint64_t simt_shuffle(unsigned place, unsigned mask, uint64_t bits, unsigned step);
void simt_matrix(unsigned place, SimtMatrix *instruction, uint32_t *words);
unsigned long long simt_shared_address(const void *at);
void simt_enter(void *caller) TSAN(func_entry);
void simt_leave(void) TSAN(func_exit);

/* Enters a function. A barrier in it counts as two if it is reached through different calls. */
void simt_enter(void *caller)
{
  Fiber *f = machine.current;
  if (!f) return;
  uint64_t outer = f->path[f->depth % DEEPEST];
  f->path[++f->depth % DEEPEST] = (outer ^ (uintptr_t)caller) * 0x9E3779B97F4A7C15u;
}

void simt_leave(void)
{
  if (machine.current) machine.current->depth--;
}

static void stop(FiberState state, unsigned place)
{
  Fiber *f = machine.current;
  f->state = state;
  f->place = f->path[f->depth % DEEPEST] + place;
  switch_context(&f->context, &machine.scheduler);
}

void simt_barrier(unsigned place)
{
  stop(AT_BARRIER, place);
}

uint64_t simt_shuffle(unsigned place, unsigned mask, uint64_t bits, unsigned step)
{
  Fiber *f = machine.current;
  f->mask = mask;
  f->bits = bits;
  f->step = step;
  f->matrix = NULL;
  stop(AT_SHUFFLE, place);
  return f->result;
}

/* Executes an instruction with all lanes of the warp. It waits like a shuffle that names them. */
void simt_matrix(unsigned place, SimtMatrix *instruction, uint32_t *words)
{
  Fiber *f = machine.current;
  f->mask = UINT_MAX;
  f->step = 0;
  f->matrix = instruction;
  f->words = words;
  stop(AT_SHUFFLE, place);
}

/* Returns an address as ldmatrix takes it: in bytes from the start of shared memory. */
unsigned long long simt_shared_address(const void *at)
{
  return memory_is_shared(at) ? (uintptr_t)at - (uintptr_t)machine.launch->shared : UINT32_MAX;
}

void simt_read_row(unsigned thread, uint32_t at, void *row)
{
  const SimtLaunch *l = machine.launch;
  simt_now.thread = (uint16_t)thread;
  if (at + (uint64_t)16 > l->shared_size) {
    simt_fault(0, "block %u thread %u loads a row outside of shared memory", blockIdx.x, thread);
    return;
  }
  memory_touch(l->shared + at, 16, false);
  memcpy(row, l->shared + at, 16);
}

/* ---- memory between blocks ---- */

static void publish(void)
{
  uint16_t *epoch = &machine.published[simt_now.block];
  machine.n_published += !*epoch;
  *epoch = simt_now.epoch;
}

void simt_fence(void)
{
  Fiber *f = machine.current;
  f->fenced = simt_now.epoch + 1u;
  if (f->counted) machine.sees_from = simt_now.epoch + 1u;
}

unsigned simt_count(unsigned *at, unsigned n)
{
  Fiber *f = machine.current;
  unsigned before = *at;
  memory_count(at);
  if (memory_is_shared(at)) {
    *at += n;
    return before;
  }
  if (f->fenced == simt_now.epoch + 1u) publish();
  f->counted = true;
  *at += n;
  return before;
}

void simt_publish(void)
{
  simt_now.epoch++;
  publish();
  machine.sees_from = simt_now.epoch;
}

/* True if the stores of `other` are published; for MANY, those of all blocks. */
bool simt_is_published(SimtNow other)
{
  if (simt_now.epoch < machine.sees_from) return false;
  if (other.block >= SIMT_MAX_GRID) return machine.n_published == machine.launch->grid;
  return other.epoch < machine.published[other.block];
}

static void fiber_main(void)
{
  machine.launch->thread(machine.launch->args);
  stop(ENDED, 0);
}

/* ---- a warp ---- */

unsigned simt_random(unsigned n)
{
  machine.random = machine.random * 1664525u + 1013904223u;
  return (machine.random >> 8) % n;
}

/* An order of n items; `start` and `backwards` determine it. */
typedef struct Sequence {
  unsigned n, start;
  bool backwards;
} Sequence;

static Sequence sequence_of(unsigned n)
{
  SimtOrder order = machine.launch->order;
  if (order != SIMT_RANDOM) return (Sequence){n, 0, order == SIMT_REVERSE};
  unsigned start = simt_random(n);
  return (Sequence){n, start, simt_random(2)};
}

static unsigned sequence_at(const Sequence *s, unsigned k)
{
  unsigned i = (s->start + k) % s->n;
  return s->backwards ? s->n - 1 - i : i;
}

static void resume(unsigned thread)
{
  Fiber *f = &machine.fiber[thread];
  if (f->state == NOT_BEGUN) {
    f->stack = machine.free_stack[--machine.n_free];
    make_context(&f->context, machine.stacks + (size_t)f->stack * STACK, fiber_main);
  }
  f->state = CAN_RUN;
  threadIdx.x = thread;
  simt_now.thread = (uint16_t)thread;
  machine.current = f;
  switch_context(&machine.scheduler, &f->context);
  machine.current = NULL;
  if (f->state == ENDED)
    machine.free_stack[machine.n_free++] = f->stack;
  else
    machine.waited = true;
}

static void shuffle_fault(unsigned warp, unsigned lane, const char *what, unsigned other)
{
  const char *kind = machine.fiber[warp + lane].matrix ? "matrix instruction" : "shuffle";
  simt_fault(0, "block %u: thread %u's %s %s %u", blockIdx.x, warp + lane, kind, what,
             warp + other);
}

/* True if all lanes in the mask of `lane` wait at the same shuffle with the same mask. */
static bool is_whole(unsigned warp, unsigned lanes, unsigned lane)
{
  const Fiber *f = &machine.fiber[warp], *own = f + lane;
  unsigned from = lane ^ own->step;
  if (!(own->mask >> lane & 1))
    return shuffle_fault(warp, lane, "does not name itself,", lane), false;
  if (from >= WARP || !(own->mask >> from & 1))
    return shuffle_fault(warp, lane, "reads a lane that it does not name,", from), false;
  for (unsigned i = 0; i < WARP; i++) {
    if (!(own->mask >> i & 1)) continue;
    if (i >= lanes || f[i].state != AT_SHUFFLE)
      return shuffle_fault(warp, lane, "waits for a lane that does not come, thread", i), false;
    if (f[i].place != own->place || f[i].mask != own->mask)
      return shuffle_fault(warp, lane, "meets another one, of thread", i), false;
  }
  return true;
}

static void execute_matrix(unsigned warp)
{
  uint32_t *lanes[WARP];
  for (unsigned i = 0; i < WARP; i++) lanes[i] = machine.fiber[warp + i].words;
  machine.fiber[warp].matrix(warp, lanes);
}

/* Lets waiting lanes exchange values if no lane can run. False if none waits, or on a fault. */
static bool release_shuffles(unsigned warp, unsigned lanes)
{
  Fiber *f = &machine.fiber[warp];
  bool any = false;
  for (unsigned i = 0; i < lanes; i++) {
    if (f[i].state != AT_SHUFFLE) continue;
    if (!is_whole(warp, lanes, i)) return false;
    f[i].result = f[i ^ f[i].step].bits;
    any = true;
  }
  if (f->state == AT_SHUFFLE && f->matrix) execute_matrix(warp);
  for (unsigned i = 0; i < lanes; i++)
    if (f[i].state == AT_SHUFFLE) f[i].state = CAN_RUN;
  return any;
}

/* Runs the warp until all of its threads wait for other warps or have ended. */
static void run_warp(unsigned warp, unsigned lanes)
{
  do {
    Sequence order = sequence_of(lanes);
    for (unsigned k = 0; k < lanes; k++) {
      unsigned i = warp + sequence_at(&order, k);
      if (machine.fiber[i].state <= CAN_RUN) resume(i);
    }
  } while (release_shuffles(warp, lanes));
}

/* ---- warps that SimtLaunch.warp executes ---- */

bool simt_has_begun(unsigned thread)
{
  return machine.fiber[thread].state != NOT_BEGUN;
}

void simt_become(unsigned thread)
{
  Fiber *f = &machine.fiber[thread];
  simt_now.thread = (uint16_t)thread;
  machine.current = f;
  f->state = CAN_RUN;
}

void simt_wait(unsigned thread, unsigned place)
{
  machine.fiber[thread].state = AT_BARRIER;
  machine.fiber[thread].place = place;
  machine.waited = true;
}

void simt_shuffled(void)
{
  machine.waited = true;
}

void simt_end(unsigned thread)
{
  machine.fiber[thread].state = ENDED;
}

bool simt_failed(void)
{
  return machine.fault.text[0];
}

/* ---- a block ---- */

static void begin_block(unsigned block)
{
  const SimtLaunch *l = machine.launch;
  blockIdx.x = block;
  simt_now = (SimtNow){.block = (uint16_t)block};
  for (unsigned i = 0; i < l->block; i++) {
    Fiber *f = &machine.fiber[i];
    f->state = NOT_BEGUN;
    f->depth = 0;
    f->path[0] = 0;
    f->fenced = 0;
    f->counted = false;
  }
  machine.sees_from = UINT_MAX;
  machine.n_free = SIMT_MAX_BLOCK;
  for (unsigned i = 0; i < SIMT_MAX_BLOCK; i++) machine.free_stack[i] = SIMT_MAX_BLOCK - 1 - i;
  memset(l->shared, 0xff, l->shared_size); /* NaN in every float type */
  memory_begin_block();
}

/* Releases the threads if all wait at the same barrier. False if all have ended, or on a fault. */
static bool release_barrier(void)
{
  unsigned n = machine.launch->block, waiting = 0;
  const Fiber *f = machine.fiber;
  while (waiting < n && f[waiting].state != AT_BARRIER) waiting++;
  if (waiting == n) return false;
  for (unsigned i = 0; i < n; i++) {
    if (f[i].state == ENDED)
      simt_fault(0, "block %u: thread %u waits at a barrier and thread %u has ended", blockIdx.x,
                 waiting, i);
    else if (f[i].place != f[waiting].place)
      simt_fault(0, "block %u: threads %u and %u wait at different barriers", blockIdx.x, waiting,
                 i);
  }
  if (machine.fault.text[0]) return false;
  for (unsigned i = 0; i < n; i++) machine.fiber[i].state = CAN_RUN;
  if (++simt_now.epoch == UINT16_MAX) simt_fault(0, "more barriers than can be counted");
  return true;
}

static void run_block(unsigned block)
{
  unsigned n = machine.launch->block, warps = (n + WARP - 1) / WARP;
  begin_block(block);
  do {
    Sequence order = sequence_of(warps);
    for (unsigned w = 0; w < warps; w++) {
      unsigned from = sequence_at(&order, w) * WARP, lanes = from + WARP < n ? WARP : n - from;
      if (machine.launch->warp)
        machine.launch->warp(machine.launch, from, lanes);
      else
        run_warp(from, lanes);
      if (machine.fault.text[0]) return;
    }
  } while (release_barrier());
}

/* Runs the blocks in some order: with a stride that visits each block once. */
static void run_grid(void)
{
  unsigned n = machine.launch->grid, stride = 1;
  Sequence order = sequence_of(n);
  if (machine.launch->order == SIMT_RANDOM) {
    static const unsigned primes[] = {7919, 104729, 1299709};
    stride = primes[simt_random(3)]; /* coprime, if n is no multiple */
    if (n % stride == 0) stride = 1;
  }
  for (unsigned k = 0; k < n && !machine.fault.text[0]; k++)
    run_block((unsigned)((uint64_t)sequence_at(&order, k) * stride % n));
}

bool simt_run(const SimtLaunch *l, SimtFault *out_fault, bool *out_waited)
{
  assert(l->block > 0 && l->block <= SIMT_MAX_BLOCK && l->grid > 0 && l->grid <= SIMT_MAX_GRID);
  if (!machine.stacks) make_stacks();
  blockDim = (SimtSize){l->block, 1, 1};
  gridDim = (SimtSize){l->grid, 1, 1};
  machine.launch = l;
  machine.random = l->seed;
  machine.fault = (SimtFault){0};
  machine.waited = false;
  machine.n_published = 0;
  memset(machine.published, 0, sizeof machine.published);
  run_grid();
  machine.current = NULL;
  *out_fault = machine.fault;
  *out_waited = machine.waited;
  return !machine.fault.text[0];
}
