/* The command that builds an emitted file. */
#pragma once
#include "command_line.h"

/* Another kind of machine, which --cross prints a build line for. The only one is 64-bit Arm. */
typedef struct CrossTarget {
  const char *march;   /* the default of --march, because cross compilers refuse `native` */
  const char *triplet; /* begins the name of the compiler, and is the folder of libraries */
  const char *debian;  /* what Debian calls the machine */
} CrossTarget;

extern const char *const cross_names[]; /* as `uname -m` prints them, ending with NULL */
extern const CrossTarget cross_targets[];

/* Prints the command that builds cmd->output (or the file that -o would have named) into an object
 * or a program. Returns false after an error message if the runtime's headers or libraries are not
 * found. */
bool build_line(const CommandLine *cmd, Text *out);

/* Prints a word of a shell command, quoted if necessary. */
void shell_word(Text *out, const char *word);
