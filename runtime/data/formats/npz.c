/* NPZ archives of NumPy: numpy.savez, savez_compressed. `key` names the array, member KEY.npy. */
#include "npy_header.h"
#include <string.h>
#include "args.h"
#include "zip.h"

enum { HELD_MOST = 256 << 20 /* bytes of a stored member; a larger one stays in the file */ };

/* Unpacks a whole deflated member, then moves the elements over the header. */
static ampc_status open_contents(const DataFile *f, const Bytes *zip, const ZipMember *m,
                                 int64_t at, ampc_array *out)
{
  int64_t size = array_bytes(out);
  if (at + size != m->size)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld bytes for an array, whose header promises %lld",
                     f->path, (long long)m->size, (long long)(at + size));
  if (!m->deflated && size > HELD_MOST) return bytes_open(f, m->at + at, size, false, &out->bytes);
  uint8_t *held;
  ampc_status status = zip_read(zip, m, &held);
  if (status) return status;
  memmove(held, held + at, (size_t)size);
  out->bytes = (Bytes){.path = f->path, .held = held, .fd = -1, .size = size};
  return AMPC_OK;
}

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  const DataFile file = {path, "an NPZ file", false};
  char name[256];
  uint8_t head[NPY_HEAD];
  int64_t got, at;
  Bytes zip = {.path = path};
  ZipDirectory directory = {0};
  ZipMember m;
  if (!args_text(args, "key", name, sizeof name - 4))
    return ampc_fail(AMPC_BAD_USAGE, "%s: `key` of npz is missing, or longer than 250 bytes", path);
  strcat(name, ".npy");
  ampc_status status = stream_open_file(&file, &zip.fd, &zip.size);
  if (status) return status;
  status = zip_open(&zip, &directory);
  if (!status) status = zip_member(&zip, &directory, name, ".npy", &m);
  if (!status) status = zip_head(&zip, &m, head, NPY_HEAD, &got);
  if (!status) status = npy_read_header(path, head, got, m.size, out, &at);
  if (!status && contents) status = open_contents(&file, &zip, &m, at, out);
  zip_close(&directory);
  bytes_close(&zip);
  return status;
}

ARRAY_FORMAT(NPZ, npz, .types = {AMPC_U8, AMPC_BOOL, AMPC_I32, AMPC_I64, AMPC_F16, AMPC_F32},
             .n_types = 6);
