#include "metadata.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/data/formats/args.h"
#include "runtime/data/formats/classes.h"

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

/* ---- names of classes ---- */

/* Checks that columns of names that the net reads have the same classes in the file. */
static ampc_status check_columns(const char *path, const ampc_program *p, const TensorFile *f)
{
  int n;
  const char *has = tensor_file_get(f, "ampc.columns"), *theirs, *ours;
  for (const char *at = has && p->columns ? args_next(has, "column", NULL, &n) : NULL; at;
       at = args_next(has, "column", at, &n)) {
    size_t size = classes_of_column(has, at, n, &theirs),
           own = classes_of_column(p->columns, at, n, &ours);
    if (own && (own != size || memcmp(ours, theirs, size) != 0))
      return ampc_fail(
          AMPC_BAD_FILE,
          "%s has other classes in column %.*s than %s: list the names in the order of "
          "the checkpoint, classes=[\"..\", ..]",
          path, n, at, p->source);
  }
  return AMPC_OK;
}

ampc_status metadata_check_classes(const char *path, const ampc_program *p, const TensorFile *f)
{
  const char *has = tensor_file_get(f, "ampc.classes"), *wants = p->classes;
  size_t at = 0;
  if (!has || !wants || strcmp(has, wants) == 0) return check_columns(path, p, f);
  while (has[at] == wants[at]) at++;
  while (at && has[at - 1] != '\n') at--;
  return ampc_fail(
      AMPC_BAD_FILE,
      "%s has the class `%.*s` where %s has `%.*s`: list the names in the order of the "
      "checkpoint, classes=[\"..\", ..]",
      path, (int)strcspn(has + at, "\n"), has + at, p->source, (int)strcspn(wants + at, "\n"),
      wants + at);
}
