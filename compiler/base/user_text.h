/* Text of the user in emitted C: names, file names, source lines. C has three places for such text,
 * and each has one function here that keeps the text inside its place.
 *
 * Note [the user's text in C]
 * A compiler changes the text before it parses C. If a line ends in a backslash, it is joined with
 * the next one. Some compilers do so even if spaces, tabs or control characters follow the
 * backslash, or if the trigraph ??/ stands for it. Some treat a lone carriage return as the end of
 * a line. So text that is printed as a comment can swallow the next statement, or the comment can
 * end early. */
#pragma once
#include "arena.h"

/* Returns text for a C comment of either kind: at most `width` characters of s. " .." marks text
 * that was cut off. The result contains no end of a line or of a comment, and does not end in a
 * backslash. Control characters are escaped. */
const char *comment_text(Arena *a, const char *s, size_t n, size_t width);

/* Returns a C string literal with the value `s`, byte for byte; "0" if `s` is NULL. */
const char *string_literal(Arena *a, const char *s);

/* Returns the name with _ for each character that C does not allow in an identifier, and a p before
 * a leading digit. Two names may become the same identifier: the caller must avoid clashes. */
char *identifier(Arena *a, const char *name);
