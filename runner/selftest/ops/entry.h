/* How to write an entry: the macros of the tables in this folder.
 *
 *   ELEMENT(neg, -x[0], fabs(r))
 *   ...
 *     {OP_neg, "w", "=", MAP(neg), EXACT, CASES("fhbil 1025", "f s"), GRADIENTS("fhb 33~n")},
 *
 * An entry is an OpTest (case.h). Sizes of cases are odd on purpose: 1, 7, 33, 1023, 1025, so that
 * vectors have tails and axes are not powers of two. Gradient cases use small inputs away from
 * kinks. CHAINS are graphs of several ops, which test the sum of several gradients, broadcasts, and
 * the op's gradient between those of other ops. */
#pragma once
#include "reference.h"
#include <math.h>

/* The fields of the shape rule and of the reference of the result. */
#define WHOLE(shape_rule, rule) .shape = shape_rule, .reference = rule
#define FIRST(rule)             WHOLE(shape_of_first, rule)
#define ROW(rule)               WHOLE(shape_row_of, rule)
#define MAP(op)                 WHOLE(shape_broadcast_of, reference_map), .element = element_##op
/* A move or a pick. Elements from outside of the input: attribute `value` for MOVE (default 0); NaN
 * or 0 for PICK. */
#define MOVE(op, shape_rule) WHOLE(shape_rule, reference_moved), .move = moved_##op
#define PICK(op, shape_rule) WHOLE(shape_rule, reference_picked), .move = moved_##op

/* The fields of the bound and of its reason: Note [bounds] in case.h. */
#define EXACT                           ULPS(0, "exact: copies, compares or rounds once")
#define ROUNDED                         ULPS(0, "one IEEE operation, correctly rounded")
#define ULPS(n, reason)                 .ulps = n, .why = reason
#define SUMMED(n, each, counts, reason) ULPS(n, reason), .per_term = each, .terms = counts

/* The ulps for each term of k sums over a row. Kernels add 16 partial sums, so n / 16 additions are
 * sequential, with half an ulp each. If the row is not the last axis, all n may be sequential;
 * `terms` then returns 16 times as many. */
enum { PARTIAL_SUMS = 16 };
#define SUMS(k) (k) * 0.5 / PARTIAL_SUMS

/* The fields of the rows of cases. */
#define CASES(...)                                                                                 \
  .cases = (const char *const[])                                                                   \
  {                                                                                                \
    __VA_ARGS__, NULL                                                                              \
  }
#define GRADIENTS(...)                                                                             \
  .gradients = (const char *const[])                                                               \
  {                                                                                                \
    __VA_ARGS__, NULL                                                                              \
  }
#define CHAINS(...)                                                                                \
  .chains = (const ChainRow[])                                                                     \
  {                                                                                                \
    __VA_ARGS__,                                                                                   \
    {                                                                                              \
      NULL, NULL                                                                                   \
    }                                                                                              \
  }
/* The fields of the reason why the entry has no cases or gradients. */
#define NO_CASES(reason)    .no_cases = reason
#define NO_GRADIENT(reason) .no_gradient = reason

/* Defines the function of a map op, for one element. x: elements of the inputs, a: attributes in
 * the order of the signature, r: the result. It uses only libm in double, and no function of the
 * kernels. */
#define ELEMENT(op, result, size)                                                                  \
  static double element_##op(const double *x, const double *a, double *scale)                      \
  {                                                                                                \
    (void)a;                                                                                       \
    double r = (result);                                                                           \
    *scale = (size);                                                                               \
    return r;                                                                                      \
  }

/* Exports the table `tests` of the file; table.c lists all families. */
#define FAMILY(name)                                                                               \
  const OpFamily family_##name = {"runner/selftest/ops/" #name ".c", tests,                        \
                                  sizeof tests / sizeof *tests};
