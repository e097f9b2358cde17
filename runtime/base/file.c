/* Note [a file or none]
 * The new content goes to PATH.tmp in the same folder, is synced, and takes the name by rename;
 * then the folder is synced. A process killed at any point leaves PATH whole. What it leaves of
 * PATH.tmp is written over by the next one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "file.h"

static char *temporary_name(const char *path)
{
  size_t size = strlen(path) + sizeof ".tmp";
  char *name = malloc(size);
  if (name) snprintf(name, size, "%s.tmp", path);
  return name;
}

static ampc_status cannot_write(const char *path, int error)
{
  return ampc_fail(AMPC_BAD_FILE, "cannot write %s: %s", path, strerror(error));
}

/* A rename would put a file in the place of a folder's or a device's name. */
static ampc_status check_target(const char *path)
{
  struct stat info;
  if (stat(path, &info) != 0 || S_ISREG(info.st_mode)) return AMPC_OK;
  if (S_ISDIR(info.st_mode)) return cannot_write(path, EISDIR);
  return ampc_fail(AMPC_BAD_FILE, "cannot write %s: not a regular file", path);
}

/* Not through a link: somebody else could have put one there. */
static int open_temporary(const char *name)
{
  return open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
}

static bool write_all(int fd, const char *bytes, int64_t size)
{
  while (size > 0) {
    ssize_t n = write(fd, bytes, (size_t)size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes += n;
    size -= n;
  }
  return true;
}

static bool sync_folder(const char *path)
{
  const char *slash = strrchr(path, '/');
  char *folder = slash == path ? strdup("/")
                 : slash       ? strndup(path, (size_t)(slash - path))
                               : strdup(".");
  int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  bool done =
      fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); /* some file systems have no such sync */
  if (fd >= 0) close(fd);
  free(folder);
  return done;
}

/* Writes and closes the temporary file; false with errno set. */
static bool write_parts(int fd, const FilePart *parts, uint32_t n_parts)
{
  bool good = true;
  for (uint32_t i = 0; i < n_parts && good; i++)
    good = write_all(fd, parts[i].bytes, parts[i].size);
  good = good && fsync(fd) == 0;
  int error = errno;
  if (close(fd) != 0 && good) return false;
  errno = error;
  return good;
}

ampc_status file_replace(const char *path, const FilePart *parts, uint32_t n_parts)
{
  ampc_status status = check_target(path);
  char *name = status ? NULL : temporary_name(path);
  if (!name) return status ? status : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  int fd = open_temporary(name);
  bool good = fd >= 0 && write_parts(fd, parts, n_parts) && rename(name, path) == 0;
  int error = errno;
  if (!good && fd >= 0) unlink(name);
  free(name);
  if (!good) return cannot_write(path, error);
  return sync_folder(path) ? AMPC_OK : cannot_write(path, errno);
}

ampc_status file_check_writable(const char *path)
{
  ampc_status status = check_target(path);
  char *name = status ? NULL : temporary_name(path);
  if (!name) return status ? status : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  int fd = open_temporary(name), error = errno;
  if (fd >= 0) {
    close(fd);
    unlink(name);
  }
  free(name);
  return fd >= 0 ? AMPC_OK : cannot_write(path, error);
}

/* The size may change while we read: what was there at the beginning must come. One byte more is
 * allocated, so that callers can end text. */
static ampc_status read_open(int fd, const char *path, char **out, int64_t *out_size)
{
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return ampc_fail(AMPC_BAD_FILE, "cannot read %s: not a regular file", path);
  int64_t got = 0;
  *out_size = info.st_size;
  *out = malloc((size_t)info.st_size + 1);
  if (!*out) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  while (got < *out_size) {
    ssize_t n = read(fd, *out + got, (size_t)(*out_size - got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return ampc_fail(AMPC_BAD_FILE, "cannot read %s: %s", path,
                       n < 0 ? strerror(errno) : "it became shorter");
    got += n;
  }
  return AMPC_OK;
}

ampc_status file_read(const char *path, char **out, int64_t *out_size)
{
  *out = NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ampc_fail(AMPC_BAD_FILE, "cannot open %s: %s", path, strerror(errno));
  ampc_status status = read_open(fd, path, out, out_size);
  close(fd);
  if (status) {
    free(*out);
    *out = NULL;
  }
  return status;
}
