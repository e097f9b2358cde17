/* Numbers that come from outside: programs, command lines, files. A place says which numbers it
 * takes, and everyone who fills it asks here, so that a value has one meaning and one message
 * wherever it enters. */
#pragma once
#include "ampc_plan.h"

/* As many steps as a double counts one by one, in JSON too: longer than any run. So sums and
 * products of two counts of steps stay inside of 64 bits, or are found out by their factors. */
#define AMPC_MOST_STEPS ((int64_t)1 << 53)
/* Of a source; a sample may have 2^48 elements, like any tensor. */
#define AMPC_MOST_SAMPLES ((int64_t)1 << 48)

/* Steps that so many batches make: `accumulate` each, the last one fewer where they do not come out
 * even. */
int64_t ampc_groups(int64_t batches, int64_t accumulate);
/* Whole epochs as steps; false: more than there can be. */
bool ampc_steps_of(int64_t epochs, int64_t per_epoch, int64_t *out);

/* Is the number, as f32, one of the domain? A value that f32 turns into another kind of number
 * (1e39 into infinity, 1e-60 into 0, 0.999999999 into 1) is none. */
bool ampc_in_domain(ampc_domain domain, double value);
const char *ampc_domain_text(ampc_domain domain); /* "a finite number, 0 or more" */

/* The whole text is one number, without spaces and in decimal digits; false: it is not, or the
 * number does not fit. Reals are finite. */
bool ampc_read_whole(const char *text, int64_t *out);
bool ampc_read_real(const char *text, double *out);
/* And within [least, most]. */
bool ampc_read_count(const char *text, int64_t least, int64_t most, int64_t *out);

/* "a whole number from 1 to 100", "... to 2^53"; `most` INT64_MAX: "a whole number from 1 on". */
enum { AMPC_RANGE_ROOM = 80 };
const char *ampc_range_text(char to[AMPC_RANGE_ROOM], int64_t least, int64_t most);
