/* Checks of computed indices, for pass lower. */
#pragma once
#include "lower.h"

/* "rows of embedding, gpt2.amp:50": `why` and the user's line. */
const char *with_place(Lower *l, const char *why, Span span);

/* v is a computed index that selects among n rows; `name` is the function that uses it. If the
 * range of v is not known to be inside of [0, n), an OP_check_index node makes the device check it.
 * In a `scan` there is no check, since effects are not allowed there. A wrong index yields NaN in
 * both cases. */
void check_computed(Lower *l, Value v, int64_t n, const char *name, Span span);
