#include "common/standard_files.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

bool standard_files_open(void)
{
  signal(SIGXFSZ, SIG_IGN);
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    /* open takes the lowest free number; the wrong direction makes every use an error */
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
  }
  return true;
}

bool stack_suffices(const char *program)
{
  enum { LEAST = 1024 /* KiB; with 512, expressions nested 2000 deep crash */ };
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur / 1024 >= LEAST) return true;
  fprintf(stderr,
          "%s: error: the stack is limited to %llu KiB, and at least %d are needed: run `ulimit -s "
          "%d` first\n",
          program, (unsigned long long)limit.rlim_cur / 1024, LEAST, LEAST);
  return false;
}
