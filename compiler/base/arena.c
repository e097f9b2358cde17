#include "arena.h"
#include "format.h"
#include "common/shown.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks of memory grow with the size of the arena, so a large graph does not need thousands. */
enum { FIRST_BLOCK = 64 * 1024, GREATEST_BLOCK = 16 * 1024 * 1024, ALIGN = 16 };

typedef struct Block {
  struct Block *next;
  size_t used, size;
  _Alignas(ALIGN) char data[];
} Block;

struct Arena {
  Block *top;
  size_t total; /* bytes of all blocks of memory */
};

_Noreturn void arena_out_of_memory(void)
{
  fprintf(stderr, "%s: error: out of memory\n", program_invocation_short_name);
  exit(5);
}

/* Faults in the pages of a large block at once, as huge pages where possible: that costs a fraction
 * of a fault for each page at its first write, and all pages will be used. If the system cannot do
 * this, each page faults. */
static void take_pages(char *at, size_t size)
{
#ifdef MADV_POPULATE_WRITE
  enum { PAGE = 4096 };
  size_t skip = (PAGE - (uintptr_t)at % PAGE) % PAGE;
  if (size < 64 * PAGE) return;
  madvise(at + skip, (size - skip) / PAGE * PAGE, MADV_HUGEPAGE);
  madvise(at + skip, (size - skip) / PAGE * PAGE, MADV_POPULATE_WRITE);
#else
  (void)at, (void)size;
#endif
}

static Block *block_create(size_t size)
{
  Block *b = calloc(1, sizeof(Block) + size);
  if (!b) arena_out_of_memory();
  b->size = size;
  take_pages(b->data, size);
  return b;
}

Arena *arena_create(void)
{
  Block *b = block_create(FIRST_BLOCK);
  Arena *a = (Arena *)(void *)b->data;
  b->used = (sizeof(Arena) + ALIGN - 1) / ALIGN * ALIGN;
  *a = (Arena){.top = b, .total = b->size};
  return a;
}

void arena_destroy(Arena *a)
{
  if (!a) return;
  for (Block *b = a->top; b;) { /* the last block contains the arena itself */
    Block *next = b->next;
    free(b);
    b = next;
  }
}

static void add_block(Arena *a, size_t size)
{
  size_t common = a->total / 4;
  if (common < FIRST_BLOCK) common = FIRST_BLOCK;
  if (common > GREATEST_BLOCK) common = GREATEST_BLOCK;
  Block *b = block_create(size > common / 2 ? size : common);
  b->next = a->top;
  a->top = b;
  a->total += b->size;
}

void *arena_alloc(Arena *a, size_t size, size_t align)
{
  size_t at = (a->top->used + align - 1) / align * align;
  if (at + size > a->top->size) {
    add_block(a, size);
    at = 0;
  }
  a->top->used = at + size;
  return a->top->data + at;
}

void *arena_grow(Arena *a, const void *old, size_t old_size, size_t new_size, size_t align)
{
  void *p = arena_alloc(a, new_size, align);
  if (old_size) memcpy(p, old, old_size);
  return p;
}

/* Grows an allocation with a single owner: in place if it is the most recent one. */
static void *extend(Arena *a, void *old, size_t old_size, size_t new_size, size_t align)
{
  Block *b = a->top;
  bool last = old_size && (char *)old + old_size == b->data + b->used;
  if (!last || new_size - old_size > b->size - b->used)
    return arena_grow(a, old, old_size, new_size, align);
  b->used += new_size - old_size;
  return old;
}

ArenaMark arena_mark(const Arena *a)
{
  return (ArenaMark){a->top, a->top->used};
}

void arena_release(Arena *a, ArenaMark mark)
{
  while (a->top != mark.block) {
    Block *b = a->top;
    a->top = b->next;
    a->total -= b->size;
    free(b);
  }
  memset(a->top->data + mark.used, 0, a->top->used - mark.used);
  a->top->used = mark.used;
}

/* Most numbers are short. For others the search halves the range of digits. */
const char *arena_number(Arena *a, double v, int least)
{
  char s[320];                /* gcc does not know that there are at most 17 digits */
  int low = least, high = 17; /* the number of digits is in [low, high] */
  for (int digits = least; low < high; digits = (low + high) / 2) {
    snprintf(s, sizeof s, "%.*g", digits, v);
    if (strtod(s, NULL) == v)
      high = digits;
    else
      low = digits + 1;
  }
  snprintf(s, sizeof s, "%.*g", low, v);
  return arena_strdup(a, s);
}

/* An escape is at most four times as long as the bytes that it replaces. */
const char *arena_shown(Arena *a, const char *s, const char *keep)
{
  size_t n = strlen(s);
  return ampc_is_plain(s, n) ? s : ampc_show(arena_alloc(a, 4 * n + 1, 1), 4 * n + 1, s, keep);
}

void vec_reserve_(Arena *a, void **at, uint32_t *cap, uint32_t n, size_t size)
{
  if (n < *cap) return;
  uint32_t bigger = *cap ? *cap * 2 : 4;
  *at = extend(a, *at, n * size, bigger * size, ALIGN);
  *cap = bigger;
}

char *arena_strndup(Arena *a, const char *s, size_t n)
{
  char *p = arena_alloc(a, n + 1, 1);
  memcpy(p, s, n);
  return p;
}

char *arena_strdup(Arena *a, const char *s)
{
  return arena_strndup(a, s, strlen(s));
}

/* Most texts are short: they are formatted once, into `small`. Longer texts are formatted again. */
char *arena_vprintf(Arena *a, const char *fmt, va_list ap)
{
  char small[512];
  va_list again;
  va_copy(again, ap);
  size_t n = format_text(small, sizeof small, fmt, ap);
  char *p = arena_alloc(a, n + 1, 1);
  if (n < sizeof small)
    memcpy(p, small, n + 1);
  else
    format_text(p, n + 1, fmt, again);
  va_end(again);
  return p;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  char *p = arena_vprintf(a, fmt, ap);
  va_end(ap);
  return p;
}

Text text_new(Arena *a)
{
  return (Text){.arena = a, .at = arena_alloc(a, 256, 1), .cap = 256};
}

void text_init(Text *t, Arena *a)
{
  *t = text_new(a);
}

void text_add(Text *t, const char *s, size_t n)
{
  if (t->n + n + 1 > t->cap) {
    size_t cap = (t->n + n + 1) * 2;
    t->at = extend(t->arena, t->at, t->cap, cap, 1);
    t->cap = cap;
  }
  memcpy(t->at + t->n, s, n);
  t->n += n;
  t->at[t->n] = 0;
}

void text_puts(Text *t, const char *s)
{
  text_add(t, s, strlen(s));
}

void text_printf(Text *t, const char *fmt, ...)
{
  char small[512];
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  size_t n = format_text(small, sizeof small, fmt, ap);
  va_end(ap);
  if (n < sizeof small) {
    text_add(t, small, n);
  } else {
    text_puts(t, arena_vprintf(t->arena, fmt, again));
  }
  va_end(again);
}
