/* A map from names to pointers. All memory is in the arena. */
#pragma once
#include "compiler/base/names.h"

typedef struct NameEntry {
  const char *name;
  void *value;
} NameEntry;

typedef struct NameMap {
  Arena *arena;
  VEC(NameEntry) entries;
  NameIndex index;
} NameMap;

/* Returns the place of the value, which is NULL until it is set. The pointer is valid until the
 * next call. The name is not copied. */
void **names_at(NameMap *m, const char *name);
void *names_get(NameMap *m, const char *name); /* NULL: no value */
