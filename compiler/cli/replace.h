/* Which files may be overwritten. */
#pragma once
#include "command_line.h"

/* Note [what -o replaces]
 * ampc overwrites three kinds of files: a file that ampc wrote and nobody changed since, an empty
 * file, and a file whose content would stay the same. An edited file is somebody's work, and a file
 * that ampc did not write may have been named by mistake: both need --force. C and CUDA C contain a
 * hash that shows edits (Note [the seal]). PTX, cubins and dependency files are recognized by their
 * first bytes. Other outputs of -o are for reading and have no such mark, so they never replace a
 * file with content. Devices and pipes are not checked. */

/* May `text` be written to `path` ("-" or NULL: stdout)? Returns false after a message. */
bool replace_output(const CommandLine *cmd, const char *path, const Text *text);
/* The same for the file of --deps. */
bool replace_deps(const CommandLine *cmd, const Text *text);
