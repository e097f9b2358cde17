/* Formats text as vsnprintf() does, with the same result, but faster. */
#pragma once
#include <stdarg.h>
#include <stddef.h>

/* Writes at most `room` bytes with the NUL; `room` is not 0. Returns the whole text's length. */
size_t format_text(char *to, size_t room, const char *fmt, va_list ap);
