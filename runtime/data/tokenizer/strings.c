/* Texts that grow, maps and tries. If memory runs out, a Str keeps `failed`, which callers look at
 * once, at their end. */
#include "strings.h"
#include <stdlib.h>
#include <string.h>

bool grow(void *at, size_t *cap, size_t n, size_t size)
{
  void **old = at;
  if (n <= *cap) return true;
  size_t room = *cap * 2 > n ? *cap * 2 : n;
  void *made = room > PTRDIFF_MAX / size ? NULL : realloc(*old, room * size);
  if (!made) return false;
  *old = made;
  *cap = room;
  return true;
}

void str_add(Str *s, const char *at, size_t n)
{
  if (s->failed || (s->most && s->n + n > s->most) || !grow(&s->at, &s->cap, s->n + n + 1, 1)) {
    s->failed = true;
    return;
  }
  if (n) memcpy(s->at + s->n, at, n);
  s->n += n;
  s->at[s->n] = 0;
}

void str_span(Str *s, Span span)
{
  str_add(s, span.at, span.n);
}

void str_clear(Str *s)
{
  s->n = s->most = 0;
  s->begins = false;
}

View str_view(const Str *s)
{
  return (View){s->at, s->n, s->begins};
}

void str_swap(Str *a, Str *b)
{
  Str first = *a;
  *a = *b;
  *b = first;
}

void texts_end(Texts *t)
{
  if (!grow(&t->end, &t->cap, t->n + 1, sizeof *t->end)) t->all.failed = true;
  if (!t->all.failed) t->end[t->n++] = t->all.n;
}

Span texts_at(const Texts *t, size_t i)
{
  size_t from = i ? t->end[i - 1] : 0;
  return (Span){t->all.at + from, t->end[i] - from};
}

/* ---- maps ---- */

typedef struct MapEntry {
  uint64_t key; /* plus 1; 0: the entry is free */
  uint32_t value;
} MapEntry;

static size_t entry_of(const Map *m, uint64_t key)
{
  uint64_t hash = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
  size_t i = (size_t)(hash >> 32) & (m->cap - 1);
  while (m->at[i].key && m->at[i].key != key + 1) i = (i + 1) & (m->cap - 1);
  return i;
}

static bool map_grow(Map *m)
{
  Map wider = {.cap = m->cap ? m->cap * 2 : 64};
  wider.at = calloc(wider.cap, sizeof *wider.at);
  if (!wider.at) return false;
  for (size_t i = 0; i < m->cap; i++)
    if (m->at[i].key) wider.at[entry_of(&wider, m->at[i].key - 1)] = m->at[i];
  wider.n = m->n;
  free(m->at);
  *m = wider;
  return true;
}

bool map_put(Map *m, uint64_t key, uint32_t value)
{
  if (m->n * 2 >= m->cap && !map_grow(m)) return false;
  MapEntry *e = &m->at[entry_of(m, key)];
  m->n += !e->key;
  *e = (MapEntry){key + 1, value};
  return true;
}

uint32_t map_get(const Map *m, uint64_t key)
{
  if (!m->n) return NO_ID;
  const MapEntry *e = &m->at[entry_of(m, key)];
  return e->key ? e->value : NO_ID;
}

/* ---- tries: the edge of a byte from a node has the key node << 8 | byte ---- */

static bool trie_node(Trie *t)
{
  if (!grow(&t->id, &t->cap, t->n + 1, sizeof *t->id)) return false;
  t->id[t->n++] = NO_ID;
  return true;
}

bool trie_add(Trie *t, Span text, uint32_t id)
{
  uint32_t node = 0;
  if (!t->n && !trie_node(t)) return false;
  for (size_t i = 0; i < text.n; i++) {
    uint32_t next = trie_step(t, node, text.at[i]);
    if (next == NO_ID) {
      next = (uint32_t)t->n;
      uint64_t key = (uint64_t)node << 8 | (uint8_t)text.at[i];
      if (t->n >= NO_ID || !trie_node(t) || !map_put(&t->edges, key, next)) return false;
    }
    node = next;
  }
  t->id[node] = id;
  return true;
}

uint32_t trie_step(const Trie *t, uint32_t node, char byte)
{
  return map_get(&t->edges, (uint64_t)node << 8 | (uint8_t)byte);
}

uint32_t trie_find(const Trie *t, Span text)
{
  uint32_t node = 0;
  for (size_t i = 0; i < text.n && node != NO_ID; i++) node = trie_step(t, node, text.at[i]);
  return node == NO_ID || !t->n ? NO_ID : t->id[node];
}

size_t trie_longest(const Trie *t, const char *at, size_t n, uint32_t *id)
{
  size_t longest = 0;
  uint32_t node = 0;
  for (size_t i = 0; i < n && (node = trie_step(t, node, at[i])) != NO_ID; i++)
    if (t->id[node] != NO_ID) {
      longest = i + 1;
      *id = t->id[node];
    }
  return longest;
}

void trie_free(Trie *t)
{
  free(t->edges.at);
  free(t->id);
}
