/* Runs other programs and waits until they end: the C compiler, a disassembler. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Opens a file in memory with this content, positioned at its start. -1: see errno. */
int child_file(const char *text, size_t size);
/* Finds the program of this name in PATH. */
bool child_find(const char *name, char out[PATH_MAX]);
/* Runs a program and returns its exit status (128 + signal if it was killed), or -1 with errno.
 * `output` receives its stdout and stderr. `environment` NULL: the environment of this process. The
 * program is terminated if interrupt_requested becomes true. */
int child_run(char *const argv[], char **environment, int input, int output);
