/* What each of ampc's programs does before it opens a file. */
#pragma once
#include <stdbool.h>

/* Opens /dev/null for each of stdin, stdout and stderr that was closed when the program started.
 * Otherwise the next opened file would get that number, and printed text would go to the file.
 * Reads and writes there still fail. Also makes write() fail at the limit on file sizes (SIGXFSZ),
 * as on a full disk, instead of ending the process. False: a number cannot be filled. */
bool standard_files_open(void);

/* Returns false, after a message that begins with `program`, if the stack is too small for the most
 * deeply nested job or for the C compiler, which would crash. */
bool stack_suffices(const char *program);
