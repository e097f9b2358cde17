#include "standard_files.h"
#include <fcntl.h>
#include <unistd.h>

bool standard_files_open(void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    /* the lowest free number is taken; the wrong direction makes every use an error */
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
  }
  return true;
}
