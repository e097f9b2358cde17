/* The width of printed lines. */
#include "common/terminal.h"
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST = 20, MOST = 10000, USUAL = 80, USUAL_TEXT = 100 };

/* Returns the width in the variable COLUMNS; 0 if it is not set or not allowed. */
static int columns_said(void)
{
  const char *said = getenv("COLUMNS");
  char *end;
  long columns = said && *said ? strtol(said, &end, 10) : 0;
  return columns >= LEAST && columns <= MOST && !*end ? (int)columns : 0;
}

int terminal_columns(int fd)
{
  struct winsize window = {0};
  if (!isatty(fd)) return 0;
  int columns = columns_said();
  if (columns) return columns;
  if (ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col >= LEAST) return window.ws_col;
  return USUAL;
}

int line_columns(void)
{
  int columns = columns_said();
  if (!columns) columns = terminal_columns(STDOUT_FILENO);
  return columns ? columns : USUAL_TEXT;
}
