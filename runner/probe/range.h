/* How large the elements of a value are: the sums of the parts of its `ranges` node over one or
 * several steps. All numbers are absolute values. */
#pragma once
#include "ampc_plan.h"
#include "compiler/graph/ranges.h"

typedef struct Range {
  int64_t n;                         /* elements in all steps */
  int64_t exponent[RANGE_EXPONENTS]; /* ranges.h */
  int64_t zeros, nans, infinite, over_f16;
  /* of the finite elements; least: of those that are not 0; 0: no such element */
  double greatest, least;
} Range;

/* Adds the counts of one step, fields[parts * RANGE_FIELDS], of a value of n elements. */
void range_add(Range *r, const int32_t *fields, int64_t parts, int64_t n);
/* Adds the counts of `r`. */
void range_merge(Range *sum, const Range *r);
bool range_is_finite(const Range *r);
/* Returns the root of the mean square of the finite elements, to about 10 %; 0 without elements. */
double range_rms(const Range *r);
/* Returns how many finite elements would become infinite in type d. bf16: 1 if any does; f32: 0. */
int64_t range_over(const Range *r, ampc_dtype d);
/* Returns how many elements that are not 0 would become 0 in type d after division by `scale`,
 * which is rounded to a power of 2. */
int64_t range_under(const Range *r, ampc_dtype d, double scale);
/* Returns how many elements that are not 0 would be subnormal or 0 in type d. */
int64_t range_subnormal(const Range *r, ampc_dtype d);
