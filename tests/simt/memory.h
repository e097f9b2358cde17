/* The memory accesses of a launch. The kernels are compiled with the hooks of -fsanitize=thread.
 * Here the hooks detect races and write a log that can undo a launch.
 *
 * Race: two threads access the same bytes, at least one writes, and no barrier of their block lies
 * between; or two blocks of a launch do so, unless one has published its stores to the other
 * (machine.h). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Word { /* the value at an address: at most 8 bytes */
  uint64_t at : 56, size : 8;
  uint64_t value; /* the old value; after memory_take_back: the written one */
} Word;

typedef struct WordList {
  Word *at;
  size_t n, room;
  uint64_t bytes;
} WordList;

typedef struct MemoryRun {
  unsigned shift; /* log2 of the bytes per cell: the size of the smallest element */
  char *shared;   /* shared memory; for the CPU text its own variables, which are not watched */
  size_t shared_size;
  char *own;
  size_t own_size;
  bool twin;       /* the CPU text: later runs may access only what it accesses */
  WordList *words; /* receives the words that are written */
} MemoryRun;

void memory_begin(const MemoryRun *run);
void memory_begin_block(void);
void memory_end(void);
/* An access of the running thread, which must be aligned to its size. The hooks call it, too. */
void memory_touch(const void *at, unsigned size, bool write);
/* The same for n equal parts; those with a bit in `dead` are not accessed. */
void memory_touch_parts(const void *at, unsigned size, bool write, unsigned n, unsigned dead);
void memory_count(const unsigned *at); /* called before an atomic addition to it */
bool memory_is_shared(const void *at); /* true if it is in shared memory */
bool memory_was_written(uintptr_t at); /* true if the last run wrote it */
uint64_t memory_reads(void);           /* reads of global memory in the last run */

uint64_t memory_read(uintptr_t at, unsigned size);
void memory_take_back(WordList *words); /* restores the old values */
void memory_put_back(const WordList *words);
