/* What the float types hold: THE table of their limits. */
#pragma once
#include "ampc_plan.h"

typedef struct ampc_float_type {
  int digits;      /* binary ones of a number */
  double greatest; /* finite one */
  double overflow; /* numbers from it on round to infinity: half a step above the greatest */
  double least;    /* the smallest above 0; up to half of it numbers round to 0 */
  double normal;   /* numbers from it on have all digits */
  const char *greatest_text, *least_text; /* for people: "65504", "5.96e-8" */
} ampc_float_type;

/* Of f16 and bf16; of all other types f32. */
const ampc_float_type *ampc_float_type_of(ampc_dtype d);
