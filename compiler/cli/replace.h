/* Decides which files may be overwritten. */
#pragma once
#include "command_line.h"

/* Note [what -o replaces]
 * ampc overwrites three kinds of files: a file that ampc wrote and that is unchanged, an empty
 * file, and a file whose content would stay the same. An edited file contains somebody's work, and
 * a file that ampc did not write may have been named by mistake. Both need --force. C and CUDA C
 * contain a hash that shows edits (Note [the seal]). PTX, cubins and dependency files are
 * recognized by their first bytes. Other outputs of -o have no such mark, so they never replace a
 * file with content. Devices and pipes are not checked. */

/* True if `text` may be written to `path` ("-" or NULL: stdout). Returns false after a message. */
bool replace_output(const CommandLine *cmd, const char *path, const Text *text);
/* True if `text` may be written to the file of --deps. Returns false after a message. */
bool replace_deps(const CommandLine *cmd, const Text *text);
