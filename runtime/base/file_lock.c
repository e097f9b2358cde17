/* A lock is an abstract Unix socket whose name is computed from the folder and the file's name. It
 * is not a file, so nothing is left over: it disappears with its process, however the process ends.
 * A process on another machine that shares the folder does not see the lock. Then the last one to
 * save wins; each file is still complete (file.c). */
#include "file_lock.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/file.h"

/* Hashes a file name by FNV-1a, because it can be longer than a socket address. */
static unsigned long long hash_of(const char *text)
{
  unsigned long long hash = 0xcbf29ce484222325u;
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return hash;
}

/* Computes the address; all names of a file give the same one. False: the folder does not exist. */
static bool address_of(const char *path, struct sockaddr_un *out, socklen_t *out_size)
{
  struct stat info;
  char *target = file_target(path), *folder = target ? file_folder(target) : NULL;
  bool there = folder && stat(folder, &info) == 0;
  if (there) {
    const char *slash = strrchr(target, '/');
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "ampc-%llx-%llx-%016llx",
                     (unsigned long long)info.st_dev, (unsigned long long)info.st_ino,
                     hash_of(slash ? slash + 1 : target));
    *out_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
  }
  free(folder);
  free(target);
  return there;
}

/* Returns the process that listens at the address; 0: unknown. */
static long holder_of(const struct sockaddr_un *address, socklen_t size)
{
  struct ucred who = {.pid = 0};
  socklen_t n = sizeof who;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  if (connect(fd, (const struct sockaddr *)address, size) != 0 ||
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0)
    who.pid = 0;
  close(fd);
  return who.pid;
}

ampc_status file_lock(const char *path, int *out)
{
  struct sockaddr_un address;
  socklen_t size;
  *out = -1;
  if (!address_of(path, &address, &size)) return AMPC_OK; /* writing will report the error */
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return AMPC_OK;
  if (bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, SOMAXCONN) == 0) {
    *out = fd;
    return AMPC_OK;
  }
  int error = errno;
  close(fd);
  if (error != EADDRINUSE) return AMPC_OK;
  long holder = holder_of(&address, size);
  if (holder == (long)getpid()) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE,
                   "another run, process %ld, writes to %s; end that run, or write to another file",
                   holder, path);
}
