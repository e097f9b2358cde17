/* Makes text from outside printable: names and paths in messages, source lines, contents of files.
 * What a terminal, an editor or a compiler could interpret as more than text is written as an
 * escape (\x1b, \n, \u202e). All other UTF-8 stays. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { AMPC_ESCAPE_ROOM = 12 };

/* Returns the size, at least 1 byte, of the first character of the `left` > 0 bytes at s. `escape`
 * is "" if the character can be printed, else the text to print instead. Control characters, bytes
 * that are not UTF-8, and characters that end lines or change the direction of text are escaped. */
size_t ampc_character(const char *s, size_t left, char escape[AMPC_ESCAPE_ROOM]);

/* Whether all of the text can be printed as it is. */
bool ampc_is_plain(const char *s, size_t n);

/* Copies `s` to `out` so that it can be printed, NUL-terminated. Bytes that `keep` lists are not
 * escaped. Text that does not fit is cut off between two characters. Escaping a second time changes
 * nothing. Returns out. */
char *ampc_show(char *out, size_t room, const char *s, const char *keep);

/* Writes a path as an argument of a compiler to `out`. A path that begins like an option (-) or a
 * file of options (@) gets a leading ./, so that it can mean only that file. Returns out. */
char *ampc_path_argument(char *out, size_t room, const char *path);
