/* Reads files through zlib, which returns the bytes of a file that is not gzipped unchanged. */
#include "stream.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  PIECE = 1 << 30,    /* bytes per call, because zlib counts them in an int */
  BUFFER = 1 << 17,   /* bytes; zlib's default, 8 KiB, costs a third of the speed */
  DEFLATE_MOST = 1032 /* the format's limit: bytes that one byte of input can unpack to */
};

ampc_status stream_open_file(const DataFile *f, int *out_fd, int64_t *out_size)
{
  struct stat info;
  int fd = open(f->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &info) != 0) {
    int error = errno;
    if (fd >= 0) close(fd);
    return ampc_fail(AMPC_BAD_FILE, "cannot open %s: %s", f->path, strerror(error));
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return ampc_fail(AMPC_BAD_FILE, "%s is %s, expected %s", f->path,
                     S_ISDIR(info.st_mode) ? "a folder" : "no regular file", f->expected);
  }
  *out_fd = fd;
  *out_size = info.st_size;
  return AMPC_OK;
}

ampc_status stream_open(const DataFile *f, Stream *out)
{
  int fd = -1;
  int64_t size = 0;
  ampc_status status = stream_open_file(f, &fd, &size);
  if (status) return status;
  errno = ENOMEM; /* zlib does not set errno if it is out of memory */
  gzFile file = gzdopen(fd, "rb");
  if (!file) {
    int error = errno;
    close(fd);
    if (error == ENOMEM) return ampc_fail(AMPC_RUN_FAILED, "out of memory reading %s", f->path);
    return ampc_fail(AMPC_BAD_FILE, "cannot open %s: %s", f->path, strerror(error));
  }
  *out = (Stream){file, f->path, size, size * DEFLATE_MOST};
  gzbuffer(file, BUFFER);
  return AMPC_OK;
}

void stream_close(Stream *s)
{
  gzclose_r(s->file);
}

ampc_status stream_read(Stream *s, void *to, int64_t n, int64_t *out_read)
{
  *out_read = 0;
  while (*out_read < n) {
    int64_t left = n - *out_read;
    int got = gzread(s->file, (char *)to + *out_read, (unsigned)(left < PIECE ? left : PIECE));
    int code = Z_OK;
    const char *why = gzerror(s->file, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      if (code == Z_MEM_ERROR)
        return ampc_fail(AMPC_RUN_FAILED, "out of memory reading %s", s->path);
      if (code == Z_ERRNO)
        return ampc_fail(AMPC_BAD_FILE, "cannot read %s: %s", s->path, strerror(errno));
      if (code == Z_BUF_ERROR) why = "the gzip stream ends too early";
      if (strncmp(why, "<fd:", 4) == 0) why += strcspn(why, " "); /* zlib's name for the file */
      while (*why == ' ') why++;
      return ampc_fail(AMPC_BAD_FILE, "%s is truncated or damaged: %s", s->path, why);
    }
    if (got == 0) break;
    *out_read += got;
  }
  return AMPC_OK;
}
