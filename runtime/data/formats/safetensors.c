/* Safetensors files: the length of a header in JSON (8 bytes, the least first), the header, the
 * tensors. `key` names the tensor; its first axis counts the samples. Plain or gzipped. */
#include <stdlib.h>
#include <unistd.h>
#include "args.h"
#include "stream.h"
#include "tensors.h"

enum { LENGTH = 8, MOST_HEADER = 100 << 20 /* bytes, as the format says */ };

static ampc_status read_header(Stream *s, char **out_text, int64_t *out_size)
{
  uint8_t length[LENGTH];
  int64_t got;
  ampc_status status = stream_read(s, length, LENGTH, &got);
  if (status) return status;
  uint64_t size = 0;
  for (int i = LENGTH - 1; i >= 0; i--) size = size << 8 | length[i];
  if (got < LENGTH || size < 2 || size > MOST_HEADER || (int64_t)size > s->most)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is no safetensors file, or truncated: its header would have %llu bytes",
                     s->path, got < LENGTH ? 0ULL : (unsigned long long)size);
  *out_size = (int64_t)size;
  *out_text = malloc((size_t)size);
  if (!*out_text) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
  status = stream_read(s, *out_text, *out_size, &got);
  if (status || got == *out_size) return status;
  return ampc_fail(AMPC_BAD_FILE, "%s is truncated: its header ends after %lld of %lld bytes",
                   s->path, (long long)got, (long long)*out_size);
}

/* How many bytes of tensors there can be: known where the file is not gzipped. */
static int64_t most_bytes(const Stream *s, int64_t file_size, int64_t header)
{
  return gzdirect(s->file) ? file_size - LENGTH - header : s->most;
}

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  char key[512], *text = NULL;
  int64_t size = 0, at = 0, file_size;
  int fd;
  Stream s;
  if (!args_text(args, "key", key, sizeof key))
    return ampc_fail(AMPC_BAD_USAGE, "%s: `key` is missing, or longer than 511 bytes", path);
  ampc_status status = stream_open_file(path, "a safetensors file", &fd, &file_size);
  if (status) return status;
  close(fd);
  status = stream_open(path, "a safetensors file", &s);
  if (status) return status;
  status = read_header(&s, &text, &size);
  if (!status)
    status = tensors_find(path, text, size, most_bytes(&s, file_size, size), key, out, &at);
  stream_close(&s);
  free(text);
  if (status || !contents) return status;
  return bytes_open(path, "a safetensors file", BY_CONTENT, LENGTH + size + at, array_bytes(out),
                    false, &out->bytes);
}

const ampc_format ampc_format_safetensors = {
    .kind = AMPC_SOURCE_SAFETENSORS,
    .name = "safetensors",
    .types = {AMPC_U8, AMPC_BOOL, AMPC_I32, AMPC_I64, AMPC_NARROW_FLOATS(AMPC_CONSTANT) AMPC_F32},
    .n_types = 7,
    .probe = array_probe,
    .locate = locate,
    .open = array_open,
    .copy = array_copy,
    .close = array_close,
};
