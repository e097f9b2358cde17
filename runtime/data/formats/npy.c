/* NPY files of NumPy, plain or gzipped: numpy.save. The first axis counts the samples. */
#include "npy_header.h"
#include <stdlib.h>
#include "stream.h"

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  (void)args;
  int64_t got, at = 0;
  Stream s;
  uint8_t *head = malloc(NPY_HEAD);
  if (!head) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  ampc_status status = stream_open(path, "an NPY file", &s);
  if (!status) {
    status = stream_read(&s, head, NPY_HEAD, &got);
    if (!status) status = npy_read_header(path, head, got, s.most, out, &at);
    stream_close(&s);
  }
  free(head);
  if (status || !contents) return status;
  return bytes_open(path, "an NPY file", BY_CONTENT, at, array_bytes(out), true, &out->bytes);
}

const ampc_format ampc_format_npy = {
    .kind = AMPC_SOURCE_NPY,
    .name = "npy",
    .types = {AMPC_U8, AMPC_BOOL, AMPC_I32, AMPC_I64, AMPC_F16, AMPC_F32},
    .n_types = 6,
    .probe = array_probe,
    .locate = locate,
    .open = array_open,
    .copy = array_copy,
    .close = array_close,
};
