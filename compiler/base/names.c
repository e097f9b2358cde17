/* A hash table with open addressing. A short array is searched linearly. */
#include "names.h"
#include <string.h>

enum { FEW = 8, LEAST_SLOTS = 32 };

static const char *name_at(const void *at, uint32_t i, size_t size)
{
  const char *name;
  memcpy(&name, (const char *)at + i * size, sizeof name);
  return name;
}

static uint32_t hash(const char *name) /* FNV-1a */
{
  uint32_t h = 2166136261u;
  for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
  return h;
}

/* Returns the slot of the name, or the free slot where it belongs. A free slot always exists. */
static uint32_t *slot_of(const NameIndex *x, const void *at, size_t size, const char *name)
{
  uint32_t i = hash(name) & (x->cap - 1);
  while (x->slot[i] && strcmp(name_at(at, x->slot[i] - 1, size), name) != 0)
    i = (i + 1) & (x->cap - 1);
  return &x->slot[i];
}

/* Indexes the entries up to n. If several entries have one name, the index holds the first. */
static void add_entries(Arena *a, NameIndex *x, const void *at, uint32_t n, size_t size)
{
  if (2 * (uint64_t)n >= x->cap) {
    x->cap = x->cap ? x->cap : LEAST_SLOTS;
    while (x->cap <= 2 * (uint64_t)n) x->cap *= 2;
    x->slot = arena_array(a, uint32_t, x->cap);
    x->n = 0;
  }
  for (; x->n < n; x->n++) {
    uint32_t *slot = slot_of(x, at, size, name_at(at, x->n, size));
    if (!*slot) *slot = x->n + 1;
  }
}

uint32_t name_find(Arena *a, NameIndex *x, const void *at, uint32_t n, size_t size,
                   const char *name)
{
  if (n <= FEW) {
    for (uint32_t i = 0; i < n; i++)
      if (same_name(name_at(at, i, size), name)) return i;
    return NO_NAME;
  }
  add_entries(a, x, at, n, size);
  uint32_t slot = *slot_of(x, at, size, name);
  return slot ? slot - 1 : NO_NAME;
}
