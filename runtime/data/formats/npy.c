/* NPY files of NumPy, plain or gzipped: numpy.save. The first axis counts the samples. */
#include "npy_header.h"

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  (void)args;
  const DataFile file = {path, "an NPY file", false};
  int64_t got, at = 0;
  Stream s;
  uint8_t head[NPY_HEAD];
  ampc_status status = stream_open(&file, &s);
  if (status) return status;
  status = stream_read(&s, head, NPY_HEAD, &got);
  if (!status) status = npy_read_header(path, head, got, s.most, out, &at);
  stream_close(&s);
  return status || !contents ? status : bytes_open(&file, at, array_bytes(out), true, &out->bytes);
}

ARRAY_FORMAT(NPY, npy, .types = {AMPC_U8, AMPC_BOOL, AMPC_I32, AMPC_I64, AMPC_F16, AMPC_F32},
             .n_types = 6);
