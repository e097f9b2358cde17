/* What is the user's in emitted text: names, file names, source lines. Each of the three places
 * where such text may stand in C has one function, and nothing of it gets out of its place.
 *
 * Note [the user's text in C]
 * A compiler reads text before it reads C: it joins a line that ends in a backslash with the next
 * one (also where spaces, tabs or control characters follow the backslash, and where the trigraph
 * ??/ is one), and some take a lone carriage return for the end of a line. So what looks like a
 * comment to the printer may swallow the next statement or end early. */
#pragma once
#include "arena.h"

/* For a comment of either kind: at most `width` characters, the rest cut off, with " .." for it. No
 * line ends in it, no comment either, and it never ends in a backslash; control characters are
 * shown as escapes. */
const char *comment_text(Arena *a, const char *s, size_t n, size_t width);

/* A C string literal whose value is `s`, byte for byte; "0" for NULL. */
const char *string_literal(Arena *a, const char *s);

/* The name with a _ for all that C does not allow in one, and a p before a digit. Two names may
 * give the same identifier: who needs them apart sees to it. */
char *identifier(Arena *a, const char *name);
