/* Strings as JSON has them. */
#pragma once
#include "arena.h"

/* In quotes: control characters escaped, bytes that are no UTF-8 replaced. */
void text_add_json(Text *out, const char *s);
