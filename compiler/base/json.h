/* Prints strings as JSON. */
#pragma once
#include "arena.h"

/* Adds s in quotes. Escapes control characters and replaces bytes that are not UTF-8. */
void text_add_json(Text *out, const char *s);
/* The same for `n` bytes, behind which a NUL stands. They may contain others. */
void text_add_json_bytes(Text *out, const char *s, size_t n);
