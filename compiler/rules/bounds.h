/* Interval arithmetic on floats, for bounds.c. An interval contains every number that a kernel may
 * compute, infinities included. With NaN as its bounds, it contains anything, also NaN. */
#pragma once
#include "rules.h"

#define INTERVAL_ANY ((Interval){NAN, NAN})
/* standard normal numbers: sqrt(-2 log(2^-53)) < 9 */
#define INTERVAL_NORMAL ((Interval){-9, 9})
#define INTERVAL_NONE   ((Interval){INFINITY, -INFINITY}) /* no number at all */

/* ---- bounds_math.c ---- */
Interval interval_of(double v);                 /* a number in the text of a kernel, which is f32 */
Interval interval_join(Interval a, Interval b); /* the numbers of both */
Interval interval_neg(Interval a);
/* These contain the rounded results of f32 arithmetic. */
Interval interval_add(Interval a, Interval b);
Interval interval_mul(Interval a, Interval b);
Interval interval_div(Interval a, Interval b);
/* The sum of n numbers of `a`, in any order. */
Interval interval_sum(Interval a, Interval n);
/* Moves both bounds outwards by this fraction of the larger one. */
Interval interval_widen(Interval a, double fraction);
/* The results of a function of templates/device.cuh; INTERVAL_ANY if bounds_math.c lacks it. */
Interval interval_call(const char *name, const Interval *args, uint32_t n);

/* ---- bounds_code.c ---- */
/* Returns the interval of the results of n, whose op has code. in: for each input, its interval.
 * length: the number of elements of a row. */
Interval interval_of_code(const Node *n, const Interval *in, Interval length);
