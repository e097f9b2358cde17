/* Identifiers that the job cannot give to emitted text. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* A word of C, C++ or CUDA, or one that helpers, templates and printed variables use. */
bool reserved_name(const char *s);
