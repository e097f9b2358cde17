/* Cases of gradients: selftest_backward.c runs them, selftest_chains.c has the table. */
#pragma once
#include "selftest.h"

/* A small graph instead of one op: from inputs to result. */
typedef Value Builder(Compile *c, const Cursor *at, const Value *in);

typedef struct GradientRow {
  CaseRow row;    /* with a builder: op is the one that the failure is counted for, the last input
                     is dy, and the attributes are empty */
  Builder *build; /* NULL: the op alone */
} GradientRow;

extern const GradientRow gradient_rows[];
extern const uint32_t n_gradient_rows;

typedef struct GradientCase {
  Case base;
  const GradientRow *row;
  Tensor dy;
  uint32_t dy_source, dx_output[TEST_MAX_IN];
  /* by input: in the case's type, in doubles, by central differences */
  Tensor dx[TEST_MAX_IN], wide[TEST_MAX_IN], difference[TEST_MAX_IN];
} GradientCase;
typedef VEC(GradientCase) GradientList;

/* The same numbers with f32 in the place of 16-bit types, for a graph in doubles. */
GradientCase gradient_widened(Arena *a, const GradientCase *g);
