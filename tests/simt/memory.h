/* What the threads of a launch read and write. The kernels' text is compiled with the hooks of
 * -fsanitize=thread; here they find races and keep a log that takes a launch back.
 *
 * Race: two threads touch the same bytes, at least one writes, and no barrier of their block stands
 * between; or two blocks of a launch do, barrier or not, unless one has published it to the other
 * (machine.h). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Word { /* what was written at a place: at most 8 bytes */
  uint64_t at : 56, size : 8;
  uint64_t value; /* before: until memory_take_back; then: what had been written */
} Word;

typedef struct WordList {
  Word *at;
  size_t n, room;
  uint64_t bytes;
} WordList;

typedef struct MemoryRun {
  unsigned shift; /* log2 of the bytes that are watched as one: the smallest element */
  char *shared;   /* shared memory, and what the text keeps for itself (which is not looked at) */
  size_t shared_size;
  char *own;
  size_t own_size;
  bool twin;       /* the CPU text: what it touches is what the following runs may touch */
  WordList *words; /* is filled with what is written */
} MemoryRun;

void memory_begin(const MemoryRun *run);
void memory_begin_block(void);
void memory_end(void);
void memory_count(const unsigned *at); /* an atomic addition to it follows */
bool memory_is_shared(const void *at); /* of a block */
bool memory_was_written(uintptr_t at); /* by the run that ended last */
uint64_t memory_reads(void);           /* of global memory, in that run */

uint64_t memory_read(uintptr_t at, unsigned size);
void memory_take_back(WordList *words); /* restores what was there */
void memory_put_back(const WordList *words);
