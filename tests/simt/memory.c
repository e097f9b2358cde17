/* The shadow of memory: see memory.h. A cell for each 2^shift bytes records the last writer and
 * reader of this run. That is enough: each access is compared with the ones before it. */
#include "memory.h"
#include "machine.h"
#include <stdlib.h>
#include <string.h>

enum { PAGE_CELLS = 4096, CACHED = 256, NOBODY = 0xffff, MANY = 0xfffe };

typedef struct Cell {
  uint16_t run;  /* the run for which the next fields are valid; the block, in shared memory */
  uint16_t twin; /* the last run of a CPU text that accessed the cell */
  SimtNow writer, reader; /* .block is NOBODY without an access, the reader's can be MANY */
  bool counts;            /* shared memory: the last write was an atomic addition */
} Cell;

typedef struct Page {
  uintptr_t number;
  Cell *cells;
} Page;

static struct {
  MemoryRun now;
  bool on;
  uint16_t run, twin_run;
  uint64_t reads;
  Cell *shared;
  size_t shared_room;
  uint16_t block; /* number of blocks in all launches so far: see Cell.run */
  Page *table;    /* a hash table with open addressing */
  size_t room, count;
  Page recent[CACHED];
} memory;

/* ---- cells ---- */

static Page *page_at(Page *table, size_t room, uintptr_t number)
{
  size_t i = (size_t)(number * 0x9E3779B97F4A7C15u >> 20) & (room - 1);
  while (table[i].cells && table[i].number != number) i = (i + 1) & (room - 1);
  return &table[i];
}

static void *must(void *block)
{
  if (!block) abort();
  return block;
}

static void grow_table(void)
{
  size_t room = memory.room ? 2 * memory.room : 4096;
  Page *table = must(calloc(room, sizeof *table));
  for (size_t i = 0; i < memory.room; i++)
    if (memory.table[i].cells) *page_at(table, room, memory.table[i].number) = memory.table[i];
  free(memory.table);
  memory.table = table;
  memory.room = room;
}

static Cell *find_page(uintptr_t number)
{
  if (2 * (memory.count + 1) > memory.room) grow_table();
  Page *p = page_at(memory.table, memory.room, number);
  if (!p->cells) {
    *p = (Page){number, must(calloc(PAGE_CELLS, sizeof(Cell)))};
    memory.count++;
  }
  memory.recent[number % CACHED] = *p;
  return p->cells;
}

static Cell *cell_of(uintptr_t unit)
{
  uintptr_t number = unit / PAGE_CELLS;
  const Page *p = &memory.recent[number % CACHED];
  Cell *cells = p->cells && p->number == number ? p->cells : find_page(number);
  return &cells[unit % PAGE_CELLS];
}

static void forget_all(void)
{
  for (size_t i = 0; i < memory.room; i++) free(memory.table[i].cells);
  free(memory.table);
  memory.table = NULL;
  memory.room = memory.count = 0;
  memset(memory.recent, 0, sizeof memory.recent);
}

/* ---- races ---- */

static bool same_thread(SimtNow a, SimtNow b)
{
  return a.block == b.block && a.thread == b.thread;
}

/* True if `other`'s access can happen at the same time as one of the current thread. */
static bool meets(SimtNow other)
{
  if (other.block == NOBODY || same_thread(other, simt_now)) return false;
  if (other.block != simt_now.block) return !simt_is_published(other);
  return other.epoch == simt_now.epoch;
}

static void race(uintptr_t at, const char *what, SimtNow other)
{
  bool shared = at - (uintptr_t)memory.now.shared < memory.now.shared_size;
  const char *where = shared ? "shared" : "global";
  if (shared) at = 0;
  if (other.block == MANY)
    simt_fault(at, "race in %s memory: block %u thread %u %s several blocks", where, simt_now.block,
               simt_now.thread, what);
  else if (other.thread == MANY)
    simt_fault(at, "race in %s memory: block %u thread %u %s several threads of its block", where,
               simt_now.block, simt_now.thread, what);
  else
    simt_fault(at, "race in %s memory: block %u thread %u %s block %u thread %u", where,
               simt_now.block, simt_now.thread, what, other.block, other.thread);
}

static void note_read(Cell *c, uintptr_t at)
{
  if (meets(c->writer)) race(at, "reads what is written by", c->writer);
  SimtNow *r = &c->reader;
  if (r->block == MANY) return;
  if (r->block != NOBODY && r->block != simt_now.block)
    r->block = MANY;
  else if (r->block == simt_now.block && r->epoch == simt_now.epoch && r->thread != simt_now.thread)
    r->thread = MANY;
  else
    *r = simt_now;
}

static void note_write(Cell *c, uintptr_t at)
{
  if (meets(c->writer)) race(at, "writes what is written by", c->writer);
  if (meets(c->reader)) race(at, "writes what is read by", c->reader);
  c->writer = simt_now;
  c->counts = false;
}

/* ---- accesses ---- */

static void log_word(uintptr_t at, unsigned size)
{
  WordList *w = memory.now.words;
  if (w->n == w->room) {
    w->room = w->room ? 2 * w->room : 1024;
    w->at = must(realloc(w->at, w->room * sizeof *w->at));
  }
  Word *word = &w->at[w->n++];
  word->at = at & (((uint64_t)1 << 56) - 1); /* enough bits for any address */
  word->size = (uint8_t)size;
  word->value = memory_read(at, size);
  w->bytes += size;
}

static void refresh(Cell *c, uint16_t run)
{
  if (c->run == run) return;
  c->run = run;
  c->writer.block = c->reader.block = NOBODY;
  c->counts = false;
}

static void touch_shared(uintptr_t at, unsigned size, bool write)
{
  uintptr_t first = at - (uintptr_t)memory.now.shared;
  for (uintptr_t i = first; i < first + size; i++) {
    Cell *c = &memory.shared[i];
    refresh(c, memory.block);
    if (write) {
      note_write(c, at);
    } else {
      if (c->writer.block == NOBODY)
        simt_fault(0, "block %u thread %u reads shared memory that nobody has written",
                   simt_now.block, simt_now.thread);
      note_read(c, at);
    }
  }
}

static void touch_global(uintptr_t at, unsigned size, bool write)
{
  uintptr_t first = at >> memory.now.shift, last = (at + size - 1) >> memory.now.shift;
  unsigned unit = 1u << memory.now.shift;
  memory.reads += !write;
  bool whole = true; /* no byte of it was written before */
  for (uintptr_t i = first; i <= last; i++) {
    Cell *c = cell_of(i);
    refresh(c, memory.run);
    if (memory.now.twin)
      c->twin = memory.run;
    else if (c->twin != memory.twin_run)
      simt_fault(at, "block %u thread %u %s what the CPU text does not touch", simt_now.block,
                 simt_now.thread, write ? "writes" : "reads");
    whole &= c->writer.block == NOBODY;
  }
  if (write && whole) log_word(at, size);
  for (uintptr_t i = first; i <= last; i++) {
    Cell *c = cell_of(i);
    if (write && !whole && c->writer.block == NOBODY) log_word(i << memory.now.shift, unit);
    if (write)
      note_write(c, at);
    else
      note_read(c, at);
  }
}

/* Records an atomic addition in shared memory. Between two barriers it does not race with other
 * atomic additions, but with a store it does. */
static void count_shared(uintptr_t at)
{
  Cell *cells = memory.shared + (at - (uintptr_t)memory.now.shared);
  for (size_t i = 0; i < sizeof(unsigned); i++) {
    refresh(&cells[i], memory.block);
    if (cells[i].counts) cells[i].writer = simt_now;
  }
  touch_shared(at, sizeof(unsigned), true);
  for (size_t i = 0; i < sizeof(unsigned); i++) cells[i].counts = true;
}

bool memory_is_shared(const void *at)
{
  return (uintptr_t)at - (uintptr_t)memory.now.shared < memory.now.shared_size;
}

/* Records an atomic addition. Additions of several threads are no race. */
void memory_count(const unsigned *at)
{
  if (memory_is_shared(at)) {
    count_shared((uintptr_t)at);
    return;
  }
  uintptr_t first = (uintptr_t)at >> memory.now.shift;
  uintptr_t last = ((uintptr_t)at + sizeof *at - 1) >> memory.now.shift;
  for (uintptr_t i = first; i <= last; i++) {
    Cell *c = cell_of(i);
    refresh(c, memory.run);
    if (c->writer.block != NOBODY) c->writer = simt_now;
  }
  touch_global((uintptr_t)at, sizeof *at, true);
}

static void touch(const void *address, unsigned size, bool write)
{
  uintptr_t at = (uintptr_t)address;
  if (!memory.on || simt_on_stack(at)) return;
  if (at - (uintptr_t)memory.now.own < memory.now.own_size) return;
  if (at - (uintptr_t)memory.now.shared < memory.now.shared_size)
    touch_shared(at, size, write);
  else
    touch_global(at, size, write);
}

static void touch_range(const char *at, size_t size, bool write)
{
  for (size_t i = 0; i < size; i += 8)
    touch(at + i, size - i < 8 ? (unsigned)(size - i) : 8, write);
}

/* ---- runs ---- */

void memory_begin(const MemoryRun *run)
{
  /* cells of earlier runs must not look like those of this CPU run */
  if (run->twin && memory.run > UINT16_MAX - 2 * SIMT_ORDERS) {
    forget_all();
    memory.run = 0;
  }
  memory.now = *run;
  memory.now.words->n = 0;
  memory.now.words->bytes = 0;
  memory.run++;
  memory.reads = 0;
  if (run->twin) memory.twin_run = memory.run;
  if (run->shared_size > memory.shared_room) {
    free(memory.shared);
    memory.shared = must(calloc(run->shared_size, sizeof(Cell)));
    memory.shared_room = run->shared_size;
    memory.block = 0;
  }
  memory.on = true;
}

void memory_begin_block(void)
{
  if (++memory.block) return;
  memset(memory.shared, 0, memory.shared_room * sizeof(Cell));
  memory.block = 1;
}

void memory_end(void)
{
  memory.on = false;
}

bool memory_was_written(uintptr_t at)
{
  const Cell *c = cell_of(at >> memory.now.shift);
  return c->run == memory.run && c->writer.block != NOBODY;
}

uint64_t memory_reads(void)
{
  return memory.reads;
}

uint64_t memory_read(uintptr_t at, unsigned size)
{
  uint64_t value = 0;
  memcpy(&value, (const void *)at, size);
  return value;
}

static void write_word(const Word *w, uint64_t value)
{
  memcpy((void *)(uintptr_t)w->at, &value, w->size);
}

void memory_take_back(WordList *words)
{
  for (size_t i = 0; i < words->n; i++) {
    Word *w = &words->at[i];
    uint64_t before = w->value;
    w->value = memory_read(w->at, w->size);
    write_word(w, before);
  }
}

void memory_put_back(const WordList *words)
{
  for (size_t i = 0; i < words->n; i++) write_word(&words->at[i], words->at[i].value);
}

/* Checks that an access is aligned to its size, as a GPU requires. The compiler cannot. */
void memory_touch(const void *at, unsigned size, bool write)
{
  memory_touch_parts(at, size, write, 1, 0);
}

void memory_touch_parts(const void *at, unsigned size, bool write, unsigned n, unsigned dead)
{
  if (memory.on && !memory.now.twin && (uintptr_t)at % size && !simt_on_stack((uintptr_t)at))
    simt_fault(memory_is_shared(at) ? 0 : (uintptr_t)at,
               "block %u thread %u %s %u bytes at no multiple of them", simt_now.block,
               simt_now.thread, write ? "writes" : "reads", size);
  if (!dead) touch_range(at, size, write);
  for (unsigned k = 0; k < n && dead; k++)
    if (!(dead >> k & 1)) touch_range((const char *)at + size / n * k, size / n, write);
}

/* ---- the hooks of -fsanitize=thread ---- */

#define HOOKS(size)                                                                                \
  void simt_read##size(const void *at) TSAN(read##size);                                           \
  void simt_write##size(const void *at) TSAN(write##size);                                         \
  void simt_read##size(const void *at)                                                             \
  {                                                                                                \
    touch(at, size, false);                                                                        \
  }                                                                                                \
  void simt_write##size(const void *at)                                                            \
  {                                                                                                \
    touch(at, size, true);                                                                         \
  }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)

#define UNALIGNED_HOOKS(size)                                                                      \
  void simt_unaligned_read##size(const char *at) TSAN(unaligned_read##size);                       \
  void simt_unaligned_write##size(const char *at) TSAN(unaligned_write##size);                     \
  void simt_unaligned_read##size(const char *at)                                                   \
  {                                                                                                \
    memory_touch(at, size, false);                                                                 \
  }                                                                                                \
  void simt_unaligned_write##size(const char *at)                                                  \
  {                                                                                                \
    memory_touch(at, size, true);                                                                  \
  }
UNALIGNED_HOOKS(2)
UNALIGNED_HOOKS(4)
UNALIGNED_HOOKS(8)
UNALIGNED_HOOKS(16)

int simt_fetch_add(unsigned *at, int n, int order) TSAN(atomic32_fetch_add);
int simt_fetch_add(unsigned *at, int n, int order)
{
  (void)order;
  int before = (int)*at;
  memory_count(at);
  simt_publish();
  *at += (unsigned)n;
  return before;
}

void simt_read16(const char *at) TSAN(read16);
void simt_write16(const char *at) TSAN(write16);
void simt_read_range(const char *at, size_t size) TSAN(read_range);
void simt_write_range(const char *at, size_t size) TSAN(write_range);
void simt_init(void) TSAN(init);

void simt_read16(const char *at)
{
  touch_range(at, 16, false);
}

void simt_write16(const char *at)
{
  touch_range(at, 16, true);
}

void simt_read_range(const char *at, size_t size)
{
  touch_range(at, size, false);
}

void simt_write_range(const char *at, size_t size)
{
  touch_range(at, size, true);
}

void simt_init(void)
{
}
