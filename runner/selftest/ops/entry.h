/* How an entry of a family is written: the words of the tables in this folder.
 *
 *   ELEMENT(neg, -x[0], fabs(r))
 *   ...
 *     {OP_neg, "w", "=", MAP(neg), EXACT, CASES("fhbil 1025", "f s"), GRADIENTS("fhb 33~n")},
 *
 * An entry is an OpTest (case.h). Sizes of cases are odd on purpose: 1, 7, 33, 1023, 1025, so that
 * vectors have tails and axes are no powers of two. Gradients are taken at small smooth points away
 * from kinks. CHAINS are graphs in which gradients meet: values used twice, broadcasts, what stands
 * before and after the op. */
#pragma once
#include "reference.h"
#include <math.h>

/* where the result comes from: its shape and its reference */
#define WHOLE(shape_rule, rule) .shape = shape_rule, .reference = rule
#define FIRST(rule)             WHOLE(shape_of_first, rule)
#define ROW(rule)               WHOLE(shape_row_of, rule)
#define MAP(op)                 WHOLE(shape_broadcast_of, reference_map), .element = element_##op
/* what comes from outside of the input: attribute `value`, else 0; of PICK NaN or 0 */
#define MOVE(op, shape_rule) WHOLE(shape_rule, reference_moved), .move = moved_##op
#define PICK(op, shape_rule) WHOLE(shape_rule, reference_picked), .move = moved_##op

/* how far off it may be, and why: Note [bounds] in case.h */
#define EXACT                           ULPS(0, "exact: copies, compares or rounds once")
#define ROUNDED                         ULPS(0, "one IEEE operation, correctly rounded")
#define ULPS(n, reason)                 .ulps = n, .why = reason
#define SUMMED(n, each, counts, reason) ULPS(n, reason), .per_term = each, .terms = counts

/* For k sums of a row: kernels take 16 partial sums, so n / 16 additions follow each other, of half
 * an ulp each. Where the row is not the last axis all n may: its `terms` count 16 times as many. */
enum { PARTIAL_SUMS = 16 };
#define SUMS(k) (k) * 0.5 / PARTIAL_SUMS

/* the rows */
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
/* or why there are none */
#define NO_CASES(reason)    .no_cases = reason
#define NO_GRADIENT(reason) .no_gradient = reason

/* The function of a map op, an element each. x: the inputs' elements, a: the attributes in the
 * order of the signature, r: the result. Only libm in double: nothing is taken from the kernels. */
#define ELEMENT(op, result, size)                                                                  \
  static double element_##op(const double *x, const double *a, double *scale)                      \
  {                                                                                                \
    (void)a;                                                                                       \
    double r = (result);                                                                           \
    *scale = (size);                                                                               \
    return r;                                                                                      \
  }

/* Exports the file's table `tests`; the list of families is in table.c. */
#define FAMILY(name)                                                                               \
  const OpFamily family_##name = {"runner/selftest/ops/" #name ".c", tests,                        \
                                  sizeof tests / sizeof *tests};
