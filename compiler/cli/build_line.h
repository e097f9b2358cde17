/* The command that builds an emitted file. */
#pragma once
#include "command_line.h"

/* Prints the command that builds cmd->output (or the file that -o would have named) into an object
 * or a program. Returns false after an error message if the runtime's headers or libraries are not
 * found. */
bool build_line(const CommandLine *cmd, Text *out);

/* Prints a word of a shell command, quoted if necessary. */
void shell_word(Text *out, const char *word);
