/* Reading. A pipe is opened without waiting for its writer, because there may be none. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/file.h"

enum {
  PATIENCE = 2000,     /* ms; for a process that is about to write to a named pipe */
  PAUSE = 10,          /* ms */
  FIRST_ROOM = 1 << 16 /* bytes; for files of unknown size */
};

static ampc_status cannot_read(const char *path, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "cannot read %s: %s", path, why);
}

int file_open_input(FileRole role, const char *path, int flags)
{
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
  if (fd < 0 || file_note_input(role, path) == AMPC_OK) return fd;
  close(fd);
  errno = ENOMEM;
  return -1;
}

void file_close_input(FileRole role, const char *path, int fd)
{
  file_end_input(role, path);
  close(fd);
}

/* ---- regular files ---- */

ampc_status file_read_at(const char *path, int fd, int64_t at, int64_t n, void *to)
{
  for (int64_t done = 0; done < n;) {
    ssize_t got = pread(fd, (char *)to + done, (size_t)(n - done), at + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return cannot_read(path, got < 0 ? strerror(errno) : "it became shorter while it was read");
    done += got;
  }
  return AMPC_OK;
}

/* Reads all bytes that were there at the start, although the size may change meanwhile. */
static ampc_status read_regular(int fd, const char *path, char **out, int64_t *out_size)
{
  struct stat info;
  if (fstat(fd, &info) != 0) return cannot_read(path, strerror(errno));
  if (S_ISDIR(info.st_mode)) return cannot_read(path, strerror(EISDIR));
  if (!S_ISREG(info.st_mode)) return cannot_read(path, "not a regular file");
  *out_size = info.st_size;
  *out = malloc((size_t)info.st_size + 1);
  if (!*out) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  (*out)[*out_size] = 0;
  return file_read_at(path, fd, 0, *out_size, *out);
}

ampc_status file_read(FileRole role, const char *path, char **out, int64_t *out_size)
{
  *out = NULL;
  int fd = file_open_input(role, path, 0);
  if (fd < 0) return ampc_fail(AMPC_BAD_FILE, "cannot open %s: %s", path, strerror(errno));
  ampc_status status = read_regular(fd, path, out, out_size);
  file_close_input(role, path, fd);
  if (status) {
    free(*out);
    *out = NULL;
  }
  return status;
}

/* ---- anything that can be read ---- */

typedef struct Bytes {
  char *at;
  int64_t n, room;
} Bytes;

static bool make_room(Bytes *b)
{
  if (b->n + 1 < b->room) return true;
  int64_t room = b->room ? 2 * b->room : FIRST_ROOM;
  char *at = realloc(b->at, (size_t)room);
  if (!at) return false;
  b->at = at;
  b->room = room;
  return true;
}

/* After an empty read: whether this is a named pipe whose writer may still come. False: the end. */
static bool may_come(int fd, int *waited)
{
  struct stat info;
  if (*waited >= PATIENCE || fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode)) return false;
  struct pollfd at = {.fd = fd, .events = POLLIN};
  *waited += PAUSE;
  return poll(&at, 1, PAUSE) <= 0 || at.revents & POLLIN; /* else a writer has closed the pipe */
}

static const char *too_long(int64_t most)
{
  static _Thread_local char why[64];
  snprintf(why, sizeof why, "it has more than %lld bytes", (long long)most);
  return why;
}

/* Reads until the end. Returns NULL, or the reason why not everything could be read. */
static const char *read_any(int fd, int64_t most, Bytes *b)
{
  int waited = 0;
  for (;;) {
    if (!make_room(b)) return "out of memory";
    ssize_t n = read(fd, b->at + b->n, (size_t)(b->room - b->n - 1));
    if (n > 0 && (b->n += n) > most) return too_long(most);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n < 0 && errno == EAGAIN) {
      struct pollfd at = {.fd = fd, .events = POLLIN}; /* a writer has the pipe open: wait for it */
      poll(&at, 1, -1);
    } else if (n < 0) {
      return strerror(errno);
    } else if (b->n) {
      return NULL;
    } else if (!may_come(fd, &waited)) {
      return waited >= PATIENCE ? "no process writes to this pipe" : NULL;
    }
  }
}

const char *file_read_any(FileRole role, const char *path, int64_t most, char **out,
                          int64_t *out_size)
{
  Bytes b = {0};
  *out = NULL;
  int fd = file_open_input(role, path, 0);
  if (fd < 0 && errno == ENXIO && strcmp(path, "/dev/stdin") == 0)
    fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0); /* a socket, such as editors use, has no path */
  if (fd < 0) return strerror(errno);
  const char *why = read_any(fd, most, &b);
  file_close_input(role, path, fd);
  if (why) {
    free(b.at);
    return why;
  }
  b.at[b.n] = 0;
  *out = b.at;
  *out_size = b.n;
  return NULL;
}

char *file_join(const char *folder, const char *path)
{
  bool plain = path[0] == '/' || !folder || !*folder || strcmp(folder, ".") == 0;
  size_t size = strlen(path) + (plain ? 0 : strlen(folder) + 1) + 1;
  char *out = malloc(size);
  if (out) snprintf(out, size, "%s%s%s", plain ? "" : folder, plain ? "" : "/", path);
  return out;
}
