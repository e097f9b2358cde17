/* Ranges of files. */
#include "bytes.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/file.h"

enum {
  HELD_MOST = 256 << 20, /* bytes of an uncompressed file */
  PIECE = 1 << 20        /* bytes that are read at a time if the size is not known */
};

static ampc_status truncated(const char *path, int64_t has, int64_t wants)
{
  return ampc_fail(AMPC_BAD_FILE, "%s is truncated: it has %lld of %lld bytes", path,
                   (long long)has, (long long)wants);
}

static ampc_status too_long(const char *path, int64_t size)
{
  return ampc_fail(AMPC_BAD_FILE, "%s has more than the %lld bytes that its header promises", path,
                   (long long)size);
}

/* Opens the range of a file that is not compressed. Owns fd from here on: stores or closes it. */
static ampc_status open_plain(int fd, int64_t file_size, int64_t size, bool whole, Bytes *b)
{
  ampc_status status = AMPC_OK;
  if (size < 0) size = file_size - b->at;
  if (b->at > file_size || size < 0 || size > file_size - b->at)
    status = truncated(b->path, file_size, b->at + size);
  else if (whole && b->at + size < file_size)
    status = too_long(b->path, b->at + size);
  b->size = size;
  if (!status && size <= HELD_MOST) {
    b->held = malloc((size_t)size + 1);
    status = b->held ? file_read_at(b->path, fd, b->at, size, b->held)
                     : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", b->path);
  }
  if (status || b->held) {
    close(fd);
  } else {
    b->fd = fd;
  }
  return status;
}

/* Reads up to the end of the stream. */
static ampc_status read_rest(Stream *s, Bytes *b)
{
  int64_t room = 0, got = 0;
  do {
    if (b->size + PIECE > room) {
      room = room ? 2 * room : 4 * PIECE;
      uint8_t *more = realloc(b->held, (size_t)room);
      if (!more) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
      b->held = more;
    }
    ampc_status status = stream_read(s, b->held + b->size, PIECE, &got);
    if (status) return status;
    b->size += got;
  } while (got == PIECE);
  return AMPC_OK;
}

static ampc_status skip(Stream *s, int64_t n)
{
  char scrap[1 << 14];
  for (int64_t got, done = 0; done < n; done += got) {
    int64_t left = n - done;
    ampc_status status =
        stream_read(s, scrap, left < (int64_t)sizeof scrap ? left : (int64_t)sizeof scrap, &got);
    if (status) return status;
    if (!got) return truncated(s->path, done, n);
  }
  return AMPC_OK;
}

static ampc_status read_exactly(Stream *s, int64_t size, bool whole, Bytes *b)
{
  int64_t got;
  uint8_t more;
  b->held = malloc((size_t)size + 1);
  if (!b->held) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
  b->size = size;
  ampc_status status = stream_read(s, b->held, size, &got);
  if (!status && got < size) return truncated(s->path, b->at + got, b->at + size);
  if (!status) status = stream_read(s, &more, 1, &got);
  return !status && whole && got ? too_long(s->path, b->at + size) : status;
}

static ampc_status open_packed(const DataFile *f, int64_t size, bool whole, Bytes *b)
{
  Stream s;
  ampc_status status = stream_open(f, &s);
  if (status) return status;
  status = skip(&s, b->at);
  if (!status && size > s.most) status = truncated(b->path, s.most, size);
  if (!status) status = size < 0 ? read_rest(&s, b) : read_exactly(&s, size, whole, b);
  stream_close(&s);
  return status;
}

/* Opens the file. Sets *out_packed if it is gzipped. */
static ampc_status look(const DataFile *f, int *out_fd, int64_t *out_size, bool *out_packed)
{
  uint8_t magic[2] = {0};
  size_t n = strlen(f->path);
  bool named = n > 3 && strcmp(f->path + n - 3, ".gz") == 0;
  ampc_status status = stream_open_file(f, out_fd, out_size);
  if (status) return status;
  *out_packed = pread(*out_fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  if (!f->by_name || *out_packed == named) return AMPC_OK;
  *out_packed = false;
  if (!named) return AMPC_OK;
  close(*out_fd);
  return ampc_fail(AMPC_BAD_FILE, "%s has the suffix .gz, but is not compressed with gzip",
                   f->path);
}

ampc_status bytes_open(const DataFile *f, int64_t at, int64_t size, bool whole, Bytes *out)
{
  int fd;
  int64_t file_size;
  bool packed;
  *out = (Bytes){.path = f->path, .fd = -1, .at = at};
  ampc_status status = look(f, &fd, &file_size, &packed);
  if (status) return status;
  if (packed) {
    close(fd);
    status = open_packed(f, size, whole, out);
  } else {
    status = open_plain(fd, file_size, size, whole, out);
  }
  if (status) bytes_close(out);
  return status;
}

ampc_status bytes_count(const DataFile *f, int64_t *out)
{
  int fd;
  bool packed;
  char scrap[1 << 14];
  ampc_status status = look(f, &fd, out, &packed);
  if (status) return status;
  close(fd);
  if (!packed) return AMPC_OK;
  Stream s;
  int64_t got = sizeof scrap;
  status = stream_open(f, &s);
  if (status) return status;
  for (*out = 0; !status && got == sizeof scrap; *out += got)
    status = stream_read(&s, scrap, sizeof scrap, &got);
  stream_close(&s);
  return status;
}

void bytes_close(Bytes *b)
{
  free(b->held);
  if (b->fd >= 0 && b->path) close(b->fd);
  *b = (Bytes){.fd = -1};
}

ampc_status bytes_read(const Bytes *b, int64_t at, int64_t n, void *to)
{
  if (!b->held) return file_read_at(b->path, b->fd, b->at + at, n, to);
  memcpy(to, b->held + at, (size_t)n);
  return AMPC_OK;
}
