/* What may be written over. */
#pragma once
#include "command_line.h"

/* Note [what -o replaces]
 * A file that ampc wrote and nobody changed since, an empty one, or one that would not change. An
 * edited text is somebody's work, and a file that ampc did not write is none of its business, be it
 * there by a slip of the hand: both need --force. C and CUDA C say themselves whether they were
 * edited (Note [the seal]), PTX, cubins and dependencies are known by how they begin. What else -o
 * writes is for reading and bears no mark, so it replaces nothing. Devices and pipes are not files:
 * no check. */

/* May `text` be written to `path` ("-" or NULL: stdout)? False after a message. */
bool replace_output(const CommandLine *cmd, const char *path, const Text *text);
/* The same for the file of --deps. */
bool replace_deps(const CommandLine *cmd, const Text *text);
