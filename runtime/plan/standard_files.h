/* What each program of ours does before it opens a file. */
#pragma once
#include <stdbool.h>

/* stdin, stdout and stderr that whoever started the program has closed: a file that took such a
 * number would get what is printed. It is taken by one that can neither be read nor written, as
 * before. False: it cannot be had. And a limit on the size of files (SIGXFSZ) is an error of
 * write(), such as a full disk, not the end of the process. */
bool standard_files_open(void);

/* Refuses a stack that is too small for the deepest program or for the C compiler: a crash would
 * come somewhere. `program` begins the message. */
bool stack_suffices(const char *program);
