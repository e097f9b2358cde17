/* Files that ampc writes and commands that it prints. */
#pragma once
#include "command_line.h"

/* Puts `size` bytes into the file at `path` ("-" or NULL: stdout). The file is written under
 * another name and renamed, so whoever looks sees the old file or the new one, whole. False after a
 * message. */
bool output_write(const char *path, const void *data, size_t size);

/* The command that builds cmd->output (or what -o would have named) into an object or a program.
 * False after a message: the runtime's headers and libraries are not where they belong. */
bool output_build_line(const CommandLine *cmd, Text *out);
