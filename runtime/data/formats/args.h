/* The arguments of a source that only its format knows: `key` of an npz, `columns` of a csv.
 *
 * They are the text ampc_source.args, with one line "name=value" each. A list has one line for each
 * of its elements. The `def` in compiler/layers/sources.amp passes them on. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Returns the next value of that name after `after`, or the first one if `after` is NULL. It has
 * *out_size bytes and is not NUL-terminated. Returns NULL if no value is left. */
const char *args_next(const char *args, const char *name, const char *after, int *out_size);

/* Copies the only value of that name to `to`. False if it is absent or longer than `size`. */
bool args_text(const char *args, const char *name, char *to, int size);
/* Returns the number of that name; 0 if it is absent or not a whole number. */
int64_t args_integer(const char *args, const char *name);
