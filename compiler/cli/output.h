/* Files that ampc writes. */
#pragma once
#include "command_line.h"

/* Writes `size` bytes to the file at `path` ("-" or NULL: stdout). The bytes go to a temporary
 * file, which is then renamed: a reader finds either the old file or the whole new one. Returns
 * false after a message. */
bool output_write(const char *path, const void *data, size_t size);
