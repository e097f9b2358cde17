/* Finds an entry by name in an array of structs whose first member is the name. The time does not
 * depend on the length of the array. Entries may only be appended. */
#pragma once
#include "arena.h"
#include <string.h>

typedef VEC(const char *) NameVec;

/* An index of names in an array. Zeroed memory is an empty index. */
typedef struct NameIndex {
  uint32_t *slot;  /* 1 + index of an entry; 0: free */
  uint32_t cap, n; /* cap: slots, a power of two; n: entries in the index */
} NameIndex;

enum { NO_NAME = UINT32_MAX };

/* True if the names are equal. For linear searches: most names differ in the first letter. */
static inline bool same_name(const char *a, const char *b)
{
  return *a == *b && strcmp(a, b) == 0;
}

/* True if the n characters at `word` are this name. */
static inline bool is_name(const char *word, size_t n, const char *name)
{
  return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* True for a letter, a digit or _. Only ASCII in any locale: a C compiler need not accept more. */
static inline bool in_name(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static inline size_t name_size(const char *s) /* length of the name at the start of s */
{
  size_t n = 0;
  while (in_name(s[n])) n++;
  return n;
}

/* True if a path ends with `end`, at a component: net.fc1.weight with fc1.weight, opt.lr with lr.
 */
static inline bool path_ends(const char *path, const char *end)
{
  size_t n = strlen(path), m = strlen(end);
  return m && m <= n && strcmp(path + n - m, end) == 0 && (m == n || path[n - m - 1] == '.');
}

/* Returns the last component of a path. */
static inline const char *file_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Returns the index of the first of `n` entries at `at` with this name; NO_NAME if no entry has it.
 * Each entry has `size` bytes. */
uint32_t name_find(Arena *a, NameIndex *x, const void *at, uint32_t n, size_t size,
                   const char *name);
