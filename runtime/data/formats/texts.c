/* Finds files of ids in the cache; see texts.h. */
#include "texts.h"
#include <string.h>
#include "bytes.h"
#include "runtime/plan/formats.h"

extern const struct ampc_texts ampc_texts __attribute__((weak));

static bool skips;

void ampc_texts_skip(void)
{
  skips = true;
}

ampc_status texts_find(const char *path, const char *args, char file[TEXTS_PATH], TextsEnd *out)
{
  const char *why;
  if (!&ampc_texts)
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s is text, and this program has no tokenizers: link it again, as "
                     "ampc --build-line says",
                     path);
  ampc_status status = ampc_texts.find(path, args, !skips, file, &why);
  if (status) return ampc_fail(status, "%s", why);
  *out = (TextsEnd){.tokens = -1};
  if (!*file) return AMPC_OK;
  Bytes b;
  int64_t size, n = (int64_t)sizeof *out;
  const DataFile data = {file, "ids", true};
  status = bytes_count(&data, &size);
  if (!status && size < n) status = ampc_fail(AMPC_BAD_FILE, "%s is damaged: delete it", file);
  if (!status) status = bytes_open(&data, size - n, n, true, &b);
  if (status) return status;
  status = bytes_read(&b, 0, n, out);
  bytes_close(&b);
  if (status) return status;
  bool whole = memcmp(out->magic, TEXTS_MAGIC, sizeof out->magic) == 0 && out->tokens >= 0 &&
               out->records >= 0 && out->tokens <= size && out->records <= size &&
               out->tokens * 4 + out->records * 8 + n == size;
  return whole ? AMPC_OK : ampc_fail(AMPC_BAD_FILE, "%s is damaged: delete it", file);
}
