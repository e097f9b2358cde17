/* Writes whole files. */
#include "output.h"
#include "runtime/plan/shown.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool complain(const char *path)
{
  char shown[2 * PATH_MAX], why[100];
  snprintf(why, sizeof why, "%s", strerror(errno));
  fprintf(stderr, "ampc: error: cannot write %s: %s\n", ampc_show(shown, sizeof shown, path, ""),
          why);
  return false;
}

/* A signal may cut a write short. */
static bool write_all(int fd, const char *data, size_t size)
{
  for (size_t done = 0; done < size;) {
    ssize_t n = write(fd, data + done, size - done);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) done += (size_t)n;
  }
  return true;
}

/* Devices and pipes cannot be replaced by a rename. */
static bool write_directly(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");
  if (!f) return complain(path);
  bool good = fwrite(data, 1, size, f) == size;
  if (fclose(f) != 0 || !good) return complain(path);
  return true;
}

/* The temporary file lies in the same folder, for only there a rename is one step. It gets the
 * permissions that a new file would have. */
static bool write_renamed(const char *path, const void *data, size_t size)
{
  char temporary[PATH_MAX];
  if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
    errno = ENAMETOOLONG;
  else
    errno = 0;
  int fd = errno ? -1 : mkstemp(temporary);
  if (fd < 0) return complain(path);
  mode_t mask = umask(0);
  umask(mask);
  bool good = fchmod(fd, 0666 & ~mask) == 0 && write_all(fd, data, size);
  good = close(fd) == 0 && good;
  if (good && rename(temporary, path) == 0) return true;
  complain(path);
  unlink(temporary);
  return false;
}

bool output_write(const char *path, const void *data, size_t size)
{
  if (!path || strcmp(path, "-") == 0) {
    bool good = fwrite(data, 1, size, stdout) == size && fflush(stdout) == 0;
    return good || complain("to stdout");
  }
  struct stat at;
  bool special = stat(path, &at) == 0 && !S_ISREG(at.st_mode);
  return special ? write_directly(path, data, size) : write_renamed(path, data, size);
}
