/* What whoever started the program has left it: stdin, stdout, stderr, a stack. */
#pragma once
#include <stdbool.h>

/* To be called before any file is opened: one that took a closed number would get what is printed.
 * Such a number is taken by a file that can neither be read nor written, as before. False: it
 * cannot be had. */
bool standard_files_open(void);

/* Refuses a stack that is too small for the deepest program or for the C compiler: a crash would
 * come somewhere. `program` begins the message. */
bool stack_suffices(const char *program);
