/* Numbers that come from outside: from jobs, command lines and files. All code that accepts such a
 * number uses these functions, so a value has the same meaning and message wherever it enters. */
#pragma once
#include "ampc_plan.h"

/* The most steps: a double, as in JSON, counts this far one by one. No run is longer. Sums of two
 * counts of steps fit into 64 bits; a product that does not is detected from its factors. */
#define AMPC_MOST_STEPS ((int64_t)1 << 53)
/* The most samples of a source. A sample may have 2^48 elements, like any tensor. */
#define AMPC_MOST_SAMPLES ((int64_t)1 << 48)

/* The number of steps that `batches` take: `accumulate` batches each, the last one maybe fewer. */
int64_t ampc_groups(int64_t batches, int64_t accumulate);
/* Converts whole epochs to steps. False: more than AMPC_MOST_STEPS. */
bool ampc_steps_of(int64_t epochs, int64_t per_epoch, int64_t *out);

/* Whether the number, as f32, belongs to the domain. False if f32 turns the value into another kind
 * of number: 1e39 into infinity, 1e-60 into 0, 0.999999999 into 1. */
bool ampc_in_domain(ampc_domain domain, double value);
const char *ampc_domain_text(ampc_domain domain); /* "a finite number, 0 or more" */

/* Reads a text that is one decimal number, without spaces. False: it is not, or the number does not
 * fit. Reals are finite. */
bool ampc_read_whole(const char *text, int64_t *out);
bool ampc_read_real(const char *text, double *out);
/* The number must also be in [least, most]. */
bool ampc_read_count(const char *text, int64_t least, int64_t most, int64_t *out);

/* "a whole number from 1 to 100", "... to 2^53"; `most` INT64_MAX: "a whole number from 1 on". */
enum { AMPC_RANGE_ROOM = 80 };
const char *ampc_range_text(char to[AMPC_RANGE_ROOM], int64_t least, int64_t most);
