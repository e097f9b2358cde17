/* Checks of computed indices, for pass lower. */
#pragma once
#include "lower.h"

/* Returns "rows of embedding, gpt2.amp:50": `why` and the user's line. */
const char *with_place(Lower *l, const char *why, Span span);

/* Returns "rows of embedding"; an argument keeps its name: "`input_lengths` of ctc_loss". */
const char *index_limit_name(Lower *l, const char *name);

/* Makes the device check v, a computed index that selects among n rows, by an OP_check_index node,
 * unless the range of v is known to be inside of [0, n). `name` is the function that uses v. In a
 * `scan` there is no check, since effects are not allowed there. With or without a check, a wrong
 * index yields NaN. */
void check_computed(Lower *l, Value v, int64_t n, const char *name, Span span);

/* The same for computed labels of n classes; those that equal `ignored` are right. */
void check_labels(Lower *l, Value v, int64_t n, int64_t ignored, const char *name, Span span);
