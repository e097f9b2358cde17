/* What an index may hold, for pass lower. */
#pragma once
#include "lower.h"

/* "rows of embedding, gpt2.amp:50": `why` with the user's line behind it. */
const char *with_place(Lower *l, const char *why, Span span);

/* v is computed and says which of n rows are taken; `name` is the function that takes them. Where
 * what v is made of does not say that they exist, the device looks: OP_check_index. In a scan
 * nobody does: no effect stands there. Wrong ones give NaN in either case. */
void check_computed(Lower *l, Value v, int64_t n, const char *name, Span span);
