/* Files that ampc writes. */
#pragma once
#include "command_line.h"

/* Puts `size` bytes into the file at `path` ("-" or NULL: stdout). The file is written under
 * another name and renamed, so whoever looks sees the old file or the new one, whole. False after a
 * message. */
bool output_write(const char *path, const void *data, size_t size);
