/* Finds a name in an array of structs that begin with one, in time that does not grow with the
 * array. Names are only ever added behind those that are there. */
#pragma once
#include "arena.h"
#include <string.h>

typedef VEC(const char *) NameVec;

typedef struct NameIndex { /* zeroed: empty */
  uint32_t *slot;          /* 1 + index of an entry; 0: free */
  uint32_t cap, n;         /* a power of two; entries that are indexed so far */
} NameIndex;

enum { NO_NAME = UINT32_MAX };

/* For walks over short tables: most names differ in the first letter. */
static inline bool same_name(const char *a, const char *b)
{
  return *a == *b && strcmp(a, b) == 0;
}

/* Whether the n characters at `word` are this name. */
static inline bool is_name(const char *word, size_t n, const char *name)
{
  return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* A letter, a digit, _. ASCII, whatever the locale says: a compiler of C need not take more. */
static inline bool in_name(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static inline size_t name_size(const char *s) /* of the name that s begins with */
{
  size_t n = 0;
  while (in_name(s[n])) n++;
  return n;
}

/* The last part of a path. */
static inline const char *file_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The first of the `n` entries at `at`, of `size` bytes each, that has the name; NO_NAME: none. */
uint32_t name_find(Arena *a, NameIndex *x, const void *at, uint32_t n, size_t size,
                   const char *name);
