/* Prints strings as JSON. */
#pragma once
#include "arena.h"

/* Adds s in quotes. Escapes control characters and replaces bytes that are not UTF-8. */
void text_add_json(Text *out, const char *s);
