/* A map from names to pointers. */
#include "name_map.h"

static uint32_t find(NameMap *m, const char *name)
{
  return name_find(m->arena, &m->index, m->entries.at, m->entries.n, sizeof *m->entries.at, name);
}

void **names_at(NameMap *m, const char *name)
{
  uint32_t i = find(m, name);
  if (i == NO_NAME) {
    i = m->entries.n;
    vec_push(m->arena, &m->entries, (NameEntry){name, NULL});
  }
  return &m->entries.at[i].value;
}

void *names_get(NameMap *m, const char *name)
{
  uint32_t i = find(m, name);
  return i == NO_NAME ? NULL : m->entries.at[i].value;
}
