/* NPZ archives of NumPy: numpy.savez and savez_compressed. `key` names the array, a member KEY.npy.
 */
#include "npy_header.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "args.h"
#include "stream.h"
#include "zip.h"

enum { HELD_MOST = 256 << 20 /* bytes of a stored member; a larger one is read where it lies */ };

/* A deflated member is unpacked whole; the header is cut off by moving what lies behind it. */
static ampc_status open_contents(const char *path, int fd, const ZipMember *m, int64_t at,
                                 ampc_array *out)
{
  int64_t size = array_bytes(out);
  if (at + size != m->size)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld bytes for an array, whose header promises %lld",
                     path, (long long)m->size, (long long)(at + size));
  if (!m->deflated && size > HELD_MOST)
    return bytes_open(path, "an NPZ file", BY_CONTENT, m->at + at, size, false, &out->bytes);
  uint8_t *held;
  ampc_status status = zip_read(path, fd, m, &held);
  if (status) return status;
  memmove(held, held + at, (size_t)size);
  out->bytes = (Bytes){.path = path, .held = held, .fd = -1, .size = size};
  return AMPC_OK;
}

static ampc_status read_member(const char *path, int fd, const ZipMember *m, bool contents,
                               ampc_array *out)
{
  int64_t got, at;
  uint8_t *head = malloc(NPY_HEAD);
  if (!head) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  ampc_status status = zip_head(path, fd, m, head, NPY_HEAD, &got);
  if (!status) status = npy_read_header(path, head, got, m->size, out, &at);
  free(head);
  if (!status && contents) status = open_contents(path, fd, m, at, out);
  return status;
}

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  char name[256];
  int fd;
  int64_t size;
  ZipMember m;
  if (!args_text(args, "key", name, sizeof name - 4))
    return ampc_fail(AMPC_BAD_USAGE, "%s: `key` of npz is missing, or longer than 250 bytes", path);
  strcat(name, ".npy");
  ampc_status status = stream_open_file(path, "an NPZ file", &fd, &size);
  if (status) return status;
  status = zip_find(path, fd, size, name, ".npy", &m);
  if (!status) status = read_member(path, fd, &m, contents, out);
  close(fd);
  return status;
}

const ampc_format ampc_format_npz = {
    .kind = AMPC_SOURCE_NPZ,
    .name = "npz",
    .types = {AMPC_U8, AMPC_BOOL, AMPC_I32, AMPC_I64, AMPC_F16, AMPC_F32},
    .n_types = 6,
    .probe = array_probe,
    .locate = locate,
    .open = array_open,
    .copy = array_copy,
    .close = array_close,
};
