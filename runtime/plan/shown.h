/* Text that is not ours on its way to people: names and paths in messages, source lines, whatever a
 * program or a file system holds. What a terminal, an editor or a compiler could take for more than
 * text is written as an escape (\x1b, \n, \u202e); all other UTF-8 stays. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { AMPC_ESCAPE_ROOM = 12 };

/* Bytes of the character at s, at least 1, of `left` > 0 that follow. `escape` is empty where it
 * may be printed as it is; else it is what to print instead: for control characters, bytes that are
 * no UTF-8, and what ends lines or turns the direction of text. */
size_t ampc_character(const char *s, size_t left, char escape[AMPC_ESCAPE_ROOM]);

/* May all of it be printed as it is? */
bool ampc_is_plain(const char *s, size_t n);

/* Copies `s` so that it can be printed into `out`, which ends in a zero; bytes that `keep` lists
 * stay. What does not fit is cut off between two characters. Gives out. Escaping twice is as good
 * as once. */
char *ampc_show(char *out, size_t room, const char *s, const char *keep);

/* A path as an argument of a compiler, in `out`: what begins like an option (-) or like a file of
 * options (@) gets ./ before it, which is the same file and nothing else. Gives out. */
char *ampc_path_argument(char *out, size_t room, const char *path);
