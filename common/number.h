/* Numbers that come from outside: from jobs, command lines and files. All code that accepts such a
 * number uses these functions, so a value has the same meaning and message wherever it enters. */
#pragma once
#include "ampc_plan.h"

/* The most steps: a double, as in JSON, counts this far one by one. No run is longer. Sums of two
 * counts of steps fit into 64 bits; a product that does not is detected from its factors. */
#define AMPC_MOST_STEPS ((int64_t)1 << 53)
/* The most samples of a source. A sample may have 2^48 elements, like any tensor. */
#define AMPC_MOST_SAMPLES ((int64_t)1 << 48)

/* Returns the number of steps of `batches`: `accumulate` batches each, the last maybe fewer. */
int64_t ampc_groups(int64_t batches, int64_t accumulate);
/* Converts whole epochs to steps. Returns false if there are more than AMPC_MOST_STEPS. */
bool ampc_steps_of(int64_t epochs, int64_t per_epoch, int64_t *out);

/* Whether the number, as f32, belongs to the domain. False if rounding to f32 changes the kind of
 * number: 1e39 becomes infinity, 1e-60 becomes 0, 0.999999999 becomes 1. */
bool ampc_in_domain(ampc_domain domain, double value);
const char *ampc_domain_text(ampc_domain domain); /* "a finite number, 0 or more" */
const char *ampc_domain_name(ampc_domain domain); /* "unit" */
ampc_domain ampc_domain_by(const char *name);     /* AMPC_DOMAIN_COUNT: there is none */

/* Read a text that is one decimal number, without spaces. They return false if the text is not, or
 * if the number does not fit. Reals are finite. */
bool ampc_read_whole(const char *text, int64_t *out);
bool ampc_read_real(const char *text, double *out);
/* Reads a whole number that must be in [least, most]. */
bool ampc_read_count(const char *text, int64_t least, int64_t most, int64_t *out);

/* Writes "a whole number from 1 to 100", "... to 2^53", or for INT64_MAX "... from 1 on". */
enum { AMPC_RANGE_ROOM = 80 };
const char *ampc_range_text(char to[AMPC_RANGE_ROOM], int64_t least, int64_t most);
