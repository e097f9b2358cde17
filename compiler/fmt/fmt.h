/* The layout of jobs: `amp fmt`. */
#pragma once
#include "compiler/base/compile.h"

/* Adds `text`, `size` bytes, to `out` in the layout of all jobs. Only blanks, empty lines and line
 * ends differ from `text`, outside of strings; the tokens and comments stay. A second call changes
 * nothing. Returns false after a message, without a change of `out`, if `text` has a syntax error.
 * `name` is the path in messages. `text` is NUL-terminated and, as `name`, must outlive `c`. */
bool fmt_text(Compile *c, const char *name, const char *text, uint32_t size, Text *out);
