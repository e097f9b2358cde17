/* Other programs that are run to their end: the C compiler, a disassembler. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* An anonymous file with this content, at its start; -1 with errno. */
int child_file(const char *text, size_t size);
/* The program of this name in PATH. */
bool child_find(const char *name, char out[PATH_MAX]);
/* Its exit status (128 + signal when it was killed), or -1 with errno. `output` gets its stdout and
 * stderr; `environment`: NULL is ours. It is ended when the end of what runs it is requested
 * (interrupt.h). */
int child_run(char *const argv[], char **environment, int input, int output);
