/* How large the elements of a value are: what the parts of a `ranges` node say, added up, of one
 * step or of several. All are absolute values. */
#pragma once
#include "ampc_plan.h"
#include "compiler/graph/ranges.h"

typedef struct Range {
  int64_t n;                         /* elements, of all steps */
  int64_t exponent[RANGE_EXPONENTS]; /* ranges.h */
  int64_t zeros, nans, infinite, over_f16;
  double greatest, least; /* finite ones; least: not 0. 0: there is none */
} Range;

/* Adds what one step has found: fields[parts * RANGE_FIELDS] of a value of n elements. */
void range_add(Range *r, const int32_t *fields, int64_t parts, int64_t n);
bool range_is_finite(const Range *r);
/* How many finite elements become infinite in type d; of f32 none. */
int64_t range_over(const Range *r, ampc_dtype d);
/* How many that are not 0 become 0 in type d when they are divided by `scale`, which counts as the
 * nearest power of 2. */
int64_t range_under(const Range *r, ampc_dtype d, double scale);
/* How many that are not 0 lie below the normal numbers of type d, where it has fewer digits. */
int64_t range_subnormal(const Range *r, ampc_dtype d);
