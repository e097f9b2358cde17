#include "arena.h"
#include "runtime/plan/shown.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SIZE = 64 * 1024, ALIGN = 16 };

typedef struct Block {
  struct Block *next;
  size_t used, size;
  _Alignas(ALIGN) char data[];
} Block;

struct Arena {
  Block *top;
};

_Noreturn void arena_out_of_memory(void)
{
  fprintf(stderr, "%s: error: out of memory\n", program_invocation_short_name);
  exit(5);
}

static Block *block_create(size_t size)
{
  Block *b = calloc(1, sizeof(Block) + size);
  if (!b) arena_out_of_memory();
  b->size = size;
  return b;
}

Arena *arena_create(void)
{
  Block *b = block_create(BLOCK_SIZE);
  Arena *a = (Arena *)(void *)b->data;
  b->used = (sizeof(Arena) + ALIGN - 1) / ALIGN * ALIGN;
  a->top = b;
  return a;
}

void arena_destroy(Arena *a)
{
  if (!a) return;
  for (Block *b = a->top; b;) { /* the arena itself lies in the last one */
    Block *next = b->next;
    free(b);
    b = next;
  }
}

void *arena_alloc(Arena *a, size_t size, size_t align)
{
  size_t at = (a->top->used + align - 1) / align * align;
  if (at + size > a->top->size) {
    Block *b = block_create(size > BLOCK_SIZE / 2 ? size : BLOCK_SIZE);
    b->next = a->top;
    a->top = b;
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

/* An escape has at most four times the bytes of what it stands for. */
const char *arena_shown(Arena *a, const char *s, const char *keep)
{
  size_t n = strlen(s);
  return ampc_is_plain(s, n) ? s : ampc_show(arena_alloc(a, 4 * n + 1, 1), 4 * n + 1, s, keep);
}

void vec_reserve_(Arena *a, void **at, uint32_t *cap, uint32_t n, size_t size)
{
  if (n < *cap) return;
  uint32_t bigger = *cap ? *cap * 2 : 8;
  *at = arena_grow(a, *at, n * size, bigger * size, ALIGN);
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

/* Most texts are short: they are formatted once, into `small`, and not a second time for their
 * size. */
char *arena_vprintf(Arena *a, const char *fmt, va_list ap)
{
  char small[512];
  va_list again;
  va_copy(again, ap);
  size_t n = (size_t)vsnprintf(small, sizeof small, fmt, ap);
  char *p = arena_alloc(a, n + 1, 1);
  if (n < sizeof small)
    memcpy(p, small, n + 1);
  else
    vsnprintf(p, n + 1, fmt, again);
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

void text_init(Text *t, Arena *a)
{
  *t = (Text){.arena = a, .at = arena_alloc(a, 256, 1), .cap = 256};
}

void text_add(Text *t, const char *s, size_t n)
{
  if (t->n + n + 1 > t->cap) {
    size_t cap = (t->n + n + 1) * 2;
    t->at = arena_grow(t->arena, t->at, t->n, cap, 1);
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
  int n = vsnprintf(small, sizeof small, fmt, ap);
  va_end(ap);
  if ((size_t)n < sizeof small) {
    text_add(t, small, (size_t)n);
  } else {
    text_puts(t, arena_vprintf(t->arena, fmt, again));
  }
  va_end(again);
}
