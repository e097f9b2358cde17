#include "json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
