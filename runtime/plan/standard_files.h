/* What each of our programs does before it opens a file. */
#pragma once
#include <stdbool.h>

/* Fills the numbers of stdin, stdout and stderr that were closed when the program started: another
 * file with such a number would get what is printed. Reads and writes there fail, as before. False:
 * a number cannot be filled. Also, a write over the limit on the size of files (SIGXFSZ) is an
 * error of write(), like a full disk, and does not end the process. */
bool standard_files_open(void);

/* False, with a message that begins with `program`, if the stack is too small for the deepest
 * program or for the C compiler: they would crash. */
bool stack_suffices(const char *program);
