/* Positions in texts, and names of files, in the form of the protocol. */
#pragma once
#include <jansson.h>
#include "compiler/base/compile.h"
#include "compiler/diag/diag.h"

/* Note [positions]
 * A position of the protocol is a line and a character in it, both from 0. A character counts bytes
 * if the client can do that (positionEncoding "utf-8"), else units of UTF-16: one for most
 * characters, two for those beyond U+FFFF. The compiler counts bytes. */

/* Returns the offset in `text` of a position. A position beyond the end of its line or of the text
 * is that end. */
uint32_t text_offset(const char *text, uint32_t size, int64_t line, int64_t character, bool utf8);
uint32_t text_units(const char *text, size_t size); /* of UTF-16 */
/* Returns the range {start, end} of a span. */
json_t *text_range(const Compile *c, Span span, bool utf8);

/* Returns the path that a URI names; the URI itself if it is none of a file. */
const char *text_path(Arena *arena, const char *uri);
const char *text_uri(Arena *arena, const char *path); /* "file:///a%20b.amp" */
