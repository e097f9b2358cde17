/* The arguments of a source that its format alone understands: `key` of an npz, `columns` of a csv.
 *
 * They are the text ampc_source.args, a line "name=value" each; an argument that is a list has a
 * line for each of its elements. The `def` in compiler/layers/sources.amp hands them on. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The next value of that name, behind `after` or, with NULL, the first one. *out_size bytes, not
 * ended by a zero; NULL: there is none. */
const char *args_next(const char *args, const char *name, const char *after, int *out_size);

/* The only value of that name, whole, into `to`; false: absent, or too long for `size` bytes. */
bool args_text(const char *args, const char *name, char *to, int size);
/* 0 when absent or no whole number. */
int64_t args_integer(const char *args, const char *name);
