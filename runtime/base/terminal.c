/* How wide the terminal is that a text goes to. */
#include "terminal.h"
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST = 20, MOST = 1000, USUAL = 80 };

int terminal_columns(int fd)
{
  struct winsize window = {0};
  const char *said = getenv("COLUMNS");
  char *end;
  if (!isatty(fd)) return 0;
  long columns = said && *said ? strtol(said, &end, 10) : 0;
  if (columns >= LEAST && columns <= MOST && !*end) return (int)columns;
  if (ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col >= LEAST) return window.ws_col;
  return USUAL;
}
