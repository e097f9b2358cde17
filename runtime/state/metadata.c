#include "metadata.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *metadata_key(const char *const *parts)
{
  size_t size = 1;
  for (uint32_t i = 0; parts[i]; i++) size += strlen(parts[i]);
  char *out = calloc(size, 1), *to = out;
  for (uint32_t i = 0; out && parts[i]; i++) to = stpcpy(to, parts[i]);
  return out;
}

bool metadata_set(TensorFile *f, const char *const *key, const char *format, ...)
{
  char value[64], *name = metadata_key(key);
  va_list args;
  va_start(args, format);
  vsnprintf(value, sizeof value, format, args);
  va_end(args);
  bool good = name && tensor_file_set(f, name, value);
  free(name);
  return good;
}

void metadata_refuse(Metadata *m, const char *expected)
{
  m->bad = true;
  snprintf(m->expected, sizeof m->expected, "%s", expected);
}

const char *metadata_get(Metadata *m, const char *const *key)
{
  if (m->bad) return NULL;
  free(m->key);
  m->key = metadata_key(key);
  if (!m->key) metadata_refuse(m, "memory for its name");
  return m->key ? tensor_file_get(m->file, m->key) : NULL;
}

int64_t metadata_count(Metadata *m, const char *const *key, int64_t least, int64_t most)
{
  char range[AMPC_RANGE_ROOM];
  const char *text = metadata_get(m, key);
  int64_t value = 0;
  if (m->bad || (text && ampc_read_count(text, least, most, &value))) return value;
  metadata_refuse(m, ampc_range_text(range, least, most));
  return 0;
}

double metadata_real(Metadata *m, const char *const *key, ampc_domain domain)
{
  const char *text = metadata_get(m, key);
  double value = 0;
  if (m->bad || (text && ampc_read_real(text, &value) && ampc_in_domain(domain, value)))
    return value;
  metadata_refuse(m, ampc_domain_text(domain));
  return 0;
}
