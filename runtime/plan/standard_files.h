/* stdin, stdout and stderr that whoever started the program has closed. */
#pragma once
#include <stdbool.h>

/* To be called before any file is opened: one that took a closed number would get what is printed.
 * Such a number is taken by a file that can neither be read nor written, as before. False: it
 * cannot be had. */
bool standard_files_open(void);
