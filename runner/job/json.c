#include "json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ampc_status json_read(FileRole role, const char *path, json_t **out)
{
  enum { MOST = 1 << 30 /* bytes */ };
  char *text = NULL;
  int64_t size = 0;
  json_error_t error;
  *out = NULL;
  const char *why = file_read_any(role, path, MOST, &text, &size);
  if (!why) *out = json_loadb(text, (size_t)size, JSON_REJECT_DUPLICATES, &error);
  free(text);
  if (*out) return AMPC_OK;
  if (why) return ampc_fail(AMPC_BAD_FILE, "%s: %s", path, why);
  return ampc_fail(AMPC_BAD_FILE, "%s, line %d: no JSON: %s", path, error.line, error.text);
}

ampc_status json_save(json_t *value, const char *path, const FileKind *kind, size_t flags)
{
  char *text = value ? json_dumps(value, flags | JSON_PRESERVE_ORDER) : NULL;
  json_decref(value);
  if (!text) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = AMPC_OK;
  if (path)
    status = file_write(path, kind, text, (int64_t)strlen(text));
  else
    puts(text);
  free(text);
  return status;
}
