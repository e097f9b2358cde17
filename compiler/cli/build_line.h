/* How emitted files are built. */
#pragma once
#include "command_line.h"

/* The command that builds cmd->output (or what -o would have named) into an object or a program.
 * False after a message: the runtime's headers and libraries are not where they belong. */
bool build_line(const CommandLine *cmd, Text *out);

/* A word of a shell command, in quotes where it needs them. */
void shell_word(Text *out, const char *word);
