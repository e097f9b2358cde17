/* Identifiers that a job cannot use in emitted text. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* True for keywords of C, C++ and CUDA, and for names that helpers, templates or the emitter
 * use. */
bool reserved_name(const char *s);
